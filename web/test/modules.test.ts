import { describe, expect, it } from "vitest";

import { fromHex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { checkModule, checkModuleSize } from "../src/core/wasm-module";
import { MAX_MODULE_BYTES } from "../src/generated/wasm";
import { vectors } from "./vectors";

interface Case {
  readonly base: string;
  readonly cut: number | null;
  readonly edits: readonly (readonly [number, number])[];
  readonly memory: string;
  readonly code: string | null;
  readonly message?: string;
  readonly hint?: string;
}

const { bases, cases } = vectors<{ bases: Readonly<Record<string, string>>; cases: readonly Case[] }>("modules");

function said({ base, cut, edits, memory }: Case): Pick<Case, "code" | "message" | "hint"> {
  const raw = Uint8Array.from(fromHex(bases[base] ?? "")).slice(0, cut ?? undefined);
  for (const [at, byte] of edits) raw[at] = byte;
  try {
    checkModule(raw, BigInt(memory));
    return { code: null };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return { code: error.code, message: error.message, hint: error.hint };
  }
}

describe("a module", () => {
  it("is refused as the library refuses it", () => {
    cases.forEach((one, number) => {
      const { code, message, hint } = one;
      const wanted = code === null ? { code } : { code, message, hint };
      expect(said(one), `case ${number}, ${one.base}`).toEqual(wanted);
    });
  });

  it("meets every refusal", () => {
    const met = new Set(cases.map(({ code }) => code));
    for (const code of ["NO_WASM", "BAD_MODULE", "UNKNOWN_IMPORT", "NO_ENTRY", "NO_MEMORY", "UNSUPPORTED_MODULE", "MEMORY_SHORT", null]) {
      expect(met.has(code), String(code)).toBe(true);
    }
    expect(() => checkModuleSize(MAX_MODULE_BYTES)).not.toThrow();
    expect(() => checkModuleSize(MAX_MODULE_BYTES + 1)).toThrow("a worker takes at most 64MiB");
  });
});
