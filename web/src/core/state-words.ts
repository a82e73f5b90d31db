// One word for each state, word for word as the commands say it. Mirrors hearth/protocol/state_words.py.

import { DONE, FAILED, OUTCOME, STATE, STATE_WORDS, STATUS_WORDS } from "../generated/states";
import type { Unit } from "./types";

// How a job stands as a whole: its word, and the same as people read it: "2 of 8 units failed".
export interface Told {
  readonly word: string;
  readonly text: string;
}

// Return the word for a state, whatever came out of it; empty for none.
export const stateWord = (state: number): string => (STATE_WORDS as Readonly<Record<number, string>>)[state] ?? "";

// Return the word for how a unit stands; empty for one that there is not.
export const unitWord = ({ state, outcome }: Pick<Unit, "state" | "outcome">): string =>
  state === STATE.SETTLED && outcome !== OUTCOME.OK ? FAILED : stateWord(state);

export const statusWord = (status: number): string => (STATUS_WORDS as Readonly<Record<number, string>>)[status] ?? "";

// Return how an array stands that has ended: `tally` counts its leases by their words, with `needed` good ones it is done.
export function arrayTold(tally: ReadonlyMap<string, number>, leases: number, needed: number): Told {
  const done = tally.get(DONE) ?? 0;
  const failed = tally.get(FAILED) ?? 0;
  if (done >= needed) return { word: DONE, text: DONE };
  for (const [word, count] of tally) if (count === leases) return { word, text: word };
  if (failed > 0) return { word: FAILED, text: `${failed} of ${leases} units ${FAILED}` };
  return { word: stateWord(STATE.REFUNDED), text: `${done} of ${leases} units ${DONE}` };
}

// Return "2 done, 1 running".
export const countedWords = (tally: ReadonlyMap<string, number>): string => [...tally].map(([word, count]) => `${count} ${word}`).join(", ");
