// One job as its page reads it: how it stands, its events, and what is asked of nodes beside it.

import type { Block } from "../chain/answers";
import { type Jobs, type Standing, standingAt } from "../chain/jobs";
import type { MarketEvent } from "../core/events";
import type { Posted } from "../core/posted";
import type { Seen } from "../core/steps";
import { isBlocked } from "../core/view";
import { type ParentView, waitsFor } from "../core/parent-progress";
import { STATE } from "../generated/states";

export interface WholeJob {
  readonly standing: Standing;
  readonly events: readonly MarketEvent[];
  // What a blocked job waits for.
  readonly parents: readonly ParentView[];
  readonly seen: Seen;
  readonly at: Block;
}

export async function readWhole(reader: Jobs, posted: Posted, at: Block): Promise<WholeJob> {
  const [standing, events] = await Promise.all([reader.whole(posted, at), reader.events(posted, at)]);
  const parents = isBlocked(standing.view) ? await reader.parents(posted, at) : [];
  const running = standing.view.units.filter((unit) => unit.state === STATE.RUNNING).map((unit) => unit.node);
  const ids = [...new Set(running)].slice(0, 64);
  const pages = await reader.market.read(at, ...ids.map((id) => reader.market.nodes(id, 1)));
  const lastSeen = new Map(pages.flat().map((node) => [node.id, node.state.beat]));
  const { network } = reader.market;
  const seen = { lastSeen, deadAfter: Number(network.nodeParameters.dead_after), attesters: network.contracts.Attesters };
  return waiting({ standing, events, parents, seen, at });
}

export const isRunning = (whole: WholeJob | undefined): boolean =>
  whole?.standing.view.units.some((unit) => unit.state === STATE.RUNNING) === true;

// Return what was read as of the newest block; while a node runs a unit, as of when its last beat was read.
export const asOf = (whole: WholeJob, now: number): WholeJob =>
  isRunning(whole) ? whole : waiting({ ...whole, standing: standingAt(whole.standing, now) });

// Say what a blocked job waits for.
function waiting(whole: WholeJob): WholeJob {
  const { view } = whole.standing;
  const waits = isBlocked(view) && whole.parents.length > 0 ? waitsFor(view, whole.parents) : null;
  return { ...whole, seen: { ...whole.seen, waits } };
}
