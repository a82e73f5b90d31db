import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { CourseReader } from "../src/chain/course";
import { UnendedReader } from "../src/chain/upkeep";
import { codeOf } from "../src/core/errors";
import { tasksOf } from "../src/core/upkeep";
import { type Chain, chainOf, HEAD, hashOf, type Lie, network, only, rangeOf, told } from "./chain";

const at = (number: number): Block => ({ number, hash: hashOf(number), parent: hashOf(number - 1), time: told.now });
const head = at(HEAD);
const ENDS = ["done", "failed", "refunded", "cancelled", "expired"];

interface Read extends Chain {
  readonly reader: CourseReader;
  readonly pauses: number[];
}

// What was read until each turn that others had.
function courseOf(lie?: Lie): Read {
  const made = chainOf(lie);
  const pauses: number[] = [];
  const reader = new CourseReader(made.market, async () => void pauses.push(made.asked.length));
  return { ...made, reader, pauses };
}

const ranges = ({ asked }: Chain): (readonly [number, number])[] =>
  asked.filter(([method]) => method === "eth_getLogs").map(([, params]) => rangeOf(params));

describe("the course of a market", () => {
  it("is the same read at once, in pieces, and block by block", async () => {
    const whole = await courseOf().reader.read(head, () => undefined);
    expect(whole.steps.length).toBeGreaterThan(5);
    const narrow = courseOf(
      only("eth_getLogs", (params, logs) => {
        const [from, to] = rangeOf(params);
        return to - from + 1 > 7 ? new Error("the range is too wide") : logs;
      }),
    );
    expect(await narrow.reader.read(head, () => undefined)).toEqual(whole);
    const { reader } = courseOf();
    for (let block = 1; block < HEAD; block += 5) await reader.read(at(block), () => undefined);
    expect(await reader.read(head, () => undefined)).toEqual(whole);
  });

  it("asks for nothing that it has read", async () => {
    const read = courseOf();
    await read.reader.read(at(HEAD - 3), () => undefined);
    expect(read.reader.ahead(head)).toBe(3);
    const before = read.asked.length;
    await read.reader.read(head, () => undefined);
    expect(ranges({ ...read, asked: read.asked.slice(before) })).toEqual([[HEAD - 2, HEAD], [HEAD - 2, HEAD]]);
    const after = read.asked.length;
    await read.reader.read(head, () => undefined);
    expect(read.asked.length).toBe(after);
  });

  it("counts each event once, whatever failed between", async () => {
    // Ranges are narrow, so that much was read before the first failure.
    let asked = 0;
    const read = courseOf((method, params, result) => {
      if (method === "eth_getBlockByHash" && (asked += 1) === 20) return null;
      const [from, to] = method === "eth_getLogs" ? rangeOf(params) : [0, 0];
      return to - from + 1 > 7 ? new Error("the range is too wide") : result;
    });
    const whole = await courseOf().reader.read(head, () => undefined);
    await expect(read.reader.read(head, () => undefined)).rejects.toSatisfy((error) => codeOf(error) === "RPC_ERROR");
    expect(read.reader.ahead(head)).toBeLessThan(HEAD);
    const [first, second] = await Promise.all([read.reader.read(head, () => undefined), read.reader.read(head, () => undefined)]);
    expect(first).toEqual(whole);
    expect(second).toEqual(whole);
  });

  it("gives others a turn within so many logs", async () => {
    const read = courseOf();
    let upTo = 0;
    await read.reader.read(head, (block) => (upTo = block));
    expect(upTo).toBe(HEAD);
    // While they are decoded, and while they are added up.
    expect(told.logs.length).toBeGreaterThan(200);
    expect(read.pauses.length).toBeGreaterThanOrEqual(2 * Math.floor(told.logs.length / 100) - 1);
  });

  it("asks for the seconds of those blocks alone whose words do not say them", async () => {
    const read = courseOf();
    await read.reader.read(head, () => undefined);
    const asked = read.asked.filter(([method]) => method === "eth_getBlockByHash").length;
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(new Set(told.logs.map(([, , , block]) => block)).size);
  });
});

describe("the jobs that have not ended", () => {
  const unended = told.jobs.filter(({ facts }) => facts.tally !== undefined && Object.keys(counted(facts.tally)).some((state) => !ENDS.includes(state)));

  it("are those of the market, with what is due of each", async () => {
    const { market } = chainOf();
    const found = await new UnendedReader(market).read(head);
    expect(found.jobs).toBe(told.jobs.length);
    expect(found.leftOut).toBe(0);
    expect(found.works.map(({ posted }) => posted.jobId).sort()).toEqual(unended.map(({ job }) => job).sort());
    const now = told.now + 10 ** 8;
    const due = found.works.flatMap((work) => tasksOf(work, now, new Map(), Number(network.nodeParameters.dead_after)));
    expect(new Set(due.map(({ does }) => does)).size).toBeGreaterThan(2);
    for (const task of due) expect(task.pay > 0n && task.posted !== undefined).toBe(true);
  });

  it("are asked for alone, once the others are known to have ended", async () => {
    const { market, asked } = chainOf();
    const reader = new UnendedReader(market);
    const first = await reader.read(head);
    const logs = (): number => asked.filter(([method]) => method === "eth_getLogs").length;
    const before = logs();
    expect((await reader.read(head)).works).toEqual(first.works);
    expect(logs()).toBe(before);
  });
});

// The facts of the vectors hold counts as pairs.
function counted(counts: unknown): Record<string, number> {
  return Array.isArray(counts) ? (Object.fromEntries(counts) as Record<string, number>) : (counts as Record<string, number>);
}
