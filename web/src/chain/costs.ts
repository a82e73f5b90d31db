// What jobs of a list cost so far: by their words where nothing of them has ended, else by their events and what came of those.

import type { Hex } from "../core/bytes";
import type { MarketEvent } from "../core/events";
import { Strays } from "../core/logs";
import type { Network } from "../core/network";
import { eventsIn } from "../core/posted";
import { costOf, costUntilAnEnd, receiptOf } from "../core/receipt";
import type { Block, Receipt } from "./answers";
import type { Jobs, Standing } from "./jobs";

// Events of a job of which every transaction is asked for: of a longer one its own page adds up the cost.
const MOST_EVENTS = 200;

// All events of the market in some transactions, by hash; none of one that was not read.
export const toldIn = (hashes: Iterable<Hex>, receipts: ReadonlyMap<Hex, Receipt>, network: Network): ReadonlyMap<Hex, readonly MarketEvent[]> =>
  new Map([...hashes].map((hash) => [hash, [...eventsIn(receipts.get(hash)?.logs ?? [], network, new Strays())]]));

// What jobs cost up to a block, as far as their words tell it.
export const knownCosts = (jobs: readonly Standing[]): ReadonlyMap<Hex, bigint> =>
  new Map(jobs.flatMap(({ posted, partial, view }) => {
    const cost = partial ? undefined : costUntilAnEnd(view);
    return cost === undefined ? [] : [[posted.jobId, cost] as const];
  }));

// Read what one job cost up to the block at which it stands; undefined where its events are too many, or are not all there.
export async function readCost(reader: Jobs, { posted, partial, view }: Standing, at: Block): Promise<bigint | undefined> {
  if (partial) return undefined;
  const { market } = reader;
  const events = await reader.events(posted, at);
  if (events.length > MOST_EVENTS) return undefined;
  const { receipts } = await market.about([], events.map(({ log }) => log));
  const transactions = toldIn(events.map(({ log }) => log.txHash), receipts, market.network);
  const cost = costOf(receiptOf(view, posted.jobId, events, transactions, market.network.contracts.JobRegistry));
  return cost < 0n ? undefined : cost;
}
