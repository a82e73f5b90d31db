// What a node says of itself beside the chain, as a call carries it. Mirrors Manifest.document and carried of
// hearth/market/manifest.py: the chain has the digest alone, and the document stands behind the call's arguments.

import { MANIFEST_BYTES, MANIFEST_VERSION } from "../generated/owners";
import { compare, fromHex, type Hex, sha256, toHex } from "./bytes";
import { decode, encode, type Json, type JsonObject } from "./canonical";
import { HearthError } from "./errors";
import { shownLine } from "./text";

// A document in canonical form, and its digest.
export interface Manifest {
  readonly digest: Hex;
  readonly document: Hex;
}

const KEYS = new Set(["version", "software", "country", "gpus", "gateways"]);
const PLACES = 4;
// Ends of an object that are tried: a manifest is followed by little.
const ENDS = 256;
const AFTER = [32, 64];
const OPENS = "{".charCodeAt(0);
const CLOSES = "}".charCodeAt(0);

// Return the manifest of a node whose machine has not spoken yet: it names its country alone.
export function firstManifest(country: string): Promise<Manifest> {
  return manifestOf({ version: MANIFEST_VERSION, software: "", country: country.toLowerCase(), gpus: [], gateways: [] });
}

// Return a manifest with another country and all else as it was; `document` is a stranger's, and one that is no manifest is begun
// anew.
export function movedManifest(document: Hex | undefined, country: string): Promise<Manifest> {
  const told = document === undefined ? undefined : read(document);
  return told === undefined ? firstManifest(country) : manifestOf({ ...told, country: country.toLowerCase() });
}

// Return the country that a manifest names, "" where it names none.
export function countryIn(document: Hex | undefined): string {
  const country = document === undefined ? undefined : read(document)?.["country"];
  return typeof country === "string" && /^[a-z]{2}$/.test(country) ? country : "";
}

// Return all that a document says, a row for each of its keys and each entry of a list, whole and made visible; undefined for what is
// no manifest, or longer than one.
export function manifestRows(document: Hex): (readonly [string, string])[] | undefined {
  const told = document.length > 2 + 2 * MANIFEST_BYTES ? undefined : read(document);
  return told && Object.entries(told).flatMap(([key, value]) => {
    const values = Array.isArray(value) && value.length > 0 ? value : [value];
    return values.map((one, place) => {
      const named = KEYS.has(key) ? key : `${JSON.stringify(key)}, which no program reads`;
      const name = values.length === 1 ? named : `${named} ${place + 1}`;
      return [`manifest: ${shownLine(name, Number.POSITIVE_INFINITY)}`, shownLine(inWords(one), Number.POSITIVE_INFINITY)] as const;
    });
  });
}

// Return the document that a call's data carry, by its digest; undefined where they carry none. Nothing but its digest says
// where it ends.
export async function carried(data: Hex, digest: Hex): Promise<Hex | undefined> {
  const bytes = fromHex(data);
  const wanted = fromHex(digest);
  let at = -1;
  for (let place = 0; place < PLACES; place += 1) {
    at = indexOf(bytes, wanted, at + 1);
    if (at < 0) return undefined;
    for (const after of AFTER) {
      const found = await beginning(bytes.slice(at + after, at + after + MANIFEST_BYTES), wanted);
      if (found !== undefined) return toHex(found);
    }
  }
  return undefined;
}

async function manifestOf(value: JsonObject): Promise<Manifest> {
  const document = encode(value);
  return { digest: toHex(await sha256(document)), document: toHex(document) };
}

function read(document: Hex): JsonObject | undefined {
  try {
    const value = decode(fromHex(document));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const told = isObject ? (value as JsonObject) : undefined;
    return told?.["version"] === MANIFEST_VERSION && [told["gpus"], told["gateways"]].every(isList) ? told : undefined;
  } catch (error) {
    if (error instanceof HearthError) return undefined;
    throw error;
  }
}

// A list of a manifest may be left out, and is nothing else.
const isList = (value: Json | undefined): boolean => value === undefined || Array.isArray(value);

function inWords(value: Json): string {
  if (value === "" || (Array.isArray(value) && value.length === 0)) return "none";
  return typeof value === "string" ? value : within(value);
}

// The keys of an object beside their values, whose texts are quoted: none passes for a key.
function within(value: Json): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return Object.entries(value).map(([key, one]) => `${/^\w+$/.test(key) ? key : JSON.stringify(key)} ${within(one)}`).join(", ");
}

// The beginning of some bytes that is an object of this digest.
async function beginning(bytes: Uint8Array<ArrayBuffer>, digest: Uint8Array): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (bytes[0] !== OPENS) return undefined;
  let end = bytes.lastIndexOf(CLOSES);
  for (let tried = 0; end > 0 && tried < ENDS; tried += 1, end = bytes.lastIndexOf(CLOSES, end - 1)) {
    const found = bytes.slice(0, end + 1);
    if (compare(await sha256(found), digest) === 0) return found;
  }
  return undefined;
}

function indexOf(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  for (let at = from; at + wanted.length <= bytes.length; at += 1) {
    if (wanted.every((byte, place) => bytes[at + place] === byte)) return at;
  }
  return -1;
}
