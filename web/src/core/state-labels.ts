// One word for each state, word for word as the commands say it. Mirrors hearth/protocol/state_labels.py.

import { DONE, FAILED, OUTCOME, STATE, STATE_LABELS, STATUS_LABELS } from "../generated/states";
import type { Unit } from "./types";

// How a job stands as a whole: its word, and the same as people read it: "2 of 8 units failed".
export interface StateLabel {
  readonly word: string;
  readonly text: string;
}

// Return the word for a state, whatever came out of it; empty for none.
export const stateLabel = (state: number): string => (STATE_LABELS as Readonly<Record<number, string>>)[state] ?? "";

// Return the word for how a unit stands; empty for one that there is not.
export const unitLabel = ({ state, outcome }: Pick<Unit, "state" | "outcome">): string =>
  state === STATE.SETTLED && outcome !== OUTCOME.OK ? FAILED : stateLabel(state);

export const statusLabel = (status: number): string => (STATUS_LABELS as Readonly<Record<number, string>>)[status] ?? "";

// Return how an array stands that has ended: `tally` counts its leases by their words, with `needed` good ones it is done.
export function arrayLabel(tally: ReadonlyMap<string, number>, leases: number, needed: number): StateLabel {
  const done = tally.get(DONE) ?? 0;
  const failed = tally.get(FAILED) ?? 0;
  if (done >= needed) return { word: DONE, text: DONE };
  for (const [word, count] of tally) if (count === leases) return { word, text: word };
  if (failed > 0) return { word: FAILED, text: `${failed} of ${leases} units ${FAILED}` };
  return { word: stateLabel(STATE.REFUNDED), text: `${done} of ${leases} units ${DONE}` };
}

// Return "2 done, 1 running".
export const countedLabels = (tally: ReadonlyMap<string, number>): string => [...tally].map(([word, count]) => `${count} ${word}`).join(", ");
