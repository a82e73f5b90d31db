// What a contract's refusal says: the reason in a revert's return data, and the sentence that people read of it.
// Mirrors hearth/chain/port.py (revert_reason, refused) and the part of hearth/chain/answers.py that finds a refusal in
// a provider's error. All of it is written by strangers: whatever they send, the answer is a text or none.

import { ERROR, HINTS, PANIC, PANICS, REASONS, REFUSED } from "../generated/reasons";
import { fromHex, type Hex, toHex } from "./bytes";
import { HearthError } from "./errors";
import { first, plain, trimmed } from "./unicode";

const TEXT = 500; // characters of a stranger's message that are repeated
// The flag "u" folds case as Python does: the long s of old prints is an s.
const OUT_OF_GAS = /out ?of ?gas|gas required exceeds/iu;
const REVERT = /revert|vm execution error|invalid ?(fe)? ?opcode|out ?of ?gas|gas required exceeds/iu;
// Python's "$" matches before a last line feed too.
const SAID = /revert(?:ed)?\b(?: with reason string)?:? '?([^']+)'?(?=\n?$)/u;

// Return a reason's text; of a number that the table does not have, which another version may, that number.
export function textOf(number: bigint): string {
  const found = number <= 0xffff_ffffn ? reasons.get(Number(number)) : undefined;
  return found ?? `refused with reason ${number}`;
}

// Return what a revert's return data say: a text of the market's, a token's or the compiler's; "" where it is none. The
// market's contracts give Refused(uint256), tokens Error(string), and checked arithmetic may Panic(uint256).
export function revertReason(data: Uint8Array): string {
  const selector = toHex(data.subarray(0, 4));
  if (selector === REFUSED && data.length >= 36) return textOf(word(data, 4));
  if (selector === ERROR && data.length >= 68) {
    const length = word(data, 36);
    const left = data.length - 68;
    return utf8.decode(data.subarray(68, 68 + (length < BigInt(left) ? Number(length) : left)));
  }
  if (selector === PANIC && data.length >= 36) {
    const code = word(data, 4);
    return `panic 0x${code.toString(16).padStart(2, "0")}: ${panics.get(code) ?? "unknown"}`;
  }
  return "";
}

// Build the error of a call that a contract refuses, REFUSED: details.reason is the contract's reason in words ("jobs:
// not open"), "" where it gave none; `label` names the call for people, such as "jobs.claim".
export function refused(reason: string, label = "", data: Hex = "0x"): HearthError {
  const what = label === "" ? "the contract refuses the call" : `${label} is refused`;
  const why = reason === "" ? "it reverted without a reason" : reason;
  const parts = [reason, before(reason, ":"), before(label, ".")];
  const hint = parts.map((part) => hints.get(part)).find((found) => found !== undefined) ?? "hearth doctor";
  return new HearthError("REFUSED", plain(`${what}: ${why}`), hint, { reason, label, data });
}

// Return the refusal that a provider's error object is, null where it is another failure: one of the provider, of the
// account's funds or of the pool.
export function refusalIn(error: unknown, label = ""): HearthError | null {
  if (typeof error !== "object" || error === null) return null;
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const text = plain(first(typeof message === "string" ? message : "", TEXT));
  if (code !== 3 && !REVERT.test(text)) return null;
  const found = revertData(data);
  const reason = plain(first(revertReason(found), TEXT));
  return refused(reason === "" ? reasonInText(text) : reason, label, toHex(found));
}

// Find the return data in the several shapes that nodes wrap it in; none are no bytes.
export function revertData(raw: unknown): Uint8Array {
  const found = typeof raw === "object" && raw !== null && !Array.isArray(raw) ? inner(raw) : raw;
  if (typeof found !== "string") return new Uint8Array();
  const text = trimmed(found.startsWith("Reverted ") ? found.slice("Reverted ".length) : found);
  if (!text.startsWith("0x")) return new Uint8Array();
  // Python's fromhex passes spaces over between bytes.
  const bytes = text.slice(2).split(/[\t-\r ]+/);
  if (bytes.some((part) => part.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(part))) return new Uint8Array();
  return fromHex(bytes.join(""));
}

// Return the reason that a provider's message names, "" for none.
export function reasonInText(text: string): string {
  const shown = first(text, TEXT);
  if (OUT_OF_GAS.test(shown)) return "out of gas";
  const found = SAID.exec(shown)?.[1];
  return found === undefined ? "" : trimmed(found);
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const reasons: ReadonlyMap<number, string> = new Map(
  Object.entries(REASONS).map(([number, one]) => [Number(number), one.text]),
);
const panics: ReadonlyMap<bigint, string> = new Map(Object.entries(PANICS).map(([code, why]) => [BigInt(code), why]));
const hints: ReadonlyMap<string, string> = new Map(Object.entries(HINTS));

function word(data: Uint8Array, offset: number): bigint {
  return BigInt(toHex(data.subarray(offset, offset + 32)));
}

function before(text: string, sign: string): string {
  const at = text.indexOf(sign);
  return at < 0 ? text : text.slice(0, at);
}

// What an error's data hold: their own "data", or where that is empty "result".
function inner(raw: object): unknown {
  const { data, result } = raw as { data?: unknown; result?: unknown };
  const empty = !data || (typeof data === "object" && Object.keys(data).length === 0);
  return empty ? result : data;
}
