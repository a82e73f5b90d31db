// Which jobs of a list are asked for, as the address of the page says it.

import { type Standing, labelOfStanding } from "../chain/jobs";
import { addressOf } from "../core/recipient";
import { shownLine } from "../core/text";
import { labelled } from "../data/addresses";
import { JOB_LABELS } from "../generated/states";
import type { Names } from "./use-names";

// The accounts that the reader named.
export const MINE = "mine";
// A job's name is no longer.
const LONGEST = 64;
export const ASKED = ["state", "submitter", "name"] as const;

export type Asked = Readonly<Record<(typeof ASKED)[number], string>>;

export const STATES: readonly string[] = JOB_LABELS;

// Read them from an address, which anybody may have written: nothing of it filters without being seen.
export function askedIn(query: ReadonlyMap<string, string>): Asked {
  const state = query.get("state") ?? "";
  return {
    state: STATES.includes(state) ? state : "",
    submitter: query.get("submitter") ?? "",
    name: shownLine((query.get("name") ?? "").trim(), LONGEST),
  };
}

// Return what says whether a job is one of those. Throws BAD_ADDRESS for a submitter that is no address.
export function filterOf({ state, submitter, name }: Asked, names: Names, here: Pick<Location, "pathname">): (one: Standing) => boolean {
  const of = submitter === MINE ? labelled(here).map(({ address }) => address) : submitter.trim() === "" ? undefined : [addressOf(submitter.trim())];
  const part = name.toLowerCase();
  return (one) => {
    const { spec, submitter: by } = one.posted.terms;
    return (state === "" || labelOfStanding(one).word === state) && (of === undefined || of.includes(by)) && (part === "" || (names?.get(spec) ?? "").toLowerCase().includes(part));
  };
}
