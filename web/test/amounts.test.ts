import { describe, expect, it } from "vitest";

import { decodeAmount, encodeAmount } from "../src/core/words";
import { outcome } from "./lanes";
import { vectors } from "./vectors";

interface Vectors {
  readonly encode: readonly { readonly in: string; readonly out?: number; readonly code?: string }[];
  readonly decode: readonly { readonly in: number; readonly out?: string; readonly code?: string }[];
}

const DATA = vectors<Vectors>("amounts");

describe("coded amounts", () => {
  it("are encoded where they have a code", () => {
    for (const { in: amount, ...wanted } of DATA.encode) {
      expect(outcome(() => encodeAmount(BigInt(amount))), amount).toEqual(wanted);
    }
  });

  it("are decoded", () => {
    for (const { in: code, ...wanted } of DATA.decode) {
      expect(outcome(() => String(decodeAmount(code))), String(code)).toEqual(wanted);
    }
    expect(outcome(() => decodeAmount(0.5))).toEqual({ code: "BAD_WORD" });
  });
});
