// The values that every part of the page passes around: states, terms, and the unpacked words of the chain. Mirrors
// hearth/protocol/types.py; what a word holds is read from the generated lane table.

import { BILLING, GATE, OUTCOME, STATE, STATUS, VERDICT } from "../generated/states";
import type { WORDS } from "../generated/words";
import type { Hex } from "./bytes";
import { floorDivInt } from "./numbers";

export type State = (typeof STATE)[keyof typeof STATE];
// States by their names, as the commands print them; tables of them are by this, so that none can be left out.
export type StateName = Lowercase<Exclude<keyof typeof STATE, "NONE">>;
export type Outcome = (typeof OUTCOME)[keyof typeof OUTCOME];
export type Billing = (typeof BILLING)[keyof typeof BILLING];
export type Verdict = (typeof VERDICT)[keyof typeof VERDICT];
export type Status = (typeof STATUS)[keyof typeof STATUS];
export type Gate = (typeof GATE)[keyof typeof GATE];

export interface Lane {
  readonly name: string;
  readonly shift: number;
  readonly width: number;
  readonly kind: "zero" | "bool" | "number" | "code" | "big" | "address";
}

export interface Layout {
  readonly bits: number;
  readonly lanes: readonly Lane[];
}

interface KindValues {
  readonly bool: boolean;
  readonly big: bigint;
  readonly address: Hex;
}
type LaneValue<Kind> = Kind extends keyof KindValues ? KindValues[Kind] : number;

// The values of a word, by the names of its lanes.
export type Values<L extends Layout> = {
  readonly [One in Exclude<L["lanes"][number], { kind: "zero" }> as One["name"]]: LaneValue<One["kind"]>;
};

type Words = typeof WORDS;
type Limits = Omit<Values<Words["limits"]>, "billing">;

export type Needs = Values<Words["needs"]>;
export type Offer = Values<Words["offer"]>;
export type NodeState = Values<Words["hot"]>;
export type Header = Omit<Values<Words["header"]>, "state">;
export type Best = Values<Words["best"]>;
export type Accused = Values<Words["accused"]>;
export type Posted = Values<Words["posted"]>;
export type Kept = Values<Words["kept"]>;
export type Share = Values<Words["share"]>;

// A unit's word. `mark`, `rate` and `node` mean what the state says: read `mark` by windowEnd, deadlineAt, submittedAt.
export interface Unit extends Omit<Values<Words["unit"]>, "state" | "outcome"> {
  readonly state: State;
  readonly outcome: Outcome;
}

// The parameters that a job freezes at post; its three amounts are base units here, and coded in the word.
export interface Policy extends Omit<Values<Words["policy"]>, "minPrice" | "minKeeperFee" | "probationPrice"> {
  readonly minPrice: bigint;
  readonly minKeeperFee: bigint;
  readonly probationPrice: bigint;
}

// A job's terms, frozen at post. Times in seconds, amounts in base units, `ceiling` in base units x 1e6 per second.
export interface Terms extends Limits, Values<Words["money"]> {
  readonly submitter: Hex;
  readonly salt: bigint;
  readonly spec: Hex;
  readonly needs: Needs;
  readonly billing: Billing;
  readonly judgeData: bigint;
  readonly judge: Hex;
  readonly policy: bigint;
  readonly parentsHash: Hex;
}

// Everything that the chain knows of a node. `nextAsk` counts from `nextAskAt` while `offer.pending`.
export interface Node {
  readonly id: number;
  readonly owner: Hex;
  readonly operator: Hex;
  readonly stake: bigint;
  readonly offer: Offer;
  readonly state: NodeState;
  readonly nextAsk: bigint;
  readonly nextAskAt: number;
  readonly exitAt: number;
}

// The unit that nobody has touched: what a word of zero says.
export const NEW_UNIT: Unit = {
  state: STATE.NONE,
  outcome: OUTCOME.NONE,
  node: 0,
  rate: 0n,
  started: 0,
  mark: 0,
  seconds: 0,
  attempts: 0,
  tips: 0,
  lapses: 0,
  flags: 0,
  resume: 0,
  resumable: false,
};

// Say whether a unit in this state has ended.
export const isTerminal = (state: State): boolean => state >= STATE.SETTLED;

// Say whether a unit in this state has a result.
export const hasResult = (state: State): boolean =>
  state === STATE.SUBMITTED || state === STATE.DISPUTED || state === STATE.SETTLED;

// Say whether `submit` takes this outcome; the others are refusals.
export const isResult = (outcome: Outcome): boolean => OUTCOME.OK <= outcome && outcome <= OUTCOME.TIMEOUT;

// Return the end of an OPEN unit's match window, from which its best node may ack; 0 for no proposal.
export const windowEnd = (unit: Unit): number => (unit.state === STATE.OPEN ? unit.mark : 0);

// Return the first second that is too late to submit: the end of the lease, or of a cancel's notice; else 0.
export const deadlineAt = (unit: Unit): number =>
  unit.state === STATE.RUNNING || unit.state === STATE.CLOSING ? unit.mark : 0;

// Return when the result was submitted, 0 where there is none.
export const submittedAt = (unit: Unit): number => (hasResult(unit.state) ? unit.mark : 0);

// Count the leases of a job: units / chunk x replicas. Throws DIVIDE_BY_ZERO for a chunk of zero.
export const leasesOf = (terms: Pick<Terms, "units" | "chunk" | "replicas">): number =>
  floorDivInt(terms.units, terms.chunk) * terms.replicas;

// Return a value's name in lower case, as the commands print it: "running". Empty for a value that has none.
export function nameOf(enumeration: Readonly<Record<string, number>>, value: number): string {
  const found = Object.entries(enumeration).find(([, one]) => one === value);
  return found === undefined ? "" : found[0].toLowerCase();
}
