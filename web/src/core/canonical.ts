// Canonical JSON (RFC 8785): one document, one byte string, one 32-byte name on chain.
// Mirrors hearth/storage/canonical.py.
//
// What is read has objects without a prototype, so that no key of a stranger's, `__proto__` included, is anything but a
// key.

import { sha256, utf8 } from "./bytes";
import { HearthError } from "./errors";
import { fromUtf8, hasHalfPair, plain } from "./unicode";
import { MAX_DEPTH, MAX_DOCUMENT_BYTES } from "../generated/canonical";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

const HINT = "hearth check job.yaml";

// Return the RFC 8785 bytes of a value made of plain objects, arrays, texts, whole numbers below 2^53, booleans and
// null. Throws BAD_DOCUMENT for anything else (fractions, -0, bigint, half surrogate pairs, nesting beyond 64),
// TOO_LARGE above 1 MiB.
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  const bytes = utf8(written(value));
  checkSize(bytes.length);
  return bytes;
}

// Return the value whose canonical bytes are exactly these; its objects have no prototype.
// Throws BAD_DOCUMENT for anything else (other key order, white space, equal keys, fractions), TOO_LARGE above 1 MiB.
export function decode(bytes: Uint8Array): Json {
  checkSize(bytes.length);
  const text = fromUtf8(bytes);
  if (text === undefined) throw bad("the bytes are no text in UTF-8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw bad("the bytes are no JSON");
  }
  // Another order or spelling, white space, an equal key that JSON.parse leaves out: each would be written otherwise.
  if (written(value) !== text) throw bad("the bytes are no canonical document (RFC 8785)");
  return bare(value as Json);
}

// Return the 32 bytes that name a document on chain: sha2-256 of its canonical form. Throws as `encode` does.
export async function digest(value: unknown): Promise<Uint8Array<ArrayBuffer>> {
  return sha256(encode(value));
}

// ---- writing ----

type Path = (string | number)[];

function written(value: unknown): string {
  const parts: string[] = [];
  write(value, [], parts);
  return parts.join("");
}

function write(value: unknown, path: Path, parts: string[]): void {
  if (path.length + (typeof value === "object" && value !== null ? 1 : 0) > MAX_DEPTH) {
    throw bad(`${shown(path)} is nested deeper than ${MAX_DEPTH}`);
  }
  if (value === null || typeof value === "boolean") parts.push(String(value));
  else if (typeof value === "string") parts.push(quoted(value, path));
  else if (typeof value === "number") parts.push(whole(value, path));
  else if (Array.isArray(value)) writeList(value, path, parts);
  else if (isPlain(value)) writeObject(value, path, parts);
  else throw bad(`${shown(path)} has no canonical form`);
}

function writeList(list: readonly unknown[], path: Path, parts: string[]): void {
  parts.push("[");
  // By number, so that a hole in the array is met as well.
  for (let at = 0; at < list.length; at += 1) {
    if (at > 0) parts.push(",");
    path.push(at);
    write(list[at], path, parts);
    path.pop();
  }
  parts.push("]");
}

function writeObject(object: Readonly<Record<string, unknown>>, path: Path, parts: string[]): void {
  parts.push("{");
  // Without a function sort compares UTF-16 code units, which is the order that the RFC asks for.
  for (const [at, key] of Object.keys(object).sort().entries()) {
    parts.push(at > 0 ? "," : "", quoted(key, path), ":");
    path.push(key);
    write(object[key], path, parts);
    path.pop();
  }
  parts.push("}");
}

function quoted(text: string, path: Path): string {
  if (hasHalfPair(text)) throw bad(`${shown(path)} holds half a surrogate pair, which is no text`);
  return JSON.stringify(text); // whose spelling is the one of the RFC
}

function whole(value: number, path: Path): string {
  if (!Number.isInteger(value) || Object.is(value, -0)) {
    throw bad(`${shown(path)} is the float ${Object.is(value, -0) ? "-0" : value}; write decimals as strings`);
  }
  if (!Number.isSafeInteger(value)) throw bad(`${shown(path)} is beyond 2^53 - 1; write base units as strings`);
  return String(value);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.getOwnPropertySymbols(value).length === 0;
}

function shown(path: Path): string {
  const text = path.map((part) => String(part).slice(0, 40)).join(".");
  return plain(text.slice(0, 200)) || "the document";
}

// ---- reading ----

// Return a value whose objects have no prototype. It is no deeper than what was written of it.
function bare(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(bare);
  const object = Object.create(null) as Record<string, Json>;
  for (const [key, item] of Object.entries(value)) object[key] = bare(item);
  return object;
}

function checkSize(size: number): void {
  if (size <= MAX_DOCUMENT_BYTES) return;
  throw new HearthError(
    "TOO_LARGE",
    `a document has at most ${MAX_DOCUMENT_BYTES} bytes, this one has ${size}; ` +
      "put bulk data into files and name their CIDs",
    HINT,
  );
}

function bad(why: string): HearthError {
  return new HearthError("BAD_DOCUMENT", why, HINT);
}
