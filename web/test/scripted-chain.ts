// A chain that a test mines and reorganises by hand, a provider that serves it, and a store that a test can break.

import { keccak256 } from "viem/utils";

import type { Block } from "../src/chain/answers";
import type { Fetch } from "../src/chain/endpoint";
import type { Filter } from "../src/chain/logs";
import type { Head, Store } from "../src/chain/visit-store";
import { type Hex, utf8 } from "../src/core/bytes";

export const hashOf = (text: string): Hex => keccak256(utf8(text));
export const ESCROW: Hex = `0x${"e5".repeat(20)}`;
export const JOBS: Hex = `0x${"0b".repeat(20)}`;
export const [POSTED, STARTED] = [hashOf("posted"), hashOf("started")];

export interface Said {
  readonly address: Hex;
  readonly topics: readonly Hex[];
}

interface Mined extends Block {
  readonly logs: readonly Record<string, unknown>[];
}

const quantity = (value: number): string => `0x${value.toString(16)}`;

export class Chain {
  readonly blocks: Mined[] = [];
  #fork = 0;

  constructor() {
    this.mine([]);
  }

  get head(): Block {
    return this.blocks.at(-1) as Block;
  }

  mine(said: readonly Said[]): Block {
    const [number, parent] = [this.blocks.length, this.blocks.at(-1)?.hash ?? hashOf("nothing")];
    const hash = hashOf(`${parent} ${this.#fork} ${number}`);
    const logs = said.map((one, at) => {
      const transactionHash = hashOf(`${hash} ${at}`);
      // Places in a block as most providers tell them, the transaction's with the log's.
      const [transactionIndex, logIndex] = [quantity(at), quantity(at)];
      return { ...one, data: "0x", blockNumber: quantity(number), blockHash: hash, transactionHash, transactionIndex, logIndex };
    });
    this.blocks.push({ number, hash, parent, time: 1_000 + number, logs });
    return this.head;
  }

  // Drop the newest blocks; what is mined from now on is another chain.
  drop(depth: number): void {
    this.blocks.length -= depth;
    this.#fork += 1;
  }

  // The places of the logs that a filter asks for, in order.
  places(filter: Filter, from: number, to: number): string[] {
    return this.matching(filter, from, to).map((log) => `${String(log["blockHash"])}:${Number(log["logIndex"])}`);
  }

  matching({ addresses, topics }: Filter, from: number, to: number): Record<string, unknown>[] {
    const wanted = (log: Record<string, unknown>): boolean =>
      addresses.includes(log["address"] as Hex) &&
      topics.every((topic, at) => topic === null || [topic].flat().includes((log["topics"] as Hex[])[at] as Hex));
    return this.blocks.slice(from, to + 1).flatMap((block) => block.logs.filter(wanted));
  }
}

// A provider of a chain; what it was asked is noted.
export class Provider {
  // Requests, each with the methods in it, and the ranges of logs that were asked for.
  readonly requests: string[][] = [];
  readonly ranges: [number, number][] = [];
  most = Number.POSITIVE_INFINITY;
  // Runs before each answer; what it returns is the answer.
  before: (method: string) => Record<string, unknown> | undefined = () => undefined;

  constructor(readonly chain: Chain) {}

  readonly fetch: Fetch = async (_, init) => {
    const raw = JSON.parse(String(init.body)) as Asked | Asked[];
    const asked = [raw].flat();
    this.requests.push(asked.map((one) => one.method));
    const said = asked.map((one) => ({ jsonrpc: "2.0", id: one.id, ...(this.before(one.method) ?? this.#answer(one)) }));
    return new Response(JSON.stringify(Array.isArray(raw) ? said : said[0]));
  };

  clear(): void {
    this.requests.length = this.ranges.length = 0;
  }

  #answer({ method, params }: Asked): Record<string, unknown> {
    const [first] = params;
    if (method === "eth_getBlockByNumber") return { result: shown(first === "latest" ? this.chain.blocks.at(-1) : this.chain.blocks[Number(first)]) };
    if (method === "eth_getBlockByHash") return { result: shown(this.chain.blocks.find((block) => block.hash === first)) };
    const { address, topics, fromBlock, toBlock, blockHash } = first as Record<string, unknown>;
    if (blockHash !== undefined) {
      const at = this.chain.blocks.findIndex((block) => block.hash === blockHash);
      if (at < 0) return { error: { code: -32_000, message: "unknown block" } };
      return { result: this.chain.matching({ addresses: address as Hex[], topics: [] }, at, at) };
    }
    const [from, to] = [Number(fromBlock), Number(toBlock)];
    if (to - from + 1 > this.most) return { error: { code: -32_005, message: "range too wide" } };
    this.ranges.push([from, to]);
    return { result: this.chain.matching({ addresses: address as Hex[], topics: topics as Filter["topics"] }, from, to) };
  }
}

interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

const shown = (block: Block | undefined): unknown =>
  block === undefined
    ? null
    : { number: quantity(block.number), hash: block.hash, parentHash: block.parent, timestamp: quantity(block.time) };

// A store in memory, which fails where a test says so.
export class FakeStore implements Store {
  readonly kept = new Map<string, unknown>();
  readonly texts = new Map<string, unknown>();
  writes = 0;
  // Runs before each call.
  fault: (call: "heads" | "text" | "write" | "erase") => Promise<void> | void = () => undefined;

  async heads(): Promise<readonly unknown[]> {
    await this.fault("heads");
    return [...this.kept.values()].map((head) => structuredClone(head));
  }

  async text(id: string): Promise<unknown> {
    await this.fault("text");
    return this.texts.get(id);
  }

  async write(puts: readonly { readonly head: Head; readonly text?: string }[], drops: readonly string[]): Promise<void> {
    await this.fault("write");
    this.writes += 1;
    for (const { head, text } of puts) {
      if (text === undefined && !this.kept.has(head.id)) continue;
      this.kept.set(head.id, structuredClone(head));
      if (text !== undefined) this.texts.set(head.id, text);
    }
    for (const id of drops) {
      this.kept.delete(id);
      this.texts.delete(id);
    }
  }

  async erase(): Promise<void> {
    await this.fault("erase");
    this.kept.clear();
    this.texts.clear();
  }

  // Characters of all texts.
  get size(): number {
    return [...this.texts.values()].reduce((sum: number, text) => sum + String(text).length, 0);
  }
}

// Numbers below `most` that a seed gives: xorshift32.
export function dice(seed: number): (most: number) => number {
  let state = (seed * 2_654_435_761 + 1) >>> 0 || 1;
  return (most) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % most;
  };
}
