import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { decodeOf, type EventName, topicOf } from "../src/core/events";
import { type Log, logsOf, Strays } from "../src/core/logs";
import type { Contract } from "../src/core/network";
import { eventsIn, postedOf } from "../src/core/posted";
import { EVENTS } from "../src/generated/events";
import { vectors } from "./vectors";

interface Vectors {
  readonly events: readonly {
    readonly contract: Contract;
    readonly log: unknown;
    readonly event: Readonly<Record<string, unknown>> & { readonly name: EventName };
  }[];
}

interface Brief {
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly at: number;
}

interface Refused {
  readonly refused: readonly {
    readonly contract: Contract;
    readonly log: Brief;
    readonly code: string;
  }[];
  readonly market: { readonly jobs: Hex; readonly jobChainId: number };
  readonly posts: readonly { readonly log: Brief; readonly code?: string }[];
  readonly answers: readonly { readonly answer: unknown; readonly logs?: unknown; readonly code?: string }[];
  readonly strays: readonly { readonly count: number; readonly first: string[]; readonly words: string }[];
}

const { events } = vectors<Vectors>("events");
const nonsense = vectors<Refused>("strays");
const ZERO = `0x${"00".repeat(32)}` as const;
const place = { address: `0x${"c0".repeat(20)}`, blockNumber: 7, blockHash: ZERO, txHash: ZERO } as const;

// A value as the vectors have it: whole numbers from 2^53 as decimal text.
function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== "bigint" && typeof value !== "number") return value;
  return Math.abs(Number(value)) < 2 ** 53 ? Number(value) : `${BigInt(value)}`;
}

describe("events", () => {
  it.each(events.map((one, at) => [one.event.name, at, one] as const))("decodes %s (%i)", (_, __, one) => {
    const [log] = logsOf([one.log]);
    const { of, log: read, ...values } = decodeOf(log as Log, one.contract);
    expect(read).toBe(log);
    expect(of).toBe(EVENTS.find((layout) => layout.name === one.event.name)?.of);
    const told = Object.entries(values).map(([name, value]) => [name, said(value)]);
    expect(Object.fromEntries(told)).toEqual(one.event);
  });

  it("has a vector for every event of every contract", () => {
    const seen = new Set(events.map((one) => `${one.contract} ${one.event.name}`));
    const known = EVENTS.flatMap((layout) => layout.emitters.map((contract) => `${contract} ${layout.name}`));
    expect([...seen].sort()).toEqual([...known].sort());
    expect(topicOf("JobPosted")).toBe(EVENTS[0].topic);
  });

  it.each(nonsense.posts.map((one, at) => [one.code ?? "a post", at, one] as const))("reads %s (%i)", (_, __, one) => {
    const { jobs, jobChainId } = nonsense.market;
    const contracts = { JobRegistry: jobs } as Readonly<Record<Contract, Hex>>;
    const market = { contracts, jobChainId: BigInt(jobChainId) };
    const { topics, data, at } = one.log;
    const log = { ...place, address: jobs, topics, data, logIndex: at };
    const event = decodeOf(log, "JobRegistry");
    let found: unknown = null;
    try {
      if (event.name === "JobPosted") expect(postedOf(event, market).jobId).toBe(topics[1]);
    } catch (error) {
      found = error;
    }
    expect(found === null ? undefined : codeOf(found)).toBe(one.code);
    const strays = new Strays();
    const foreign = { ...log, address: place.address };
    expect([...eventsIn([foreign, log], market, strays)].length + strays.count).toBe(1);
    expect(strays.count).toBe(one.code === undefined ? 0 : 1);
  });

  it.each(nonsense.refused.map((one, at) => [one.code, at, one] as const))("refuses: %s (%i)", (...all) => {
    const { contract, log, code } = all[2];
    let refusal: unknown;
    try {
      decodeOf({ ...place, topics: log.topics, data: log.data, logIndex: log.at }, contract);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Error);
    expect(codeOf(refusal)).toBe(code);
  });
});

describe("logs", () => {
  it.each(nonsense.answers.map((one, at) => [at, one] as const))("reads answer %i as the library", (_, one) => {
    let found: unknown;
    try {
      found = logsOf(one.answer);
    } catch (error) {
      found = codeOf(error);
    }
    expect(found).toEqual(one.logs ?? one.code);
  });

  it.each(nonsense.strays)("says of $count strays", ({ count, first, words }) => {
    const strays = new Strays();
    for (const at of [...Array(count).keys(), ...Array(count).keys()]) {
      strays.note({ ...place, topics: [], data: "0x", blockNumber: 9, logIndex: at }, `reason ${at}`);
    }
    expect([strays.count, strays.first, strays.inWords()]).toEqual([count, first, words]);
  });
});
