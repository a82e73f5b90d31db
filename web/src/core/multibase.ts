// Bytes as text in one of many bases, which the text's first character names: what libipld does for the library.
// All of its bases but base256emoji. Source: https://github.com/multiformats/multibase.

import { HearthError } from "./errors";
import { BASES } from "../generated/cid";
import { hasHalfPair } from "./unicode";
import { utf8 } from "./bytes";

type Bytes = Uint8Array<ArrayBuffer>;
type Base = (typeof BASES)[number];

const IDENTITY = "\0";

// Return the bytes that a text is, in the base that its first character names.
// Throws BAD_CID where there is no such base, for a character that is not of it, and for bits or padding left over.
export function decodeMultibase(text: string): Bytes {
  const code = text.slice(0, 1);
  const body = text.slice(1);
  if (hasHalfPair(text)) throw bad("it holds half a surrogate pair");
  if (code === IDENTITY) return utf8(body);
  const base = BASES.find((one) => one.code === code);
  if (base === undefined) throw bad(code === "" ? "it is empty" : `no base is called ${JSON.stringify(code)}`);
  if (base.bits === 0) return fromNumber(base, values(base, body));
  return base.padded ? fromPadded(base, body) : fromBits(base.bits, values(base, body));
}

// Return bytes as text in a base, its code in front.
export function encodeMultibase(code: "b" | "z", bytes: Uint8Array): string {
  const base = BASES.find((one) => one.code === code) as Base;
  return code + (base.bits === 0 ? toNumber(base, bytes) : toBits(base, bytes));
}

// ---- characters that hold so many bits each ----

function fromBits(bits: number, digits: readonly number[]): Bytes {
  const bytes = new Uint8Array(Math.floor((digits.length * bits) / 8));
  let held = 0;
  let count = 0;
  let at = 0;
  for (const digit of digits) {
    held = (held << bits) | digit;
    count += bits;
    if (count >= 8) {
      count -= 8;
      bytes[at] = held >> count;
      at += 1;
      held &= (1 << count) - 1;
    }
  }
  // What is left over is less than a character, and zero: each text has one spelling.
  if (count >= bits || held !== 0) throw bad("it ends in bits that are no byte");
  return bytes;
}

// Read a padded text, of which each group of characters may be padded.
function fromPadded(base: Base, body: string): Bytes {
  const group = base.bits === 6 ? 4 : 8;
  if (body.length % group !== 0) throw bad("it is not padded to its end");
  const whole: number[] = [];
  for (let at = 0; at < body.length; at += group) {
    const held = body.slice(at, at + group).replace(/=+$/, "");
    const bytes = fromBits(base.bits, values(base, held));
    if (bytes.length === 0) throw bad("it has a part that is nothing but padding");
    whole.push(...bytes);
  }
  return Uint8Array.from(whole);
}

function toBits(base: Base, bytes: Uint8Array): string {
  let text = "";
  let held = 0;
  let count = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (count += 8; count >= base.bits; ) {
      count -= base.bits;
      text += base.alphabet[held >> count];
      held &= (1 << count) - 1;
    }
  }
  return count > 0 ? text + base.alphabet[held << (base.bits - count)] : text;
}

// ---- a text that is one number, each of its leading zeros a byte ----

function fromNumber(base: Base, digits: readonly number[]): Bytes {
  let value = 0n;
  for (const digit of digits) value = value * BigInt(base.alphabet.length) + BigInt(digit);
  const bytes: number[] = [];
  for (; value > 0n; value >>= 8n) bytes.push(Number.parseInt((value & 255n).toString(), 10));
  const zeros = digits.findIndex((digit) => digit !== 0);
  return Uint8Array.from([...new Array<number>(zeros < 0 ? digits.length : zeros).fill(0), ...bytes.reverse()]);
}

function toNumber(base: Base, bytes: Uint8Array): string {
  const digits: number[] = []; // lowest first
  for (const byte of bytes) {
    let carry = byte;
    for (let at = 0; at < digits.length || carry > 0; at += 1) {
      carry += (digits[at] ?? 0) << 8;
      digits[at] = carry % base.alphabet.length;
      carry = Math.floor(carry / base.alphabet.length);
    }
  }
  const zeros = bytes.findIndex((byte) => byte !== 0);
  const lead = base.alphabet.slice(0, 1).repeat(zeros < 0 ? bytes.length : zeros);
  return lead + digits.reverse().map((digit) => base.alphabet[digit]).join("");
}

// Return what each character stands for; a base that reads both cases reads those of ASCII alone.
function values(base: Base, text: string): number[] {
  const known = new Map([...base.alphabet].map((character, value) => [character, value]));
  return [...text].map((character) => {
    const value = known.get(character) ?? (base.any_case ? known.get(otherCase(character)) : undefined);
    if (value === undefined) throw bad(`${JSON.stringify(character)} is no character of its base`);
    return value;
  });
}

function otherCase(character: string): string {
  if (character >= "a" && character <= "z") return character.toUpperCase();
  return character >= "A" && character <= "Z" ? character.toLowerCase() : "";
}

function bad(why: string): HearthError {
  return new HearthError("BAD_CID", why);
}
