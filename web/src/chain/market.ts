// One market over the providers of a chain: where it stands, what came since, and what is read of it. Mirrors
// hearth/market/reads.py.
//
// Every view names its block by hash, so that what one screen shows is of one block. What no contract writes is
// RPC_LIES, whoever sent it.

import { type Hex, hexNumber } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";
import type { Network } from "../core/network";
import type { Node } from "../core/types";
import { type Block, block, lies, type Receipt, receipt } from "./answers";
import { checkMarket } from "./check";
import { creditsView, jobsView, locksView, nodesView, type Overview, overviewView, type Place, type Status, statusView } from "./lens";
import { type LogHistory, logsOfProviders } from "./log-history";
import { resultOf, type Rpc } from "./rpc";
import { answerOf, askOf, type View } from "./view";

// What came since a block: the newest block, whether a contract of the market may have logged anything meanwhile, and
// whether the chain has lost the block before.
export interface Since {
  readonly head: Block;
  readonly changed: boolean;
  readonly reorged: boolean;
}

const BY_HASH = "eth_getBlockByHash";
const RECEIPT = "eth_getTransactionReceipt";
// Blocks and receipts that one request asks for.
const AT_ONCE = 100;

export class Market {
  readonly #times = new Map<Hex, number>();
  readonly #receipts = new Map<Hex, Receipt>();

  constructor(
    readonly network: Network,
    readonly rpc: Rpc,
    readonly past: LogHistory = logsOfProviders(rpc),
  ) {}

  // Refuse another market than the network file names; brings the newest block along (check.ts).
  check(): Promise<Block> {
    return checkMarket(this.network, this.rpc);
  }

  // The newest block.
  async head(): Promise<Block> {
    return block(await this.rpc.one("eth_getBlockByNumber", ["latest", false]));
  }

  // Look what came since a block, in one round trip. What cannot be known counts as a change, and where `withLogs` is
  // false, since it may be much, nobody asks.
  async since(before: Block, withLogs = true): Promise<Since> {
    const filter = { address: Object.values(this.network.contracts), fromBlock: hexNumber(before.number + 1), toBlock: "latest" };
    const said = await this.rpc.ask([
      { method: "eth_getBlockByNumber", params: ["latest", false] },
      { method: "eth_getBlockByNumber", params: [hexNumber(before.number), false] },
      ...(withLogs ? [{ method: "eth_getLogs", params: [filter] }] : []),
    ]);
    const head = block(resultOf(said[0], "the newest block"));
    const kept = said[1]?.ok === true && said[1].value !== null && block(said[1].value).hash === before.hash;
    const reorged = !kept || head.number < before.number;
    if (head.hash === before.hash) return { head, changed: false, reorged: false };
    const quiet = said[2]?.ok === true && logsOf(said[2].value).length === 0;
    return { head, changed: reorged || !quiet, reorged };
  }

  // Run a reading that finds out by itself whether logs are missing or wrong: before it accuses anybody over what was kept
  // of an earlier visit, that is forgotten, and it is run again.
  async sure<T>(read: () => Promise<T>, accuses: (found: T) => boolean = () => false): Promise<T> {
    try {
      const found = await read();
      if (!accuses(found) || !(await this.#forget())) return found;
    } catch (error) {
      if (!(error instanceof HearthError) || error.code !== "RPC_LIES" || !(await this.#forget())) throw error;
    }
    return read();
  }

  #forget(): Promise<boolean> {
    this.#times.clear();
    return this.past.forget();
  }

  // Return the second of each block, and what each log's transaction came to, in maps that nobody changes; both are kept. A
  // transaction that a reorg has put into another block is asked for again. Throws RPC_ERROR where the provider has one of them no more.
  async about(
    blocks: readonly Hex[],
    logs: readonly Log[],
  ): Promise<{ readonly times: ReadonlyMap<Hex, number>; readonly receipts: ReadonlyMap<Hex, Receipt> }> {
    const places = new Map(logs.map((log) => [log.txHash, log.blockHash]));
    const untold = [...new Set(blocks)].filter((one) => !this.#times.has(one));
    if (untold.length > 0) for (const [hash, time] of await this.past.times(untold)) this.#times.set(hash, time);
    const asks = [
      ...untold.filter((one) => !this.#times.has(one)).map((hash) => [BY_HASH, hash] as const),
      ...[...places]
        .filter(([hash, place]) => this.#receipts.get(hash)?.blockHash !== place)
        .map(([hash]) => [RECEIPT, hash] as const),
    ];
    for (let start = 0; start < asks.length; start += AT_ONCE) {
      const part = asks.slice(start, start + AT_ONCE);
      const said = await this.rpc.ask(
        part.map(([method, hash]) => ({ method, params: method === BY_HASH ? [hash, false] : [hash] })),
      );
      part.forEach(([method, hash], place) => {
        const value = resultOf(said[place], method);
        const mined = method === RECEIPT ? receipt(value, hash) : undefined;
        if (mined !== undefined) this.#receipts.set(hash, mined);
        else if (method === BY_HASH && value !== null) this.#times.set(hash, named(block(value), hash).time);
        else throw new HearthError("RPC_ERROR", `the RPC does not have ${hash} now`, "look again");
      });
    }
    this.past.keepTimes(new Map(untold.map((hash) => [hash, this.#times.get(hash) as number])));
    return { times: some(this.#times, blocks), receipts: some(this.#receipts, [...places.keys()]) };
  }

  // Read several views of one block in one round trip.
  async read<T extends readonly View<unknown>[]>(
    at: Block,
    ...views: T
  ): Promise<{ -readonly [K in keyof T]: T[K] extends View<infer V> ? V : never }> {
    const said = await this.rpc.ask(views.map((view) => askOf(view, { blockHash: at.hash })));
    return (await Promise.all(views.map((view, place) => answerOf(view, said[place])))) as never;
  }

  // The views of this market's Lens (lens.ts).
  overview(): View<Overview> {
    return overviewView(this.network);
  }

  nodes(first: number, count: number): View<Node[]> {
    return nodesView(this.network, first, count);
  }

  jobs(ids: readonly Hex[]): View<bigint[]> {
    return jobsView(this.network, ids);
  }

  status(places: readonly Place[]): View<Status[]> {
    return statusView(this.network, places);
  }

  locks(controller: Hex, keys: readonly Hex[]): View<bigint[]> {
    return locksView(this.network, controller, keys);
  }

  credits(accounts: readonly Hex[]): View<bigint[]> {
    return creditsView(this.network, accounts);
  }
}

function named(found: Block, hash: Hex): Block {
  if (found.hash !== hash) throw lies("another block than was asked for");
  return found;
}

// What is known of some keys, in a map of its own.
const some = <K, V>(known: ReadonlyMap<K, V>, keys: readonly K[]): ReadonlyMap<K, V> =>
  new Map(keys.flatMap((key) => (known.has(key) ? [[key, known.get(key) as V] as const] : [])));
