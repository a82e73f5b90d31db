import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { codeOf } from "../src/core/errors";
import { label, labelled, labelOf, LONGEST_NAME, MOST_ADDRESSES, unlabel } from "../src/data/addresses";
import { forgetWords, recall, remember } from "../src/data/remember";
import { stubStorage } from "./storage";

const OWN = { pathname: "/" };
const SHARED = { pathname: "/ipfs/bafy/" };
const address = (n: number): `0x${string}` => `0x${n.toString(16).padStart(40, "a")}`;
const A = address(1);

function refusal(work: () => void): string | undefined {
  try {
    work();
  } catch (error) {
    return codeOf(error);
  }
  return undefined;
}

beforeEach(() => {
  stubStorage();
});
afterEach(() => {
  forgetWords();
  vi.unstubAllGlobals();
});

describe("names of addresses", () => {
  it("are the newest ones, until they are forgotten", () => {
    label(A, " one ", OWN);
    label(address(2), "two", OWN);
    label(A, "uno", OWN);
    expect([labelOf(A, OWN), labelOf(address(2), OWN), labelOf(address(3), OWN)]).toEqual(["uno", "two", undefined]);
    unlabel(A, OWN);
    unlabel(address(2), OWN);
    expect([labelled(OWN), recall("addresses")]).toEqual([[], null]);
  });

  it("show what would move the text around them", () => {
    label(A, "a\u202eb", OWN);
    expect(labelOf(A, OWN)).toBe("aU+202Eb");
  });

  it.each(["", "  ", "x".repeat(LONGEST_NAME + 1)])("refuse %j", (name) => {
    expect(refusal(() => label(A, name, OWN))).toBe("BAD_NAME");
  });

  it("are bounded", () => {
    for (let n = 0; n < MOST_ADDRESSES; n += 1) label(address(n), "x", OWN);
    expect(refusal(() => label(address(MOST_ADDRESSES), "y", OWN))).toBe("BAD_NAME");
    label(address(0), "again", OWN);
    expect(labelled(OWN).length).toBe(MOST_ADDRESSES);
  });

  it("of others are not taken at an origin that is shared, and none are left there", () => {
    remember("addresses", JSON.stringify([[A, "planted"]]));
    expect(labelled(SHARED)).toEqual([]);
    label(address(2), "mine", SHARED);
    unlabel(A, SHARED);
    expect(recall("addresses")).toBe(JSON.stringify([[A, "planted"]]));
  });

  it.each(["{", "null", "7", "{}", '[["0x1", "short"], [7, "x"], ["', `[["${A}"]]`])("are none where they are malformed: %s", (text) => {
    remember("addresses", text);
    expect(labelled(OWN)).toEqual([]);
  });

  it("leave out what is malformed beside them", () => {
    remember("addresses", JSON.stringify([[A, "x"], ["0x12", "y"], 7, null, [address(2), "z\u0000"]]));
    expect(labelled(OWN).map(({ name }) => name)).toEqual(["x", "zU+0000"]);
  });
});
