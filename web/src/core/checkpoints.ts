// What a job's attempts left for the next ones, and what came of it: by its events. Mirrors
// hearth/client/job/checkpoints.py.

import { SENTINEL } from "../generated/bounds";
import { STATE } from "../generated/states";
import type { MarketEvent } from "./events";
import { stateCid } from "./sentences";
import { isTerminal } from "./types";
import { unpackUnit } from "./words";

// The last checkpoint of an attempt: `seconds` after its start, the CID of its files, and what it earned. It is `kept`
// once the attempt is lost and its unit open again, as long as a result may be made of it.
export interface Checkpoint {
  readonly attempt: number;
  readonly node: number;
  readonly seconds: number;
  readonly root: string;
  readonly resumedFrom: number | null;
  readonly kept: boolean;
  readonly paid: { readonly pay: bigint; readonly fee: bigint } | null;
}

// What was paid for a checkpoint; `pay` includes `fee`.
export interface PaidCheckpoint {
  readonly unit: number;
  readonly attempt: number;
  readonly node: number;
  readonly pay: bigint;
  readonly fee: bigint;
}

// Return by unit the last checkpoint of each attempt that has one, oldest attempt first; `events` are one job's.
export function checkpointsIn(events: Iterable<MarketEvent>): ReadonlyMap<number, readonly Checkpoint[]> {
  const found = new Map<number, Map<number, Checkpoint>>();
  const ended = new Set<number>();
  for (const event of events) {
    if (!("index" in event) || event.index === SENTINEL) continue;
    const index = Number(event.index);
    const rows = found.get(index) ?? new Map<number, Checkpoint>();
    if (event.name === "CheckpointPaid") {
      const row = rows.get(event.attempt);
      if (row !== undefined) rows.set(row.attempt, { ...row, paid: { pay: event.pay, fee: event.fee } });
      continue;
    }
    // An unlocked job has no attempt yet.
    if (event.name === "Unlocked") continue;
    const unit = unpackUnit(event.word);
    if (isTerminal(unit.state)) ended.add(index);
    else ended.delete(index);
    if (event.name === "Checkpointed") {
      rows.set(unit.attempts, {
        attempt: unit.attempts,
        node: event.node,
        seconds: event.seconds,
        root: stateCid(event.root),
        resumedFrom: unit.resume === 0 ? null : unit.resume,
        kept: false,
        paid: null,
      });
      found.set(index, rows);
    } else if (event.name === "Reclaimed" || event.name === "GaveUp") {
      const row = rows.get(unit.attempts);
      if (row !== undefined && unit.state === STATE.OPEN) rows.set(row.attempt, { ...row, kept: true });
    }
  }
  return new Map([...found].map(([index, rows]) => [index, rowsOf(rows, ended.has(index))]));
}

// Return what was paid for checkpoints, in the order of their payment.
export function paidIn(events: Iterable<MarketEvent>): readonly PaidCheckpoint[] {
  const found: PaidCheckpoint[] = [];
  for (const event of events) {
    if (event.name !== "CheckpointPaid") continue;
    const { attempt, node, pay, fee } = event;
    found.push({ unit: Number(event.index), attempt, node, pay, fee });
  }
  return found;
}

// What no result was made of is kept no more once the unit has ended.
function rowsOf(rows: ReadonlyMap<number, Checkpoint>, ended: boolean): readonly Checkpoint[] {
  const sorted = [...rows.values()].sort((a, b) => a.attempt - b.attempt);
  return ended ? sorted.map((row) => ({ ...row, kept: row.kept && row.paid !== null })) : sorted;
}
