// The leases that a node took, newest first, and how each ended, from the events of its units.

import { OUTCOME, VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import type { MarketEvent, NodeUnitEvent } from "./events";
import { type Terms, windowEnd } from "./types";
import { unpackPolicy, unpackUnit } from "./words";

export type End =
  | "ok"
  | "failed"
  | "reclaimed"
  | "given up"
  | "declined"
  | "lapsed"
  | "closed"
  | "rejected"
  | "unproven"
  | "submitted"
  | "running";

// One attempt of a unit. `lapsed` is a proposal that the node let pass, or that a better node took over.
export interface Took {
  readonly job: Hex;
  readonly index: bigint;
  readonly block: number;
  readonly end: End;
}

// Return what became of each lease and proposal of a node by `now`. Of a job whose terms are not known nobody can say when a proposal
// lapses, and it is left out.
export function tookBy(events: Iterable<MarketEvent>, node: number, now: number, terms: (job: Hex) => Terms | undefined): Took[] {
  const found = new Map<string, Took>();
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
export function endsOf(took: Iterable<Took>): ReadonlyMap<End, number> {
  const counts = new Map<End, number>();
  for (const { end } of took) counts.set(end, (counts.get(end) ?? 0) + 1);
  return counts;
}

function settle(event: NodeUnitEvent | undefined, now: number, terms: (job: Hex) => Terms | undefined, found: Map<string, Took>): void {
  const known = event === undefined ? undefined : terms(event.jobId);
  if (event === undefined || known === undefined) return;
  const end = windowEnd(unpackUnit(event.word)) + unpackPolicy(known.policy).ackTime;
  if (now < end) return;
  const { blockNumber, logIndex } = event.log;
  found.set(`${blockNumber}:${logIndex}`, { job: event.jobId, index: event.index, block: blockNumber, end: "lapsed" });
}

function endOf(event: NodeUnitEvent): End | undefined {
  const ended = (): End => (unpackUnit(event.word).outcome === OUTCOME.OK ? "ok" : "failed");
  switch (event.name) {
    case "Started":
      return "running";
    case "Submitted":
    case "Disputed":
      return "submitted";
    case "Settled":
    case "Finished":
      return ended();
    case "Ruled":
      if (event.verdict === VERDICT.RELEASE) return "submitted";
      return event.verdict === VERDICT.REJECT ? "rejected" : event.verdict === VERDICT.VOID ? "closed" : ended();
    case "Declined":
      return "declined";
    case "GaveUp":
      return "given up";
    case "Reclaimed":
      return "reclaimed";
    case "Closed":
      return "closed";
    case "Unproven":
      return "unproven";
    default:
      return undefined;
  }
}
