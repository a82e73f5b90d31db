// The leases that a node took, newest first, and how each ended, from the events of its units.

import { DONE, END_LABELS, FAILED, OUTCOME, VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import type { MarketEvent, NodeUnitEvent } from "./events";
import { type Terms, windowEnd } from "./types";
import { unpackPolicy, unpackUnit } from "./words";

export type End =
  | (typeof END_LABELS)["Settled" | "Reclaimed" | "GaveUp" | "Declined" | "Lapsed" | "Closed" | "Unproven" | "Rejected" | "Submitted"]
  | typeof FAILED
  | "running";

// One attempt of a unit. "let it pass" is a proposal that the node let pass, or that a better node took over.
export interface NodeLease {
  readonly job: Hex;
  readonly index: bigint;
  readonly block: number;
  readonly end: End;
}

// Return what became of each lease and proposal of a node by `now`. Of a job whose terms are not known nobody can say when a proposal
// lapses, and it is left out.
export function leasesOfNode(events: Iterable<MarketEvent>, node: number, now: number, terms: (job: Hex) => Terms | undefined): NodeLease[] {
  const found = new Map<string, NodeLease>();
  const proposed = new Map<string, NodeUnitEvent>();
  for (const event of events) {
    if (event.of !== "node-unit" || event.node !== node) continue;
    const unit = `${event.jobId}:${event.index}`;
    if (event.name === "Proposed") {
      settle(proposed.get(unit), now, terms, found);
      proposed.set(unit, event);
      continue;
    }
    const end = endOf(event);
    if (end === undefined) continue;
    if (event.name === "Started") proposed.delete(unit);
    const attempt = `${unit}:${unpackUnit(event.word).attempts}`;
    const begun = found.get(attempt);
    found.set(attempt, { job: event.jobId, index: event.index, block: begun?.block ?? event.log.blockNumber, end });
  }
  for (const event of proposed.values()) settle(event, now, terms, found);
  return [...found.values()].sort((a, b) => b.block - a.block);
}

// Count leases by how they ended.
export function endsOf(took: Iterable<NodeLease>): ReadonlyMap<End, number> {
  const counts = new Map<End, number>();
  for (const { end } of took) counts.set(end, (counts.get(end) ?? 0) + 1);
  return counts;
}

function settle(event: NodeUnitEvent | undefined, now: number, terms: (job: Hex) => Terms | undefined, found: Map<string, NodeLease>): void {
  const known = event === undefined ? undefined : terms(event.jobId);
  if (event === undefined || known === undefined) return;
  const end = windowEnd(unpackUnit(event.word)) + unpackPolicy(known.policy).ackTime;
  if (now < end) return;
  const { blockNumber, txHash, logIndex } = event.log;
  const key = `${blockNumber}:${txHash}:${logIndex}`;
  found.set(key, { job: event.jobId, index: event.index, block: blockNumber, end: END_LABELS.Lapsed });
}

// Return how an attempt stands after an event; undefined where that does not end or begin it.
export function endOf(event: NodeUnitEvent): End | undefined {
  const ended = (): End => (unpackUnit(event.word).outcome === OUTCOME.OK ? DONE : FAILED);
  switch (event.name) {
    case "Started":
      return "running";
    case "Submitted":
    case "Disputed":
      return END_LABELS.Submitted;
    case "Settled":
    case "Finished":
      return ended();
    case "Ruled":
      if (event.verdict === VERDICT.RELEASE) return END_LABELS.Submitted;
      return event.verdict === VERDICT.REJECT ? END_LABELS.Rejected : event.verdict === VERDICT.VOID ? END_LABELS.Closed : ended();
    case "Declined":
      return END_LABELS.Declined;
    case "GaveUp":
      return END_LABELS.GaveUp;
    case "Reclaimed":
      return END_LABELS.Reclaimed;
    case "Closed":
      return END_LABELS.Closed;
    case "Unproven":
      return END_LABELS.Unproven;
    default:
      return undefined;
  }
}
