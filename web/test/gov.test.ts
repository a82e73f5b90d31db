import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { readGovernance } from "../src/chain/gov";
import type { Overview } from "../src/chain/lens";
import type { Market } from "../src/chain/market";
import type { View } from "../src/chain/view";
import type { Hex } from "../src/core/bytes";
import { type Change, changeId, changeOf } from "../src/core/changes";
import { type EventName, topicOf } from "../src/core/events";
import type { Log } from "../src/core/logs";
import { networkOf } from "../src/core/network";
import { DROPPED, EXECUTED, LIFE } from "../src/generated/changes";
import { vectors } from "./vectors";

const NETWORK = networkOf(vectors<{ networks: Record<string, unknown> }>("calls").networks["coin"]);
const { Steward, Rules } = NETWORK.contracts;
const POLICY = BigInt(vectors<{ cases: readonly { terms: readonly string[] }[] }>("fleet").cases[0]?.terms[7] ?? 0);
const NOW = 1_760_000_000;
const HASH: Hex = `0x${"c".repeat(64)}`;
const AT: Block = { number: 50, hash: HASH, parent: HASH, time: NOW };
const COUNCIL: Hex = `0x${"c0".repeat(20)}`;
const NOBODY: Hex = `0x${"00".repeat(20)}`;

const word = (value: bigint | number): string => BigInt(value).toString(16).padStart(64, "0");
const stake = (amount: number): Change => changeOf(2n, BigInt(amount), 0n);

let index = 0;
const log = (address: Hex, name: EventName, topics: readonly string[], data: string): Log => ({
  address,
  topics: [topicOf(name), ...topics.map((one): Hex => `0x${one}`)],
  data: `0x${data}`,
  blockNumber: 40,
  blockHash: HASH,
  txHash: HASH,
  logIndex: (index += 1),
});
const queued = (change: Change, due: number): Log =>
  log(Steward, "ChangeQueued", [changeId(change).slice(2), word(change.op)], word(change.word) + word(change.salt) + word(due));
const ended = (change: Change): Log => log(Steward, "ChangeDropped", [changeId(change).slice(2)], "");

// A market whose Steward holds `held`, as its provider tells of it by `logs`.
function marketOf(logs: readonly Log[], held: ReadonlyMap<Hex, bigint>, asked: Hex[] = []): Market {
  const said: Readonly<Record<string, unknown>> = {
    "lens.overview": { policy: POLICY, previousUntil: 0 } as Overview,
    "steward.council": COUNCIL,
    "steward.DELAY": 60n,
    "rules.governor": Steward,
    "nodes.governor": COUNCIL,
  };
  const answer = (view: View<unknown>): unknown => {
    if (view.label === "steward.changes") {
      asked.push(`0x${view.data.slice(10)}`);
      return held.get(`0x${view.data.slice(10)}`) ?? 0n;
    }
    const raw = said[view.label] ?? (view.label.endsWith("paused_until") ? 0n : NOBODY);
    return view.label === "steward.DELAY" || view.label.endsWith("paused_until") ? Number(raw) : raw;
  };
  return {
    network: NETWORK,
    overview: () => ({ label: "lens.overview", data: "0x" }),
    read: async (_: Block, ...views: readonly View<unknown>[]) => views.map(answer),
    past: {
      async *logs({ addresses }: { readonly addresses: readonly Hex[] }) {
        yield { from: 0, to: 50, logs: logs.filter((one) => addresses.includes(one.address)) };
      },
    },
  } as unknown as Market;
}

const read = (logs: readonly Log[], held: readonly (readonly [Change, bigint])[], asked?: Hex[]) =>
  readGovernance(marketOf(logs, new Map(held.map(([change, state]) => [changeId(change), state])), asked), AT);

describe("a market's governance", () => {
  it("is its seats, who governs what, and every change as the Steward holds it", async () => {
    const [waits, over, dropped] = [stake(1), stake(2), stake(3)];
    const gov = await read(
      [queued(over, NOW - 9), queued(waits, NOW + 9), queued(dropped, NOW + 9), ended(dropped)],
      [[waits, BigInt(NOW + 9)], [over, BigInt(EXECUTED)], [dropped, BigInt(DROPPED)]],
    );
    expect([gov.council, gov.guardian, gov.posts.steward, gov.registrations.steward]).toEqual([COUNCIL, null, true, false]);
    expect(gov.changes.map(({ change, held }) => [change.word, held])).toEqual([
      [2n, BigInt(EXECUTED)],
      [1n, BigInt(NOW + 9)],
      [3n, BigInt(DROPPED)],
    ]);
    expect(gov.strays.count).toBe(0);
  });

  it("has no change that logs alone queue", async () => {
    const gov = await read([queued(stake(1), NOW + 9)], []);
    expect([gov.changes, gov.strays.count]).toEqual([[], 1]);
  });

  it("has a change when the Steward says that it is due, not when its log does", async () => {
    const gov = await read([queued(stake(1), NOW - 9)], [[stake(1), BigInt(NOW + 60)]]);
    expect([gov.changes[0]?.due, gov.strays.count]).toEqual([NOW + 60, 1]);
  });

  it("has a change that a made-up log calls over, while the Steward holds it", async () => {
    const gov = await read([queued(stake(1), NOW + 9), ended(stake(1))], [[stake(1), BigInt(NOW + 9)]]);
    expect(gov.changes.map(({ due }) => due)).toEqual([NOW + 9]);
  });

  it("looks up the newest that are over alone, and counts the others", async () => {
    const old = Array.from({ length: 25 }, (_, at) => stake(at + 1));
    const asked: Hex[] = [];
    const gov = await read(old.map((one) => queued(one, NOW - LIFE)), old.map((one) => [one, BigInt(NOW - LIFE)] as const), asked);
    expect([gov.changes.length, gov.earlier, asked.length]).toEqual([10, 15, 10]);
    expect(gov.changes.at(-1)?.change.word).toBe(25n);
  });

  it("knows of each policy which one it replaced, and when the last was set", async () => {
    const set = log(Rules, "PolicyChanged", [], word(POLICY) + word(POLICY) + word(NOW + 5));
    const first = log(Rules, "PolicyChanged", [], word(POLICY) + word(0) + word(0));
    const gov = await read([first, set], []);
    expect([gov.replaced.size, gov.lastUntil]).toEqual([1, NOW + 5]);
  });
});
