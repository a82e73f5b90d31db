import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { readAround, readStates } from "../src/chain/graph";
import { Jobs, type Standing, labelOfStanding } from "../src/chain/jobs";
import type { Hex } from "../src/core/bytes";
import { BOX, graphOf, laidOut, labelOfWord } from "../src/core/graph";
import type { Parent } from "../src/core/parents";
import { NEW_UNIT } from "../src/core/types";
import { packHeader, packUnit } from "../src/core/words";
import { CONDITION } from "../src/generated/parents";
import { STATE, UNIT_FLAG } from "../src/generated/states";
import { chainOf, HEAD, hashOf, told } from "./chain";

const id = (number: number): Hex => `0x${number.toString(16).padStart(64, "0")}`;
const after = (...jobs: readonly number[]): readonly Parent[] => jobs.map((job) => ({ job: id(job), condition: CONDITION.SUCCESS }));
const levels = (graph: ReturnType<typeof graphOf>): Record<string, number> =>
  Object.fromEntries(graph.jobs.map(({ job, level }) => [Number(BigInt(job)), level]));

describe("the jobs around one", () => {
  it("are two steps each way", () => {
    const chain = new Map([2, 3, 4, 5, 6, 7].map((job) => [id(job), after(job - 1)]));
    expect(levels(graphOf(id(4), chain))).toEqual({ 2: -2, 3: -1, 4: 0, 5: 1, 6: 2 });
  });

  it("stand there once, at their fewest steps, with every edge between them", () => {
    const graph = graphOf(id(1), new Map([[id(1), after(2, 3)], [id(2), after(3)]]));
    expect(levels(graph)).toEqual({ 1: 0, 2: -1, 3: -1 });
    expect(graph.edges.map(({ parent, child, asked }) => [parent, child, asked])).toEqual([
      [id(2), id(1), "success"],
      [id(3), id(1), "success"],
      [id(3), id(2), "success"],
    ]);
  });

  it("end, whatever strangers name: a job of itself, and two of each other", () => {
    expect(levels(graphOf(id(1), new Map([[id(1), after(1, 2)], [id(2), after(1)]])))).toEqual({ 1: 0, 2: -1 });
  });

  it("are as many as are asked for, the nearest first, and the others are counted", () => {
    const wide = new Map(Array.from({ length: 60 }, (_, at) => [id(at + 2), after(at < 30 ? 1 : 2)]));
    const graph = graphOf(id(1), wide);
    expect([graph.jobs.length, graph.leftOut]).toEqual([40, 21]);
    expect(graph.jobs.filter(({ level }) => level === 1)).toHaveLength(30);
    expect(graph.edges).toHaveLength(39);
  });

  it("stand beside and below each other, and never on one place", () => {
    const { places, width, height } = laidOut(graphOf(id(4), new Map([[id(4), after(2, 3)], [id(5), after(4)], [id(6), after(4)]])));
    expect(new Set(places.map(({ x, y }) => `${x} ${y}`)).size).toBe(places.length);
    for (const { x, y } of places) expect([x + BOX.width <= width, y + BOX.height <= height]).toEqual([true, true]);
    expect(places.find(({ level }) => level === -1)?.x).toBe(0);
  });
});

describe("a job's own word", () => {
  const header = { leases: 3, touched: 0, done: 0, failed: 0, closed: false, waiting: false, opened: 1, quorum: 0 };
  const word = (changes: object): bigint => packHeader({ ...header, ...changes } as Parameters<typeof packHeader>[0]);
  it.each<[bigint, string]>([
    [0n, "unknown"],
    [packUnit({ ...NEW_UNIT, flags: UNIT_FLAG.ARRAY }), "unknown"],
    [packUnit({ ...NEW_UNIT, state: STATE.BLOCKED }), "waiting for other jobs"],
    [packUnit({ ...NEW_UNIT, state: STATE.CANCELLED }), "cancelled"],
    [word({}), "waiting for a machine"],
    [word({ waiting: true }), "waiting for other jobs"],
    [word({ touched: 2, done: 1 }), "running"],
    [word({ touched: 3, done: 3 }), "done"],
    [word({ closed: true }), "cancelled"],
  ])("0x%s is of a job that is %s", (one, state) => {
    expect(labelOfWord(one)).toEqual({ word: state, text: state });
  });

  it.each<[object, string]>([
    [{ touched: 3, done: 2, failed: 1 }, "unknown"],
    [{ touched: 2, done: 2, closed: true }, "refunded"],
  ])("of an array that has ended with %o is %s: how units failed it does not tell", (changes, state) => {
    expect(labelOfWord(word(changes))).toEqual({ word: state, text: "2 of 3 units done" });
  });
});

describe("the states around a job", () => {
  const head: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };

  it("are in the words of the list, those of an array that has ended by its units", async () => {
    const jobs = new Jobs(chainOf().market);
    const [overview] = await jobs.market.read(head, jobs.market.overview());
    const { jobs: posts } = await jobs.page(jobs.end(overview, head), 1_000);
    const standings = new Map((await jobs.standing(posts, head)).map((one) => [one.posted.jobId, labelOfStanding(one)]));
    const states = new Map<Hex, unknown>();
    for (const one of posts) for (const [job, state] of (await readAround(jobs, one, head)).states) states.set(job, state);
    expect([...states].sort()).toEqual([...standings].sort());
    expect([...states.values()]).toContainEqual({ word: "failed", text: "1 of 6 units failed" });
    expect([...states.values()]).toContainEqual({ word: "refunded", text: "0 of 3 units done" });
  });

  it("are read by a post that is looked for, where an array's own word does not tell", async () => {
    const jobs = new Jobs(chainOf().market);
    const [overview] = await jobs.market.read(head, jobs.market.overview());
    const { jobs: posts } = await jobs.page(jobs.end(overview, head), 1_000);
    const standings = await jobs.standing(posts, head);
    const [array] = standings.filter((one) => labelOfStanding(one).word === "failed" && one.header !== null) as [Standing];
    const states = await readStates(jobs, [array.posted.jobId, id(7)], new Map(), head);
    expect([...states]).toEqual([[array.posted.jobId, labelOfStanding(array)], [id(7), { word: "unknown", text: "unknown" }]]);
  });
});
