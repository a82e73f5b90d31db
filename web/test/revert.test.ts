import { describe, expect, it } from "vitest";

import { fromHex, toHex } from "../src/core/bytes";
import { reasonInText, refusalIn, refused, revertData, revertReason } from "../src/core/revert";
import { vectors } from "./vectors";

interface Vectors {
  readonly data: readonly { readonly data: string; readonly reason: string }[];
  readonly refused: readonly { reason: string; label: string; message: string; hint: string }[];
  readonly shapes: readonly { readonly raw: unknown; readonly data: string }[];
  readonly texts: readonly { readonly text: string; readonly reason: string }[];
  readonly errors: readonly { error: unknown; refusal: Record<string, string> | null }[];
}

const cases = vectors<Vectors>("reverts");

describe("revert", () => {
  it.each(cases.data)("reads $data", ({ data, reason }) => {
    expect(revertReason(fromHex(data))).toBe(reason);
  });

  it.each(cases.refused)("says what $label refuses for $reason", ({ reason, label, message, hint }) => {
    const error = refused(reason, label);
    expect([error.code, error.message, error.hint]).toEqual(["REFUSED", message, hint]);
  });

  it.each(cases.shapes)("finds data in $raw", ({ raw, data }) => {
    expect(toHex(revertData(raw))).toBe(data);
  });

  it.each(cases.texts)("finds a reason in $text", ({ text, reason }) => {
    expect(reasonInText(text)).toBe(reason);
  });

  it.each(cases.errors)("tells a refusal in $error", ({ error, refusal }) => {
    const found = refusalIn(error);
    const { reason, data } = found?.details ?? {};
    expect(found && { message: found.message, hint: found.hint, reason, data }).toEqual(refusal);
  });

  it.each([null, undefined, 5, "reverted", []])("takes %j for no refusal", (error) => {
    expect(refusalIn(error)).toBeNull();
  });

  it("is not slow on a message that says nothing else for long", () => {
    const begun = performance.now();
    expect(reasonInText("revert".repeat(200_000))).toBe("");
    expect(performance.now() - begun).toBeLessThan(1_000);
  });
});
