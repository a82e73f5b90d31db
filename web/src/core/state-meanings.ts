// What the states of units and jobs mean, one sentence each: the page's own words for protocol.md "States". The words are those of
// the commands.

import type { END_LABELS, JOB_LABELS } from "../generated/states";

// What a page shows as a state: of a unit or a job, of a lease that was taken away. In brackets the chain's name of it.
export type Shown = (typeof JOB_LABELS)[number] | (typeof END_LABELS)["Reclaimed"];

// In the order in which a unit passes them.
const MEANING: Readonly<Record<Shown, string>> = {
  "waiting for other jobs": "it starts once they have ended (blocked)",
  "waiting for a machine": "nobody works on it; a fitting machine may take it (open)",
  running: "a machine works on it",
  stopping: "its submitter cancelled it while it ran; its machine has a last while to hand in what it has (closing)",
  "result in": "it has a result that is not paid yet; the next step says who may settle it (submitted)",
  "under review": "its judge holds the result back (disputed)",
  done: "its result is final and paid (settled); of an array: that of every unit",
  failed: "the program failed, and the machine was paid (settled); of an array: so many of its units",
  refunded: "it has ended without a result that is paid: its money went back",
  cancelled: "its submitter, or a job that it waited for, took it back",
  expired: "no attempt could end before the deadline: its money went back",
  "taken away": "of one attempt: a machine that was late or silent lost it (reclaimed)",
};

export const MEANINGS: ReadonlyMap<string, string> = new Map(Object.entries(MEANING));
