// A node's books: each lease by how it ended, and what was earned and lost. Mirrors Watcher._account, Watcher._apply and
// earnings_of of worker/watch.py. Amounts are base units, pay less the market's fee.

import { OUTCOME, VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import type { MarketEvent, NodeUnitEvent } from "./events";
import type { Log } from "./logs";
import { settleReward } from "./money";
import type { Terms } from "./types";
import { unpackShare, unpackUnit } from "./words";

export type Kind =
  | "paid"
  | "failed_theirs"
  | "declined"
  | "given_up"
  | "closed"
  | "reclaimed"
  | "voided"
  | "rejected"
  | "unproven"
  | "checkpoint"
  | "slashed"
  | "lapsed";

// One line of the books; `job` is null for what concerns the stake.
export interface Line {
  readonly log: Log;
  readonly kind: Kind;
  readonly job: Hex | null;
  readonly amount: bigint;
  readonly fee: bigint;
}

// Counts of leases by how they ended, and amounts.
export interface Earnings {
  readonly counts: Readonly<Record<Kind, number>>;
  readonly income: bigint;
  readonly fees: bigint;
  readonly slashed: bigint;
  readonly livenessFees: bigint;
  readonly net: bigint;
}

const KINDS: readonly Kind[] = [
  ...(["paid", "failed_theirs", "declined", "given_up", "closed", "reclaimed", "voided", "rejected", "unproven"] as const),
  ...(["checkpoint", "slashed", "lapsed"] as const),
];

// Return what events say of a node's leases and stake. `terms` are those of a job, undefined where its post is not known: the
// settler's pay, which no event names, is then left out.
export function linesOf(events: Iterable<MarketEvent>, node: number, terms: (job: Hex) => Terms | undefined): Line[] {
  const found: Line[] = [];
  for (const event of events) {
    if (!("node" in event) || event.node !== node) continue;
    const line = lineOf(event, terms);
    if (line !== undefined) found.push(line);
  }
  return found;
}

// Return the stake that events leave to a node, whose registration is among them: what storage says too, else logs are missing.
export function stakeIn(events: Iterable<MarketEvent>, node: number): bigint {
  let stake = 0n;
  for (const event of events) {
    if (!("node" in event) || event.node !== node) continue;
    if (event.name === "NodeRegistered") stake += event.stake;
    else if (event.name === "StakeAdded") stake += event.amount;
    else if (event.name === "ExitFinished") stake -= event.stake;
    else if (event.of === "node") stake -= lineOf(event, () => undefined)?.amount ?? 0n;
  }
  return stake;
}

// Add up the books.
export function earningsOf(lines: Iterable<Line>): Earnings {
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
  let [income, fees, slashed, livenessFees] = [0n, 0n, 0n, 0n];
  for (const { kind, amount, fee } of lines) {
    counts[kind] += 1;
    if (kind === "slashed") slashed += amount;
    else if (kind === "lapsed") livenessFees += amount;
    else {
      income += amount;
      fees += fee;
    }
  }
  return { counts, income, fees, slashed, livenessFees, net: income - slashed - livenessFees };
}

// Return the books of each day in UTC, newest first; `times` are the seconds of blocks by their hashes, and lines of a block whose
// second is not known are under "".
export function byDay(lines: Iterable<Line>, times: ReadonlyMap<Hex, number>): { readonly day: string; readonly of: Earnings }[] {
  const days = new Map<string, Line[]>();
  for (const line of lines) {
    const time = times.get(line.log.blockHash);
    const day = time === undefined ? "" : new Date(time * 1_000).toISOString().slice(0, 10);
    const held = days.get(day);
    if (held === undefined) days.set(day, [line]);
    else held.push(line);
  }
  return [...days].sort(([a], [b]) => (a < b ? 1 : -1)).map(([day, some]) => ({ day, of: earningsOf(some) }));
}

function lineOf(event: MarketEvent, terms: (job: Hex) => Terms | undefined): Line | undefined {
  const { log } = event;
  const stake = (kind: Kind, amount: bigint): Line => ({ log, kind, job: null, amount, fee: 0n });
  switch (event.name) {
    case "NodeLapsed":
      return stake("lapsed", event.fee);
    case "Slashed":
      return stake("slashed", event.reward + event.burnt);
    case "Rejected":
      return stake("slashed", event.shares.reduce((sum, share) => sum + unpackShare(share).amount, event.burnt));
    case "CheckpointPaid":
      return { log, kind: "checkpoint", job: event.jobId, amount: event.pay - event.fee, fee: event.fee };
    default:
      return event.of === "node-unit" ? leaseLine(event, terms) : undefined;
  }
}

function leaseLine(event: NodeUnitEvent, terms: (job: Hex) => Terms | undefined): Line | undefined {
  const { log, jobId: job } = event;
  const nothing = (kind: Kind): Line => ({ log, kind, job, amount: 0n, fee: 0n });
  const ended = (): Kind => (unpackUnit(event.word).outcome === OUTCOME.OK ? "paid" : "failed_theirs");
  switch (event.name) {
    case "Finished": {
      const known = terms(job);
      // The owner has the settler's pay too.
      const reward = known === undefined ? 0n : settleReward(known, 0);
      return { log, kind: ended(), job, amount: event.pay - event.fee + reward, fee: event.fee };
    }
    case "Settled":
      return { log, kind: ended(), job, amount: event.pay - event.fee, fee: event.fee };
    case "Closed":
      return { log, kind: "closed", job, amount: event.pay - event.fee, fee: event.fee };
    case "Ruled":
      if (event.verdict === VERDICT.REJECT) return nothing("rejected");
      if (event.verdict === VERDICT.RELEASE) return undefined;
      return { log, kind: event.verdict === VERDICT.VOID ? "voided" : ended(), job, amount: event.pay - event.fee, fee: event.fee };
    case "Unproven":
      return nothing("unproven");
    case "Declined":
      return nothing("declined");
    case "GaveUp":
      return nothing("given_up");
    case "Reclaimed":
      return nothing("reclaimed");
    default:
      return undefined;
  }
}
