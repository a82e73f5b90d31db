import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { decodeOf } from "../src/core/events";
import { type Log, logsOf } from "../src/core/logs";
import { moment, until } from "../src/core/moments";
import type { Contract } from "../src/core/network";
import { eventFacts, resultCid } from "../src/core/sentences";
import type { Asset } from "../src/core/units";
import { vectors } from "./vectors";

interface Vectors {
  readonly assets: readonly Asset[];
  readonly events: readonly {
    readonly contract: Contract;
    readonly log: unknown;
    readonly asset: number;
    readonly facts: Readonly<Record<string, unknown>>;
  }[];
}

const { assets, events } = vectors<Vectors>("events");

// Hex with one digit of it changed, or a word of ones instead of its own; data may be cut off as well.
function altered(hex: Hex, next: (below: number) => number, cuts = false): Hex {
  const digits = hex.slice(2);
  const at = next(Math.max(1, digits.length));
  const word = at - (at % 64);
  if (cuts && next(8) === 0) return `0x${digits.slice(0, at - (at % 2))}`;
  if (next(8) === 0) return `0x${digits.slice(0, word)}${"f".repeat(64)}${digits.slice(word + 64)}`;
  return digits === "" ? hex : `0x${digits.slice(0, at)}${next(16).toString(16)}${digits.slice(at + 1)}`;
}

describe("sentences", () => {
  it.each(events.map((one, at) => [one.facts["text"], at, one] as const))("says: %s (%i)", (_, __, one) => {
    const [log] = logsOf([one.log]);
    expect(eventFacts(decodeOf(log as Log, one.contract), assets[one.asset] as Asset)).toEqual(one.facts);
  });

  it("says something of whatever passes, and refuses the rest by a code alone", () => {
    // A small generator of our own (mulberry32), so that each run changes the same bits.
    let seed = 7;
    const next = (below: number): number => {
      seed = (seed + 0x6d2b79f5) | 0;
      let one = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      one = (one + Math.imul(one ^ (one >>> 7), 61 | one)) ^ one;
      return ((one ^ (one >>> 14)) >>> 0) % below;
    };
    let said = 0;
    for (let round = 0; round < 6_000; round += 1) {
      const { contract, log: raw } = events[next(events.length)] as Vectors["events"][number];
      const [log] = logsOf([raw]) as [Log];
      const changed = { ...log, topics: [...log.topics] };
      for (let times = next(4); times >= 0; times -= 1) {
        const at = next(changed.topics.length + 1);
        if (at === 0) changed.data = altered(changed.data, next, true);
        else if (at > 1) changed.topics[at - 1] = altered(changed.topics[at - 1] as Hex, next);
        else if (next(9) === 0) changed.topics.splice(next(changed.topics.length), 1);
      }
      try {
        const facts = eventFacts(decodeOf(changed, contract), assets[next(assets.length)] as Asset);
        expect(facts.text).toMatch(/^[^\n]+$/);
        said += 1;
      } catch (error) {
        expect(["BAD_LOG", "RPC_BROKEN"]).toContain(codeOf(error));
      }
    }
    expect(said).toBeGreaterThan(1_000);
    expect(said).toBeLessThan(5_500);
  });

  it("names times", () => {
    expect(moment(253_402_300_799)).toBe("9999-12-31 23:59:59 UTC");
    expect(moment(253_402_300_800)).toBe("after the year 9999");
    expect(until(1_800_000_060, 1_800_000_000)).toBe("08:01:00 UTC (in 1m)");
    expect(until(1_800_000_000, 1_800_000_000)).toBe("08:00:00 UTC (past)");
    expect(until(2 ** 40 - 1, 0)).toBe("after the year 9999 (in 12725829d36m15s)");
  });

  it("refuses what names no document", () => {
    let code = "";
    try {
      resultCid("0x00");
    } catch (error) {
      code = codeOf(error);
    }
    expect(code).toBe("BAD_CID");
  });
});
