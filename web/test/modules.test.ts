import { describe, expect, it } from "vitest";

import { fromHex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { checkDeclared, checkModule, checkModuleSize } from "../src/core/wasm-module";
import { MAX_MODULE_BYTES } from "../src/generated/wasm";
import { vectors } from "./vectors";

interface Case {
  readonly base: string;
  readonly cut: number | null;
  readonly edits: readonly (readonly [number, number])[];
  readonly memory: string;
  readonly code: string | null;
}

interface OfCode {
  readonly name: string;
  readonly module: string;
  readonly code: string | null;
}

const { bases, cases, code } = vectors<{
  bases: Readonly<Record<string, string>>;
  cases: readonly Case[];
  code: readonly OfCode[];
}>("modules");

function said({ base, cut, edits, memory }: Case, whole?: Uint8Array): Pick<Case, "code"> {
  const raw = (whole ?? Uint8Array.from(fromHex(bases[base] ?? ""))).slice(0, cut ?? undefined);
  for (const [at, byte] of edits) raw[at] = byte;
  try {
    if (whole === undefined) checkDeclared(raw, BigInt(memory));
    else checkModule(raw, BigInt(memory));
    return { code: null };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return { code: error.code };
  }
}

describe("a module", () => {
  it("is refused as the library refuses it", () => {
    cases.forEach((one, number) => {
      expect(said(one), `case ${number}, ${one.base}`).toEqual({ code: one.code });
    });
  });

  it("of code that the workers' engine leaves out is refused, and no other", () => {
    for (const { name, module, code: wanted } of code) {
      const one = { base: name, cut: null, edits: [], memory: String(1n << 26n), code: wanted };
      expect(said(one, Uint8Array.from(fromHex(module))).code, name).toBe(wanted);
    }
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
