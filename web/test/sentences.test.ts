import { describe, expect, it } from "vitest";

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

describe("sentences", () => {
  it.each(events.map((one, at) => [one.facts["text"], at, one] as const))("says: %s (%i)", (_, __, one) => {
    const [log] = logsOf([one.log]);
    expect(eventFacts(decodeOf(log as Log, one.contract), assets[one.asset] as Asset)).toEqual(one.facts);
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
