// Where a job's money went, by its events and those of the same transactions. Mirrors hearth/client/job/receipt.py. Amounts
// are base units; gas is not among them.

import { VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import { type PaidCheckpoint, paidIn } from "./checkpoints";
import { type EventNamed, isUnitEvent, type MarketEvent } from "./events";
import { escrowAtPost, jobHolds, leaseBudget, topped } from "./money";
import { isTerminal } from "./types";
import type { JobView } from "./view";
import { unpackShare } from "./words";

// What was locked for a job, of it by top-ups; what still is; what owners of nodes got, the market's treasury, keepers,
// and the submitter back. `workers` includes what was paid for `checkpoints`.
export interface Receipt {
  readonly escrow: bigint;
  readonly toppedUp: bigint;
  readonly stillLocked: bigint;
  readonly workers: bigint;
  readonly checkpoints: readonly PaidCheckpoint[];
  readonly marketFee: bigint;
  readonly keepers: bigint;
  readonly refunded: bigint;
}

// Return where a job's money went. `events` are the job's, `transactions` all events of the market in their
// transactions, by hash; `registry` is the job registry's address.
export function receiptOf(
  view: JobView,
  job: Hex,
  events: readonly MarketEvent[],
  transactions: ReadonlyMap<Hex, readonly MarketEvent[]>,
  registry: Hex,
): Receipt {
  let [pay, fee, toppedUp] = [0n, 0n, 0n];
  for (const event of events) {
    if (event.name === "ToppedUp") toppedUp += event.amount;
    if ("pay" in event) {
      pay += event.pay;
      fee += event.fee;
    }
  }
  let [refunded, settled, keepers] = [0n, 0n, 0n];
  for (const hash of new Set(events.map((event) => event.log.txHash))) {
    const shares = sharesIn(transactions.get(hash) ?? [], job, registry);
    refunded += shares.refunded;
    settled += shares.settled;
    keepers += shares.keepers;
  }
  return {
    escrow: escrowAtPost(view.terms) + toppedUp,
    toppedUp,
    stillLocked: jobHolds(view.terms, view.header, view.units),
    workers: pay - fee + settled,
    checkpoints: paidIn(events),
    marketFee: fee,
    keepers,
    refunded,
  };
}

// What is spent of a job's escrow so far: what neither is still locked nor came back.
export const costOf = ({ escrow, stillLocked, refunded }: Receipt): bigint => escrow - stillLocked - refunded;

// The same by a job's words alone; undefined once a lease has ended or cannot be taken any more, since it may have come back.
export function costUntilAnEnd({ terms, header, units }: JobView): bigint | undefined {
  if (header?.closed === true || units.some(({ state }) => isTerminal(state))) return undefined;
  const toppedUp = units.reduce((sum, unit) => sum + leaseBudget(topped(terms, unit)) - leaseBudget(terms), 0n);
  return escrowAtPost(terms) + toppedUp - jobHolds(terms, header, units);
}

// What a transaction gave back to a job's submitter, to owners of nodes for settling their own results, and to keepers.
export interface Shares {
  readonly refunded: bigint;
  readonly settled: bigint;
  readonly keepers: bigint;
}

// Return the shares of a job in a transaction with these events. A split names the submitter, who may have other jobs
// in the same transaction: it is of the job whose event came last before it, since the registry tells of a unit and
// then splits. The place of a share says whose it is (contracts/JobRegistry.vy); an account may be several parties at
// once.
export function sharesIn(events: Iterable<MarketEvent>, job: Hex, registry: Hex): Shares {
  const found = { refunded: 0n, settled: 0n, keepers: 0n };
  let last: MarketEvent | null = null;
  let checkpoint = false;
  for (const event of events) {
    // Between a unit's end and the split of what it held: the next one is its own, and goes to nobody else.
    if (event.name === "CheckpointPaid") checkpoint = true;
    else if (isUnitEvent(event)) last = event.jobId === job ? event : null;
    if (event.name !== "Split" || event.controller !== registry) continue;
    if (checkpoint || last === null) {
      checkpoint = false;
      continue;
    }
    const [back, first, second, rest] = placesOf(last, event);
    found.refunded += back;
    found.keepers += first;
    found.settled += second;
    found.keepers += rest;
    last = null;
  }
  return found;
}

// Return what a split after an event gave back, to keepers, to the settling owner, and to a proposer.
function placesOf(last: MarketEvent, split: EventNamed<"Split">): readonly [bigint, bigint, bigint, bigint] {
  const [first, second, third, fourth] = split.shares.map((share) => unpackShare(share).amount) as Four;
  if (last.name === "Finished") return [fourth, 0n, third, 0n];
  const rejected = last.name === "Ruled" && last.verdict === VERDICT.REJECT;
  if (last.name === "Settled" || last.name === "Closed" || (last.name === "Ruled" && !rejected)) {
    return [fourth, third, 0n, 0n];
  }
  return rejected || REFUNDS.has(last.name) ? [first, second, 0n, 0n] : [0n, 0n, 0n, first];
}

type Four = [bigint, bigint, bigint, bigint];

const REFUNDS: ReadonlySet<string> = new Set<MarketEvent["name"]>([
  ...(["Cancelled", "Declined", "GaveUp", "Reclaimed", "Expired", "Unproven", "Unlocked"] as const),
]);
