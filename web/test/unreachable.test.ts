// What a page shows of what it read or kept, where nobody answers, and where another market does.

import { describe, expect, it } from "vitest";

import type { LastSeen } from "../src/chain/last-seen";
import { HearthError } from "../src/core/errors";
import type { Live } from "../src/ui/context";
import { isOther, lastShown, shownOf } from "../src/ui/unreachable";

const refused = (code: string): Live => ({ state: "refused", error: new HearthError(code, ""), retry: () => undefined, last: undefined });
const ready = (lost: unknown): Live => ({ state: "ready", lost }) as Live;
const KEPT = { at: { number: 7 } } as LastSeen;
const HELD = { key: "last/jobs", last: KEPT };

describe("what was kept", () => {
  it.each<[string, Live, boolean]>([
    ["nobody answers", refused("RPC_UNAVAILABLE"), true],
    ["whoever answers cannot", refused("RPC_ERROR"), true],
    ["the last look failed", ready(new HearthError("RPC_UNAVAILABLE", "")), true],
    ["another chain answers", refused("WRONG_CHAIN"), false],
    ["other code answers", refused("WRONG_CONTRACTS"), false],
    ["what answers lies", refused("RPC_LIES"), false],
    ["the market is there again", ready(undefined), false],
    ["it is looked at", { state: "opening" }, false],
    ["there is none", { state: "none" }, false],
  ])("where %s", (_, live, shown) => {
    expect(lastShown(live, HELD, "last/jobs")).toBe(shown ? KEPT : undefined);
  });

  it("is not shown for anything else", () => {
    const live = refused("RPC_UNAVAILABLE");
    expect([lastShown(live, HELD, "last/job/0x1"), lastShown(live, undefined, "last/jobs")]).toEqual([undefined, undefined]);
  });
});

it("another market is what answers and is refused, not a provider that cannot answer", () => {
  const codes = ["WRONG_CHAIN", "WRONG_CONTRACTS", "RPC_LIES", "RPC_UNAVAILABLE", "RPC_ERROR"];
  expect(codes.map((code) => isOther(refused(code)))).toEqual([true, true, true, false, false]);
  expect([ready(new HearthError("RPC_LIES", "")), { state: "opening" } as const].map(isOther)).toEqual([false, false]);
});

it("what was read is shown of its own market alone", () => {
  const held = { key: "one", value: 1, error: undefined };
  expect(shownOf(held, "one", false).value).toBe(1);
  expect(shownOf(held, "other", false).value).toBeUndefined();
  expect(shownOf(held, "one", true)).toEqual({ value: undefined, error: undefined });
});
