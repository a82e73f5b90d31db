import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { sha256, toHex, utf8 } from "../src/core/bytes";
import { keptNames, learnName, nameIn } from "../src/data/names";
import { forgetWords, recall, remember } from "../src/data/remember";
import { refusalOf } from "./refusal";

const OWN = { pathname: "/" };
const SHARED = { pathname: "/ipfs/bafy/" };
const document = (name: unknown) => utf8(JSON.stringify({ name }));
const digestOf = async (bytes: Uint8Array<ArrayBuffer>) => toHex(await sha256(bytes));

async function learn(name: unknown, here = OWN): Promise<string> {
  const bytes = document(name);
  const digest = await digestOf(bytes);
  await learnName(digest, bytes, here);
  return digest;
}

describe("names of jobs", () => {
  beforeEach(() => {
    vi.stubGlobal("dispatchEvent", vi.fn());
    vi.stubGlobal("StorageEvent", class {});
  });
  afterEach(() => {
    forgetWords();
    vi.unstubAllGlobals();
  });

  it("are kept by the digests of the documents that say them, and forgotten with the rest", async () => {
    const [first, second] = [await learn("first job"), await learn("second")];
    expect([...keptNames(OWN)]).toEqual([[first, "first job"], [second, "second"]]);
    await learn("first job");
    expect([...keptNames(OWN).keys()]).toEqual([second, first]);
    forgetWords();
    expect(keptNames(OWN).size).toBe(0);
  });

  it("are believed by their digest alone", async () => {
    const other = await digestOf(document("honest"));
    expect(await refusalOf(() => learnName(other, document("another"), OWN))).toBe("BLOCK_CORRUPT");
    expect(keptNames(OWN).size).toBe(0);
    expect(await nameIn(other, document("honest"))).toBe("honest");
  });

  it("are names, and no other text of a stranger", async () => {
    for (const name of ["\u202egnp.exe", "", "a".repeat(65), "<img src=x>", 7, null, undefined, ["a"], { a: 1 }]) await learn(name);
    expect(keptNames(OWN).size).toBe(0);
    const list = utf8('["name"]');
    await learnName(await digestOf(list), list, OWN);
    expect(keptNames(OWN).size).toBe(0);
  });

  it("are as many as fit, the newest", async () => {
    const older = Array.from({ length: 500 }, (_, at) => [`0x${String(at).padStart(64, "0")}`, `job ${at}`]);
    remember("names", JSON.stringify(older));
    for (const name of ["job 500", "job 501"]) await learn(name);
    const names = [...keptNames(OWN).values()];
    expect([names.length, names[0], names.at(-1)]).toEqual([500, "job 2", "job 501"]);
  });

  it("are read as whatever a browser has in their place", async () => {
    const digest = await learn("mine");
    for (const word of ["{", "7", "null", '{"a":1}', '[7,[],["0x12","a"],["0x12",7],null]', `[["${digest}","\u202ea"]]`]) {
      remember("names", word);
      expect(keptNames(OWN).size).toBe(0);
    }
    remember("names", `[["${digest}","mine"],["x","y"]]`);
    expect([...keptNames(OWN)]).toEqual([[digest, "mine"]]);
  });

  it("are neither kept nor read at an address that is shared", async () => {
    await learn("mine", SHARED);
    expect(recall("names")).toBe(null);
    await learn("mine");
    expect([keptNames(OWN).size, keptNames(SHARED).size]).toEqual([1, 0]);
  });
});
