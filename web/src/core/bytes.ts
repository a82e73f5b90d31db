// Byte strings: hex, comparison, joining, sha2-256. Hex is lower case and begins with 0x, as everywhere in Hearth.

import { HearthError } from "./errors";

export type Hex = `0x${string}`;

export function toHex(bytes: Uint8Array): Hex {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return `0x${text}`;
}

// Read hex with or without 0x. Throws BAD_HEX for an odd length or anything that is no hex digit.
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  const digits = text.startsWith("0x") ? text.slice(2) : text;
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) {
    throw new HearthError("BAD_HEX", "this is no hex of whole bytes");
  }
  const bytes = new Uint8Array(digits.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

// A whole number that is not negative as providers write it, without leading zeros; as a word of 32 bytes; as an address.
export const hexNumber = (value: bigint | number): Hex => `0x${value.toString(16)}`;

export const hexWord = (value: bigint | number): Hex => `0x${value.toString(16).padStart(64, "0")}`;

export const hexAddress = (value: bigint): Hex => `0x${value.toString(16).padStart(40, "0")}`;

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// Compare as Python compares bytes: byte by byte, a shorter one before what it begins. Below, equal, above 0.
export function compare(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at += 1) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
