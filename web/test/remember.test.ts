import { afterEach, describe, expect, it, vi } from "vitest";

import { sharedOrigin } from "../src/data/origin";
import { forgetWords, recall, remember } from "../src/data/remember";

// What a browser has of its own: a storage, which may be full or blocked, and events.
function browserWith(storage: Record<string, unknown> | undefined): Record<string, string> {
  const words: Record<string, string> = {};
  const works = {
    getItem: (name: string) => words[name] ?? null,
    setItem: (name: string, word: string) => void (words[name] = word),
    removeItem: (name: string) => void delete words[name],
  };
  const listed = { ownKeys: () => Object.keys(words), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) };
  const kept = new Proxy({ ...works, ...storage }, listed);
  const get = (): unknown => {
    if (storage === undefined) throw new DOMException("no", "SecurityError");
    return kept;
  };
  vi.stubGlobal("dispatchEvent", vi.fn());
  vi.stubGlobal("StorageEvent", class {});
  Object.defineProperty(globalThis, "localStorage", { configurable: true, get });
  return words;
}

describe("words", () => {
  afterEach(() => {
    forgetWords();
    vi.unstubAllGlobals();
    Reflect.deleteProperty(globalThis, "localStorage");
  });

  it("are kept under names of the page's own, and forgotten with nothing else", () => {
    const words = browserWith({});
    words["other"] = "of another page";
    remember("theme", "dark");
    expect(words).toEqual({ other: "of another page", "hearth.theme": "dark" });
    expect(recall("theme")).toBe("dark");
    remember("token", "x");
    remember("token", null);
    expect(recall("token")).toBeNull();
    forgetWords();
    expect(words).toEqual({ other: "of another page" });
    expect(dispatchEvent).toHaveBeenCalledOnce();
  });

  it.each([
    ["blocked", undefined],
    ["full", { setItem: () => { throw new DOMException("full", "QuotaExceededError"); } }],
  ])("last as long as the page where storage is %s", (_, storage) => {
    browserWith(storage);
    expect(recall("theme")).toBeNull();
    remember("theme", "dark");
    expect(recall("theme")).toBe("dark");
    remember("theme", null);
    expect(recall("theme")).toBeNull();
    remember("theme", "light");
    forgetWords();
    expect(recall("theme")).toBeNull();
  });
});

describe("an origin", () => {
  it.each([
    ["/ipfs/bafy/", true],
    ["/%69pfs/bafy/", true],
    ["/ip%4Es/bafy/", true],
    ["/%", true],
    ["/ipns/name/index.html", true],
    ["/", false],
    ["/index.html", false],
    ["/a/ipfs/bafy/", false],
    ["/ipfs", false],
  ])("of a page at %s is shared: %s", (pathname, shared) => {
    expect(sharedOrigin({ pathname })).toBe(shared);
  });
});
