// What the states of units and jobs mean, one sentence each: the page's own words for SPEC, "States". The states' names alone
// are those of the commands.

import type { StateName } from "./types";

// What a page shows as a state: of a unit, of an array as a whole, of a lease that was taken away.
export type Shown = StateName | "ended" | "reclaimed";

// In the order in which a unit passes them.
const MEANING: Readonly<Record<Shown, string>> = {
  blocked: "it waits for other jobs",
  open: "nobody works on it; a fitting worker may take it",
  running: "a node works on it",
  closing: "its submitter cancelled it while it ran; its node has a last while to submit",
  submitted: "it has a result that is not paid yet; the next step says who may settle it",
  disputed: "its judge holds the result",
  settled: "it has ended: its result is final and paid, whether the program succeeded or failed",
  refunded: "it has ended without a result that is paid: its money went back",
  cancelled: "it has ended: its submitter, or a job that it waited for, took it back",
  expired: "it has ended: no attempt would have been over before the deadline",
  ended: "of an array: every unit has ended, each as settled, refunded, cancelled or expired",
  reclaimed: "of a lease: it was taken from a node that was late or silent",
};

export const MEANINGS: ReadonlyMap<string, string> = new Map(Object.entries(MEANING));
