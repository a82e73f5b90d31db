// Canonical JSON (RFC 8785): one document, one byte string, one 32-byte name on chain.
// Mirrors hearth/storage/canonical.py.
//
// Reading is a parser of its own: JSON.parse forgets what a canonical form is made of (1.0 and 1 are one number to it,
// of two equal keys it keeps the last). What is read has objects without a prototype, so that no key of a stranger's,
// `__proto__` included, is anything but a key.

import { sha256, utf8 } from "./bytes";
import { HearthError } from "./errors";
import { fromUtf8, hasHalfPair, plain } from "./unicode";
import { MAX_DEPTH, MAX_DOCUMENT_BYTES } from "../generated/canonical";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

const HINT = "hearth check job.yaml";
const ESCAPED = /["\\\u0000-\u001f]/g;
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
};

// Return the RFC 8785 bytes of a value made of plain objects, arrays, texts, whole numbers below 2^53, booleans and
// null. Throws BAD_DOCUMENT for anything else (fractions, -0, bigint, half surrogate pairs, nesting beyond 64),
// TOO_LARGE above 1 MiB.
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  const parts: string[] = [];
  write(value, [], parts);
  const bytes = utf8(parts.join(""));
  checkSize(bytes.length);
  return bytes;
}

// Return the value whose canonical bytes are exactly these; its objects have no prototype.
// Throws BAD_DOCUMENT for anything else (other key order, white space, equal keys, fractions), TOO_LARGE above 1 MiB.
export function decode(bytes: Uint8Array): Json {
  checkSize(bytes.length);
  const text = fromUtf8(bytes);
  if (text === undefined) throw bad("the bytes are no text in UTF-8");
  return new Reader(text).document();
}

// Return the 32 bytes that name a document on chain: sha2-256 of its canonical form. Throws as `encode` does.
export async function digest(value: unknown): Promise<Uint8Array<ArrayBuffer>> {
  return sha256(encode(value));
}

// ---- writing ----

type Path = (string | number)[];

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
  return `"${text.replace(ESCAPED, escape)}"`;
}

function escape(character: string): string {
  return SHORT_ESCAPES[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
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

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  document(): Json {
    const value = this.#value(1);
    if (this.#at < this.text.length) throw this.#not("something follows the document");
    return value;
  }

  // Read a value; `level` is the nesting that a list or object here has. It recurses MAX_DEPTH deep at most.
  #value(level: number): Json {
    const first = this.text[this.#at];
    if (first === '"') return this.#string();
    if (first === "[" || first === "{") {
      if (level > MAX_DEPTH) throw this.#not(`it is nested deeper than ${MAX_DEPTH}`);
      this.#at += 1;
      return first === "[" ? this.#list(level) : this.#object(level);
    }
    if (this.#took("null")) return null;
    if (this.#took("true")) return true;
    if (this.#took("false")) return false;
    return this.#number();
  }

  #list(level: number): Json[] {
    const list: Json[] = [];
    if (this.#took("]")) return list;
    do list.push(this.#value(level + 1));
    while (this.#took(","));
    this.#expect("]");
    return list;
  }

  #object(level: number): JsonObject {
    const object = Object.create(null) as Record<string, Json>;
    if (this.#took("}")) return object;
    let before: string | undefined;
    do {
      if (this.text[this.#at] !== '"') throw this.#not("a key is expected");
      const key = this.#string();
      // Below in UTF-16 code units, as JavaScript compares: neither another order nor a key that stands twice.
      if (before !== undefined && !(before < key)) throw this.#not("keys are sorted, each of them once");
      before = key;
      this.#expect(":");
      object[key] = this.#value(level + 1);
    } while (this.#took(","));
    this.#expect("}");
    return object;
  }

  // Read a text, of which each character has one canonical spelling.
  #string(): string {
    const start = this.#at;
    let found = "";
    let from = start + 1;
    for (let at = from; at < this.text.length; at += 1) {
      const code = this.text.charCodeAt(at);
      if (code === 0x22) {
        this.#at = at + 1;
        return found + this.text.slice(from, at);
      }
      if (code < 0x20) break;
      if (code !== 0x5c) continue;
      const [character, length] = unescaped(this.text.slice(at, at + 6));
      if (length === 0) throw this.#not("a character is written in another way than the canonical one");
      found += this.text.slice(from, at) + character;
      from = at + length;
      at = from - 1;
    }
    throw this.#not("a text has no end, or holds a control character");
  }

  #number(): number {
    const digits = /-?(?:0|[1-9][0-9]{0,15})/y;
    digits.lastIndex = this.#at;
    const [found] = digits.exec(this.text) ?? [""];
    const value = Number.parseInt(found, 10);
    if (found === "" || !Number.isSafeInteger(value) || Object.is(value, -0)) {
      throw this.#not("a value is expected: whole numbers are below 2^53");
    }
    this.#at += found.length;
    return value;
  }

  #took(text: string): boolean {
    if (!this.text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #expect(text: string): void {
    if (!this.#took(text)) throw this.#not(`${text} is expected`);
  }

  #not(why: string): HearthError {
    return bad(`the bytes are no canonical document (RFC 8785): ${why}, at character ${this.#at}`);
  }
}

// Read the escape that a text of six characters begins with: its character, and how long it is, 0 where it is none.
function unescaped(text: string): [string, number] {
  for (const [character, short] of Object.entries(SHORT_ESCAPES)) if (text.startsWith(short)) return [character, 2];
  if (!/^\\u00[01][0-9a-f]/.test(text)) return ["", 0];
  const character = String.fromCharCode(Number.parseInt(text.slice(2), 16));
  return character in SHORT_ESCAPES ? ["", 0] : [character, 6];
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
