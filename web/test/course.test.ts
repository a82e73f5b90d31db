import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { Course, deniedBy, keeperPlace, needsSecond } from "../src/core/course";
import { isUnitEvent, type MarketEvent } from "../src/core/events";
import { Strays } from "../src/core/logs";
import { eventsIn, type Market } from "../src/core/posted";
import { sharesIn } from "../src/core/receipt";
import { bucketsOf } from "../src/core/chart-series";
import type { Node } from "../src/core/types";
import { unpackUnit } from "../src/core/words";
import { SENTINEL, ZERO_ADDRESS } from "../src/generated/bounds";
import { STATE } from "../src/generated/states";
import { type Life, livesOf, logOf, marketOf } from "./lives";

interface Jobs {
  readonly jobs: readonly { readonly job: Hex; readonly units: readonly { readonly words: readonly [string, string, string] }[] }[];
}

const markets = Object.entries(livesOf<Jobs>());

interface Lived {
  readonly events: readonly MarketEvent[];
  readonly course: Course;
  readonly market: Market;
  second(event: MarketEvent): number;
}

function lived(told: Life): Lived {
  const market = marketOf(told);
  const strays = new Strays();
  const events = [...eventsIn(told.logs.map((brief) => logOf(brief, told)), market, strays)];
  const times = new Map(told.times);
  const second = (event: MarketEvent): number => times.get(event.log.blockNumber) ?? 0;
  const course = new Course(market, strays);
  // Where no second is needed, none may count.
  for (const event of events) course.add(event, needsSecond(event) ? second(event) : Number.NaN);
  return { events, course, market, second };
}

const held = (state: number): boolean => state === STATE.RUNNING || state === STATE.CLOSING;

describe.each(markets)("the course of a market (%s)", (_, told) => {
  const { events, course, market, second } = lived(told);
  const { steps, tiers, earners } = course.told();

  it("ends with as many busy slots as storage has", () => {
    const units = told.jobs.flatMap(({ units }) => units.map(({ words }) => unpackUnit(BigInt(words[0])).state));
    expect(steps.at(-1)?.busy).toBe(units.filter(held).length);
    expect(steps.every((step, at) => step.busy >= 0 && step.busy <= step.slots && step.at > (steps[at - 1]?.at ?? -1))).toBe(true);
    expect(Math.max(...steps.map(({ busy }) => busy))).toBeGreaterThan(0);
  });

  it("has a busy area that is the sum of the leases' times", () => {
    const open = new Map<string, number>();
    let sum = 0;
    for (const event of events) {
      if (!isUnitEvent(event) || event.name === "CheckpointPaid" || event.index === SENTINEL) continue;
      const name = `${event.jobId} ${event.index}`;
      const since = open.get(name);
      if (held(unpackUnit(event.word).state) === (since !== undefined)) continue;
      if (since === undefined) open.set(name, second(event));
      else {
        sum += second(event) - since;
        open.delete(name);
      }
    }
    for (const since of open.values()) sum += told.now - since;
    expect(sum).toBeGreaterThan(0);
    for (const width of [60, 86_400]) expect(bucketsOf(steps, told.now, width).reduce((all, one) => all + one.busy, 0)).toBe(sum);
  });

  it("is whole, and torn where any start or end of a unit is left out that another event follows", () => {
    expect(course.told().torn).toBe("");
    const name = (event: MarketEvent): string => (isUnitEvent(event) ? `${event.jobId} ${event.index}` : "");
    const moves = new Set<string>(["Started", "Submitted", "Declined", "GaveUp", "Reclaimed", "Closed"]);
    let looked = 0;
    for (const [place, gone] of events.entries()) {
      const next = events.slice(place + 1).find((event) => name(event) === name(gone) && event.name !== "CheckpointPaid" && event.name !== "ToppedUp");
      if (!moves.has(gone.name) || next === undefined) continue;
      const other = new Course(market, new Strays());
      for (const event of events) if (event !== gone) other.add(event, second(event));
      expect(other.told().torn, `${gone.name} before ${next.name}`).toBe(`log ${next.log.logIndex} of block ${next.log.blockNumber}`);
      looked += 1;
    }
    expect(looked).toBeGreaterThan(10);
  });

  it("counts each start, with its rate, and each end", () => {
    const started = events.flatMap((event) => (event.name === "Started" ? [unpackUnit(event.word)] : []));
    expect(tiers.reduce((sum, one) => sum + one.starts, 0)).toBe(started.length);
    for (const { prices } of tiers) for (const { median } of prices) expect(started.map(({ rate }) => rate)).toContain(median);
    const count = (...names: MarketEvent["name"][]): number => events.filter((event) => names.includes(event.name)).length;
    const sum = (of: "ok" | "failed" | "lost" | "returned"): number => tiers.reduce((all, one) => all + one[of], 0);
    expect(sum("ok") + sum("failed")).toBe(count("Submitted", "Finished"));
    expect(sum("lost")).toBe(count("Reclaimed"));
    expect(sum("returned")).toBe(count("Declined", "GaveUp"));
    expect(sum("ok")).toBeGreaterThan(0);
    for (const { wait, longWait } of tiers) expect((wait ?? 0) <= (longWait ?? 0)).toBe(true);
  });

  it("pays keepers what the receipts of its jobs say, and what stakes paid", () => {
    const transactions = new Map<Hex, MarketEvent[]>();
    for (const event of events) transactions.set(event.log.txHash, [...(transactions.get(event.log.txHash) ?? []), event]);
    let sum = 0n;
    for (const all of transactions.values()) {
      for (const { job } of told.jobs) sum += sharesIn(all, job, market.contracts.JobRegistry).keepers;
    }
    for (const event of events) {
      if (event.name === "Slashed") sum += event.reward;
      if (event.name === "NodeLapsed") sum += event.fee;
    }
    expect(sum).toBeGreaterThan(0n);
    expect(earners.reduce((all, one) => all + one.earned, 0n)).toBe(sum);
    expect(earners.every((one, at) => one.earned > 0n && one.earned <= (earners[at - 1]?.earned ?? one.earned))).toBe(true);
    expect(earners.some(({ acts }) => (acts.get("settle") ?? 0) > 0 && (acts.get("propose") ?? 0) >= 0)).toBe(true);
  });

  it("steps over an event of a job that was not posted", () => {
    const strays = new Strays();
    const other = new Course(market, strays);
    for (const event of events) if (event.name !== "JobPosted") other.add(event, second(event));
    expect(strays.count).toBe(events.filter(isUnitEvent).length);
    expect(other.told().tiers).toEqual([]);
  });
});

