import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { byDay, earningsOf, linesOf, stakeIn } from "../src/core/earnings";
import type { MarketEvent } from "../src/core/events";
import { Strays } from "../src/core/logs";
import { eventsIn, postedOf } from "../src/core/posted";
import { endsOf, leasesOfNode } from "../src/core/node-leases";
import type { Terms } from "../src/core/types";
import { hashOf, type Life, livesOf, logOf, marketOf } from "./lives";
import { vectors } from "./vectors";

interface Nodes {
  readonly nodes: readonly (readonly [number, string, boolean])[];
}

interface Books {
  readonly node: number;
  readonly lines: readonly (readonly [number, string, Hex | null, string, string])[];
  readonly earnings: Readonly<Record<string, string>>;
}

const MARKETS = livesOf<Nodes>();
const BOOKS = vectors<Readonly<Record<string, readonly Books[]>>>("earnings");

function eventsOf(life: Life): { events: MarketEvent[]; terms: (job: Hex) => Terms | undefined } {
  const market = marketOf(life);
  const events = [...eventsIn(life.logs.map((brief) => logOf(brief, life)), market, new Strays())];
  const posts = events.flatMap((event) => (event.name === "JobPosted" ? [postedOf(event, market)] : []));
  const terms = new Map(posts.map((one) => [one.jobId, one.terms]));
  return { events, terms: (job) => terms.get(job) };
}

const cases = Object.entries(BOOKS).flatMap(([name, books]) => books.map((one) => [name, one.node, one] as const));

describe.each(cases)("a %s market's node %i", (name, node, told) => {
  const market = MARKETS[name] as Life & Nodes;
  const { events, terms } = eventsOf(market);
  const lines = linesOf(events, node, terms);

  it("has the books that its worker keeps", () => {
    const brief = lines.map(({ log, kind, job, amount, fee }) => [log.blockNumber, kind, job, `${amount}`, `${fee}`]);
    expect(brief).toEqual(told.lines);
    const { counts, income, fees, slashed, livenessFees, net } = earningsOf(lines);
    const { paid, failed_theirs, declined, given_up, closed, reclaimed: timed_out, voided, rejected, unproven } = counts;
    const found = { paid, failed_theirs, declined, given_up, closed, timed_out, voided, rejected, unproven };
    const said = { ...found, income, fees, slashed, liveness_fees: livenessFees, net };
    expect(Object.fromEntries(Object.entries(said).map(([key, value]) => [key, `${value}`]))).toEqual(told.earnings);
  });

  it("has them by day, and nothing is lost between", () => {
    const days = byDay(lines, new Map(market.times.map(([block, second]) => [hashOf(block), second])));
    expect(days.map(({ day }) => day)).toEqual([...days.map(({ day }) => day)].sort().reverse());
    expect(days.reduce((sum, { of }) => sum + of.net, 0n)).toBe(earningsOf(lines).net);
    expect(byDay(lines, new Map()).map(({ day }) => day)).toEqual(lines.length === 0 ? [] : [""]);
  });

  it("took the leases that its books end", () => {
    const took = leasesOfNode(events, node, market.now, terms);
    const ends = endsOf(took);
    const { counts } = earningsOf(lines);
    expect(ends.get("done") ?? 0).toBe(counts.paid);
    expect(ends.get("failed") ?? 0).toBe(counts.failed_theirs);
    expect(ends.get("given back") ?? 0).toBe(counts.declined);
    expect(ends.get("gave up") ?? 0).toBe(counts.given_up);
    expect(ends.get("taken away") ?? 0).toBe(counts.reclaimed);
    expect((ends.get("stopped") ?? 0)).toBe(counts.closed + counts.voided);
    expect([...took].sort((a, b) => b.block - a.block)).toEqual(took);
  });

  it("has the stake that its events leave it", () => {
    const found = market.nodes.find(([id]) => id === node);
    expect(stakeIn(events, node)).toBe(BigInt(found?.[1] ?? -1));
  });

  it("let pass what was proposed to it and did not start", () => {
    const never = leasesOfNode(events, node, 0, terms);
    expect(never.some(({ end }) => end === "let it pass")).toBe(false);
    expect(leasesOfNode(events, node, market.now, () => undefined).some(({ end }) => end === "let it pass")).toBe(false);
    const proposed = events.filter((event) => event.name === "Proposed" && event.node === node).length;
    expect(leasesOfNode(events, node, 2 ** 40, terms).filter(({ end }) => end === "let it pass").length).toBeLessThanOrEqual(proposed);
  });
});
