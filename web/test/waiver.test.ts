import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { isWaived, type Waiver, waiverAfter } from "../src/core/waiver";

const ONE: Hex = "0x01";
const OTHER: Hex = "0x02";

describe("a box that waves a refusal off", () => {
  it.each<[Waiver, Hex, boolean, boolean]>([
    [ONE, ONE, true, true],
    [ONE, ONE, false, false],
    [ONE, OTHER, true, false],
    [undefined, ONE, true, false],
  ])("ticked for %s, of %s, standing: %s", (waiver, digest, stands, wanted) => {
    expect(isWaived(waiver, digest, stands)).toBe(wanted);
  });

  it("is not ticked when it comes back", () => {
    expect(waiverAfter(ONE, true)).toBe(ONE);
    expect(waiverAfter(waiverAfter(ONE, false), true)).toBeUndefined();
  });
});