it("has every kind of end in one of the markets", () => {
  const tiers = markets.flatMap(([, told]) => lived(told).course.told().tiers);
  for (const of of ["ok", "failed", "lost", "returned"] as const) expect(tiers.some((one) => one[of] > 0), of).toBe(true);
});

describe("slots by events", () => {
  const node = (operator: Hex, busy: number, slots: number): Node => ({ operator, state: { busy }, offer: { slots } }) as unknown as Node;
  const nodes = [node(`0x${"0a".repeat(20)}`, 1, 2), node(`0x${"0b".repeat(20)}`, 2, 3), node(ZERO_ADDRESS, 0, 9)];

  it("are those in storage, of nodes that have not left", () => {
    expect(deniedBy({ steps: [{ at: 1, busy: 0, slots: 2 }, { at: 9, busy: 3, slots: 5 }], torn: "" }, nodes)).toBe("");
    expect(deniedBy({ steps: [], torn: "" }, [])).toBe("");
  });

  it("are denied where they are not", () => {
    expect(deniedBy({ steps: [{ at: 9, busy: 2, slots: 5 }], torn: "" }, nodes)).toBe("events tell of 2 of 5 busy slots, storage says 3 of 5");
    expect(deniedBy({ steps: [{ at: 9, busy: 3, slots: 14 }], torn: "" }, nodes)).toContain("storage says 3 of 5");
    expect(deniedBy({ steps: [], torn: "" }, nodes)).toContain("events tell of 0 of 0");
    expect(deniedBy({ steps: [], torn: "log 1 of block 2" }, [])).toBe("a log is missing before log 1 of block 2");
  });
});

describe("a keeper's share", () => {
  it("is none of a result that its own node settles", () => {
    expect(keeperPlace({ name: "Finished" } as never)).toBeUndefined();
  });
});
