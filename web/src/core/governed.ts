// Who governs a market, and what waits to be changed, word for word as `hearth gov status` says it. Mirrors the part "what
// people read" of hearth/client/governance/changes.py and hearth/cli/gov.py. `now` is the second of the block that is looked at.

import { CHANGE_OP, DROPPED, EXECUTED, KINDS, LIFE, PAUSE_EVERY, PAUSE_TIME, POLICY_FIELDS, POLICY_GRACE } from "../generated/changes";
import { POLICY_UNITS } from "../generated/parameters";
import type { Hex } from "./bytes";
import { type Change, changeId, changeInWords } from "./changes";
import { moment } from "./moments";
import { inWords } from "./parameters";
import type { Policy } from "./types";
import type { Asset } from "./units";
import { unpackPolicy } from "./words";

// What became of a change: "due" can be executed now, "lapsed" nobody executed in time.
export type ChangeState = "waiting" | "due" | "lapsed" | "dropped" | "executed";

// A change that the Steward holds: when it is or was due, what became of it, and the block that queued it.
export interface SeenChange {
  readonly change: Change;
  readonly due: number;
  readonly state: ChangeState;
  readonly block: number;
}

// A field of the policy that a change replaces, in words.
export interface ChangedValue {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

// A change for people: it can be executed from `ready` on, before `until`.
export interface ChangeRow {
  readonly id: Hex;
  readonly change: Change;
  readonly kind: string;
  readonly state: ChangeState;
  readonly block: number;
  readonly due: number;
  readonly ready: number;
  readonly until: number;
  readonly values: readonly ChangedValue[];
  readonly text: string;
}

// Who governs posts or registrations, to whom that is offered, and until when they are or were last paused, 0 for never.
export interface Governed {
  readonly governor: Hex;
  readonly steward: boolean;
  readonly offered: Hex | null;
  readonly pausedUntil: number;
}

// Say whether a change can be executed, now or later.
export const isOpen = ({ state }: Pick<SeenChange, "state">): boolean => state === "waiting" || state === "due";

// Return what became of a change of which the Steward holds `state`, which is not 0.
export function stateOfChange(state: bigint, now: number): ChangeState {
  if (state === BigInt(DROPPED)) return "dropped";
  if (state === BigInt(EXECUTED)) return "executed";
  if (BigInt(now) < state) return "waiting";
  return BigInt(now) < state + BigInt(LIFE) ? "due" : "lapsed";
}

// Return the second from which what was last paused until then can be paused again; 0 where it never was.
export const pausableFrom = (pausedUntil: number): number => pausedUntil && pausedUntil - PAUSE_TIME + PAUSE_EVERY;

// Return which fields of `policy` a change of the policy replaces; none for other changes, or without a policy.
function changedValues(change: Change, policy: Policy | null, asset: Asset): ChangedValue[] {
  if (change.op !== CHANGE_OP.SET_POLICY || policy === null) return [];
  const after = unpackPolicy(change.word);
  return POLICY_FIELDS.filter(([, field]) => policy[field] !== after[field]).map(([name, field]) => ({
    name,
    before: valueInWords(field, policy, asset),
    after: valueInWords(field, after, asset),
  }));
}

// Return all that a change of the policy sets, in the policy's order, by nobody's word but the change's own; nothing for other changes.
export function announced({ op, word }: Change, asset: Asset): (readonly [string, string])[] {
  if (op !== CHANGE_OP.SET_POLICY) return [];
  const after = unpackPolicy(word);
  return POLICY_FIELDS.map(([name, field]) => [name, valueInWords(field, after, asset)]);
}

// Return what a change does: a policy by the fields that it replaces, or replaced, of `policy`; null where that is not known.
export function changeText(change: Change, state: ChangeState, policy: Policy | null, asset: Asset): string {
  if (change.op !== CHANGE_OP.SET_POLICY || policy === null) return changeInWords(change, asset);
  const what = changedValues(change, policy, asset).map(({ name, before, after }) => `${name} ${before} -> ${after}`);
  return `policy: ${what.join(", ") || (state === "executed" ? "as it was before" : "as it is today")}`;
}

// Return a change for people. `policy` is the one that a change of it replaces, and `free` the second from which Rules takes
// another one.
export function changeRow(seen: SeenChange, policy: Policy | null, asset: Asset, free: number, now: number): ChangeRow {
  const { change, due, state, block } = seen;
  const ready = isOpen(seen) && change.op === CHANGE_OP.SET_POLICY ? Math.max(due, free) : due;
  return {
    id: changeId(change),
    change,
    kind: KINDS[change.op],
    state: isOpen(seen) && now < ready ? "waiting" : state,
    block,
    due,
    ready,
    until: due + LIFE,
    values: changedValues(change, policy, asset),
    text: changeText(change, state, policy, asset),
  };
}

// Say when a change can be executed, or what became of it.
export function whenInWords({ state, ready, until }: Pick<ChangeRow, "state" | "ready" | "until">): string {
  if (state === "waiting" && ready >= until) return `not before it lapses, ${moment(until)}`;
  if (state === "waiting") return `from ${moment(ready)}`;
  if (state === "due") return `now, until ${moment(until)}`;
  return state === "lapsed" ? `lapsed, ${moment(until)}` : state;
}

// Say who governs `what`, and whether it is paused.
export function governorInWords(what: string, one: Governed, now: number): string {
  const who = one.steward ? "the Steward" : `${one.governor}, and not the Steward`;
  const offered = one.offered === null ? "" : `, offered to ${one.offered}`;
  const when = now < one.pausedUntil ? "paused now" : "last paused";
  const paused = one.pausedUntil === 0 ? "" : `, ${when} until ${moment(one.pausedUntil)}`;
  const again = pausableFrom(one.pausedUntil);
  const early = now < again ? `, and again from ${moment(again)} at the earliest` : "";
  return `${what} are governed by ${who}${offered}${paused}${early}`;
}

// In the words that the page of parameters and `hearth net params` have.
const valueInWords = (field: keyof typeof POLICY_UNITS, policy: Policy, asset: Asset): string =>
  inWords(POLICY_UNITS[field], BigInt(policy[field]), asset);

// What was read of a market's governance at a block. `changes` are those that wait and the newest that are over, oldest first:
// `held` is what the Steward holds of one. `earlier` others were not looked at.
export interface Governance {
  readonly council: Hex;
  readonly offeredCouncil: Hex | null;
  readonly guardian: Hex | null;
  readonly delay: number;
  readonly posts: Governed;
  readonly registrations: Governed;
  readonly changes: readonly HeldChange[];
  readonly earlier: number;
  // The policy of new jobs; by word of each policy that was set the one that it replaced; until when the one before it is taken, 0
  // for none; and when Rules says that the last one was set, as its end.
  readonly policy: Policy;
  readonly replaced: ReadonlyMap<bigint, Policy>;
  readonly previousUntil: number;
  readonly lastUntil: number;
}

export interface HeldChange {
  readonly change: Change;
  readonly due: number;
  readonly held: bigint;
  readonly block: number;
}

// Return the changes for people as of a second: a policy's fields against those it replaced, or would replace now.
export function rowsOf({ changes, policy, replaced, previousUntil, lastUntil }: Governance, asset: Asset, now: number): ChangeRow[] {
  // None was set later than now, whatever a provider says.
  const free = Math.min(previousUntil || lastUntil, now + POLICY_GRACE);
  return changes.map(({ change, due, held, block }) => {
    const state = stateOfChange(held, now);
    const before = state === "executed" ? (replaced.get(change.word) ?? null) : policy;
    return changeRow({ change, due, state, block }, before, asset, free, now);
  });
}
