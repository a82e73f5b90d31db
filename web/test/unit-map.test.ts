import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { Jobs } from "../src/chain/jobs";
import { ZERO_HASH } from "../src/generated/bounds";
import { OUTCOME, STATE } from "../src/generated/states";
import { AT_ONCE, STANDS, standsAt, tally, typedUnit, UNREAD, unitAt, windowAt } from "../src/core/unit-map";
import { type Header, NEW_UNIT, type Unit } from "../src/core/types";
import type { JobView } from "../src/core/view";
import { pathsOf, shapeOf } from "../src/ui/unit-shapes";
import { chainOf, HEAD, hashOf, told } from "./chain";
import { refusal } from "./refusal";

const HEADER: Header = { closed: false, waiting: false, touched: 0, done: 0, failed: 0, opened: 1, leases: 6, quorum: 0 };

function viewOf(units: readonly Unit[], header: Partial<Header> = {}, leases = 6): JobView {
  const terms = { units: leases, chunk: 1, replicas: 1, parentsHash: ZERO_HASH } as unknown as JobView["terms"];
  return { terms, policy: {} as JobView["policy"], header: { ...HEADER, touched: units.length, leases, ...header }, units, stored: [], now: 2 };
}

const unit = (state: Unit["state"], outcome: Unit["outcome"] = OUTCOME.NONE): Unit => ({ ...NEW_UNIT, state, outcome });

const FREE = "waiting for a machine";

describe("the map of an array's units", () => {
  it("tells each unit by its state, and a result that is not ok", () => {
    const view = viewOf([unit(STATE.SETTLED, OUTCOME.OK), unit(STATE.SETTLED, OUTCOME.EXIT), unit(STATE.RUNNING), unit(STATE.SUBMITTED, OUTCOME.TRAP)]);
    expect([0, 1, 2, 3, 4, 5].map((index) => standsAt(view, index))).toEqual(["done", "failed", "running", "result in, not ok", FREE, FREE]);
    expect([...tally(view)]).toEqual([[FREE, 2], ["running", 1], ["result in, not ok", 1], ["done", 1], ["failed", 1]]);
  });

  it("never shows as free what was not read", () => {
    // A list reads of a long array its header alone: four units were touched, and none was read.
    const view = viewOf([], { touched: 4 });
    expect([0, 3, 4, 5].map((index) => standsAt(view, index))).toEqual([UNREAD, UNREAD, FREE, FREE]);
    expect([...tally(view)]).toEqual([[FREE, 2], [UNREAD, 4]]);
    expect([...pathsOf(view, windowAt(6, 0)).keys()]).toEqual([UNREAD, FREE]);
    expect(standsAt({ ...view, header: null }, 0)).toBe(UNREAD);
  });

  it("says of units that nobody touched what the array says", () => {
    expect([...tally(viewOf([], { waiting: true }))]).toEqual([["waiting for other jobs", 6]]);
    expect([...tally(viewOf([unit(STATE.EXPIRED)], { closed: true }))]).toEqual([["cancelled", 5], ["expired", 1]]);
    // One that was cancelled while it waited waits no more.
    expect([...tally(viewOf([], { closed: true, waiting: true }))]).toEqual([["cancelled", 6]]);
  });

  it("counts the units of each job of a chain as the library does", async () => {
    const head: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };
    const jobs = new Jobs(chainOf().market);
    const [overview] = await jobs.market.read(head, jobs.market.overview());
    const standings = await jobs.standing((await jobs.page(jobs.end(overview, head), 1_000)).jobs, head);
    expect(standings.length).toBe(told.jobs.length);
    for (const { posted, view } of standings) {
      const found = new Map<string, number>();
      for (const [stands, count] of tally(view)) {
        const [state = ""] = stands.split(", ");
        found.set(state, (found.get(state) ?? 0) + count);
      }
      const library = told.jobs.find(({ job }) => job === posted.jobId)?.facts.tally ?? {};
      expect([...found].sort()).toEqual(Object.entries(library).filter(([, count]) => count > 0).sort());
    }
  });

  it("draws no more than its part of the longest array there may be", () => {
    const leases = 2 ** 24 - 1;
    const view = viewOf([], { touched: 7 }, leases);
    const last = windowAt(leases, leases - 1);
    expect([last.first + last.count, last.count <= AT_ONCE]).toEqual([leases, true]);
    const paths = pathsOf(view, windowAt(leases, 0));
    expect([...paths.keys()]).toEqual([UNREAD, FREE]);
    expect(paths.get(FREE)?.match(/M/g)?.length).toBe(AT_ONCE - 7);
    expect([...tally(view)]).toEqual([[FREE, leases - 7], [UNREAD, 7]]);
  });

  it("knows the stands that there are, and gives each a shape of its own", () => {
    const states = Object.values(STATE).filter((state) => state !== STATE.NONE);
    const told = states.flatMap((state) => [OUTCOME.OK, OUTCOME.EXIT].map((outcome) => standsAt(viewOf([unit(state, outcome)]), 0)));
    expect([...STANDS].sort()).toEqual([...new Set([...told, UNREAD])].sort());
    const shapes = STANDS.map(shapeOf);
    expect(shapes).not.toContain(shapeOf("of no form"));
    expect(new Set(shapes).size).toBe(STANDS.length);
  });

  it("finds the unit under a pointer, and none beside it", () => {
    const part = windowAt(AT_ONCE + 5, AT_ONCE + 2);
    expect(part).toEqual({ first: AT_ONCE, count: 5, columns: 16, rows: 1 });
    expect([unitAt(part, 0, 0), unitAt(part, 4.5 / 16, 0.99), unitAt(part, 5.5 / 16, 0.5)]).toEqual([AT_ONCE, AT_ONCE + 4, undefined]);
    for (const [across, down] of [[-0.1, 0], [1, 0], [0, 1], [Number.NaN, 0]] as const) expect(unitAt(part, across, down)).toBe(undefined);
    const wide = windowAt(AT_ONCE, 0);
    for (const index of [0, 63, 64, 4_095]) {
      expect(unitAt(wide, ((index % 64) + 0.5) / 64, (Math.floor(index / 64) + 0.5) / 64)).toBe(index);
    }
  });

  it("takes the number of a unit that there is", () => {
    expect([typedUnit("0", 3), typedUnit(" 2 ", 3)]).toEqual([0, 2]);
    for (const text of ["3", "-1", "", "1.0", "0x1", "1e0", "9".repeat(40)]) expect(refusal(() => typedUnit(text, 3))).toBe("NOT_FOUND");
  });
});
