import { describe, expect, it } from "vitest";

import { compare, concat, equal, fromHex, hexAddress, hexNumber, hexWord, sha256, toHex, utf8 } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";

describe("bytes", () => {
  it("reads what it wrote", () => {
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    expect(fromHex(toHex(every))).toEqual(every);
    expect(toHex(fromHex("00fF"))).toBe("0x00ff");
  });

  it.each(["0x0", "0xzz", "x", "0x 1"])("refuses %j", (text) => {
    let code = "";
    try {
      fromHex(text);
    } catch (error) {
      code = codeOf(error);
    }
    expect(code).toBe("BAD_HEX");
  });

  it("writes whole numbers as providers, words and addresses have them", () => {
    expect([hexNumber(0), hexNumber(255n), hexWord(255), hexWord(2n ** 256n - 1n), hexAddress(1n)]).toEqual([
      "0x0",
      "0xff",
      `0x${"0".repeat(62)}ff`,
      `0x${"f".repeat(64)}`,
      `0x${"0".repeat(39)}1`,
    ]);
  });

  it("orders as Python orders bytes", () => {
    expect(compare(utf8("a"), utf8("ab"))).toBeLessThan(0);
    expect(compare(utf8("b"), utf8("ab"))).toBeGreaterThan(0);
    expect(compare(utf8("ab"), utf8("ab"))).toBe(0);
    expect(equal(utf8("ab"), concat([utf8("a"), utf8("b")]))).toBe(true);
  });

  it("hashes", async () => {
    expect(toHex(await sha256(utf8("abc")))).toBe(
      "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });
});
