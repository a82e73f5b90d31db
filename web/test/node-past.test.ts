import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { Jobs } from "../src/chain/jobs";
import { Market } from "../src/chain/market";
import { type NodePast, NodeReader, stakeFault } from "../src/chain/node-past";
import { logsOfProviders } from "../src/chain/log-history";
import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { topicOf } from "../src/core/events";
import { linesOf, stakeIn } from "../src/core/earnings";
import { type Chain, chainOf, HEAD, hashOf, type Lie, only, type RawLog, rangeOf, told } from "./chain";
import { vectors } from "./vectors";

interface Books {
  readonly node: number;
  readonly lines: readonly (readonly [number, string, Hex | null, string, string])[];
}

const BOOKS = vectors<Readonly<Record<string, readonly Books[]>>>("earnings")["native"] as readonly Books[];
const head: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };
const at = (number: number): Block => ({ ...head, number, hash: hashOf(number) });
// Serve so many blocks of logs at once.
const atMost = (blocks: number): Lie =>
  only("eth_getLogs", (params, logs) => {
    const [from, to] = rangeOf(params);
    return to - from + 1 > blocks ? new Error("the range is too wide") : logs;
  });

const readerOf = (chain: Chain, node: number): NodeReader => new NodeReader(new Jobs(chain.market), node);
const brief = (past: NodePast, node: number) =>
  linesOf(past.events, node, (job) => past.terms.get(job)).map(({ log, kind, job, amount, fee }) => [
    log.blockNumber,
    kind,
    job,
    `${amount}`,
    `${fee}`,
  ]);

describe.each(BOOKS.map((one) => [one.node, one.lines] as const))("the past of node %i", (node, lines) => {
  it("is whole back to its registration, with the terms that its books need", async () => {
    const past = await readerOf(chainOf(), node).upTo(head);
    expect([past.whole, past.to]).toEqual([true, HEAD]);
    expect(brief(past, node)).toEqual(lines);
    expect(past.events.every(({ log }) => past.times.has(log.blockHash))).toBe(true);
  });

  it("is the same in small pieces, read back as far as it is asked for", async () => {
    const reader = readerOf(chainOf(atMost(7)), node);
    let past = await reader.upTo(head);
    for (let turns = 0; !past.whole && turns < 1_000; turns += 1) past = (await reader.older()) as typeof past;
    expect(brief(past, node)).toEqual(lines);
  });

  it("grows with new blocks, each read once", async () => {
    const chain = chainOf();
    const reader = readerOf(chain, node);
    const middle = Math.floor(HEAD / 2);
    const before = await reader.upTo(at(middle));
    expect(before.events.every(({ log }) => log.blockNumber <= middle)).toBe(true);
    chain.asked.length = 0;
    const past = await reader.upTo(head);
    expect(brief(past, node)).toEqual(lines);
    const asked = chain.asked.filter(([method, [filter]]) => method === "eth_getLogs" && (filter as { topics: unknown[] }).topics.length !== 2);
    expect(asked.every(([, params]) => rangeOf(params)[0] > middle)).toBe(true);
    expect(await reader.upTo(at(middle))).toBe(past);
  });

  it("is read by one call after the other", async () => {
    const reader = readerOf(chainOf(atMost(7)), node);
    const [first, older, last] = await Promise.all([reader.upTo(at(HEAD - 5)), reader.older(), reader.upTo(head)]);
    expect(older?.from).toBeLessThanOrEqual(first.from);
    expect([last.from, last.to]).toEqual([older?.from, HEAD]);
  });
});

describe("the past of a node", () => {
  it("without its registration is a provider's lie", async () => {
    const registered = topicOf("NodeRegistered");
    const hiding = only("eth_getLogs", (_, logs: RawLog[]) => logs.filter((log) => log.topics[0] !== registered));
    await expect(readerOf(chainOf(hiding), 1).upTo(head).catch(codeOf)).resolves.toBe("RPC_LIES");
  });

  // A node whose stake a log of Slashed has changed.
  const node = BOOKS.find(({ lines }) => lines.some(([, kind]) => kind === "slashed"))?.node as number;
  const viewOf = (past: NodePast, more = 0n) => ({ at: head, node: { id: node, stake: stakeIn(past.events, node) + more } });

  it("accuses nobody over what was kept: it is read anew before", async () => {
    const view = viewOf(await readerOf(chainOf(), node).upTo(head));
    const altered = only("eth_getLogs", (_, logs: RawLog[]) => logs.filter((log) => !SLASHING.includes(log.topics[0] as Hex)));
    const chain = chainOf(altered);
    let forgotten = 0;
    const forget = async (): Promise<boolean> => {
      chain.lie = (_, __, result) => result;
      forgotten += 1;
      return forgotten === 1;
    };
    const { rpc } = chain.market;
    const reader = new NodeReader(new Jobs(new Market(chain.market.network, rpc, { ...logsOfProviders(rpc), forget })), node);
    expect(stakeFault(await reader.upTo(head), view)?.code).toBe("RPC_LIES");
    const past = (await reader.against(view)) as NodePast;
    expect([stakeFault(past, view), forgotten]).toEqual([undefined, 1]);
    expect(await reader.upTo(head)).toBe(past);
    expect(await reader.against(view)).toBe(past);
  });

  it("that leaves another stake than storage says is a provider's lie, of one block and once it is whole alone", async () => {
    const reader = readerOf(chainOf(), node);
    const past = await reader.upTo(head);
    const view = viewOf(past, 1n);
    expect(stakeFault((await reader.against(view)) as NodePast, view)?.code).toBe("RPC_LIES");
    expect(stakeFault({ ...past, whole: false }, view)).toBe(undefined);
    expect(stakeFault(past, { ...view, at: at(HEAD - 1) })).toBe(undefined);
  });
});

const SLASHING = (["Slashed", "Rejected"] as const).map(topicOf);
