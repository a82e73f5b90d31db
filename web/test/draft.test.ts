import { afterEach, describe, expect, it, vi } from "vitest";

import type { Hex } from "../src/core/bytes";
import { draftOf, MOST_DRAFT } from "../src/data/draft";
import { forgetWords } from "../src/data/remember";
import { stubStorage } from "./storage";

const OWN = { pathname: "/" };
const marketOf = (chain: number, registry: Hex) => ({ jobChainId: chain, contracts: { JobRegistry: registry } }) as never;
const MARKET = marketOf(1, "0x1");

describe("a draft", () => {
  afterEach(() => {
    forgetWords();
    vi.unstubAllGlobals();
  });

  it("is kept for its market alone, until it is posted", () => {
    const words = stubStorage();
    const draft = draftOf(MARKET, OWN);
    expect(draft.read()).toBe("");
    expect(draft.keep("a")).toBe(true);
    expect(draftOf(MARKET, OWN).read()).toBe("a");
    expect(draftOf(marketOf(2, "0x1"), OWN).read()).toBe("");
    expect(draftOf(marketOf(1, "0x2"), OWN).read()).toBe("");
    // What was written since another one was posted stays.
    draft.posted("b");
    expect(draft.read()).toBe("a");
    draft.posted("a");
    expect(words.size).toBe(0);
  });

  it("goes with its text, and is kept in bounds", () => {
    const words = stubStorage();
    const draft = draftOf(MARKET, OWN);
    draft.keep("a");
    expect(draft.keep("")).toBe(false);
    expect(words.size).toBe(0);
    draft.keep("a");
    expect(draft.keep("x".repeat(MOST_DRAFT + 1))).toBe(false);
    // The one before is not what is written now.
    expect(words.size).toBe(0);
    expect(draft.keep("x".repeat(MOST_DRAFT))).toBe(true);
    for (const name of words.keys()) words.set(name, "y".repeat(10 * MOST_DRAFT));
    expect(draft.read()).toHaveLength(MOST_DRAFT);
  });

  it("of a browser that is full lasts as long as the page", () => {
    stubStorage(() => {
      throw new DOMException("full", "QuotaExceededError");
    });
    expect(draftOf(MARKET, OWN).keep("a")).toBe(false);
    expect(draftOf(MARKET, OWN).read()).toBe("a");
  });

  it("is never kept where strangers share the origin, nor without a market", () => {
    const words = stubStorage();
    for (const draft of [draftOf(MARKET, { pathname: "/ipfs/x/" }), draftOf(undefined, OWN)]) {
      expect(draft.keep("a")).toBe(false);
      draft.posted("a");
      expect(draft.read()).toBe("");
    }
    expect(words.size).toBe(0);
  });
});
