// Names that strangers chose: what may become a file's name, which two names some file systems take for one, and how a
// name that programs obey is written. Mirrors hearth/storage/unixfs/names.py.
//
// No browser tells how letters fold, so the folding is a table of the library's. Decomposition is the browser's: for
// characters younger than the library's Unicode the two may differ, and the worker's reading is the one that counts.

import {
  DATA,
  FOLDS,
  FOLDS_LONG,
  MAX_NAME_BYTES,
  MAX_PATH_BYTES,
  MAX_PATH_DEPTH,
  OBEYED,
  RENAMED_PREFIX,
  SHORT,
} from "../../generated/unixfs";
import { utf8 } from "../bytes";
import { HearthError } from "../errors";
import { UNSEEN_CLASS } from "../text";
import { fromUtf8, hasHalfPair } from "../unicode";

const UNSEEN_CHARACTER = new RegExp(`[${UNSEEN_CLASS}]`, "u");
const SHORT_NAME = new RegExp(`^(?:${SHORT})$`, "u");
const OBEYED_NAMES: ReadonlySet<string> = new Set(OBEYED);
const DATA_NAMES: ReadonlySet<string> = new Set(DATA);
const FOLDED = folding();

// Return a directory entry's name as text. Throws UNSAFE_PATH for the empty name, "." and "..", slashes, backslashes,
// characters that hide or move text, drive letters, what is no UTF-8, more than 255 bytes; and, with the parent's path,
// more than 255 bytes or 16 names.
export function checkName(raw: Uint8Array, parent: string): string {
  const name = fromUtf8(raw);
  const where = shown(name ?? "?", parent);
  if (name === undefined) throw unsafe(where, "is not UTF-8");
  if (name === "" || name === "." || name === "..") throw unsafe(where, "is no file name");
  if (name.includes("/") || name.includes("\\")) throw unsafe(where, "holds a slash or a backslash");
  const unseen = UNSEEN_CHARACTER.exec(name)?.[0].codePointAt(0);
  if (unseen !== undefined) {
    const number = unseen.toString(16).toUpperCase().padStart(4, "0");
    throw unsafe(where, `holds U+${number}, a character that hides or moves text`);
  }
  if (/^[A-Za-z]:/.test(name)) throw unsafe(where, "starts with a drive letter");
  if (raw.length > MAX_NAME_BYTES) throw unsafe(where, `has ${raw.length} bytes, more than ${MAX_NAME_BYTES}`);
  const path = joined(parent, name);
  if (utf8(path).length > MAX_PATH_BYTES) throw unsafe(where, `makes a path of more than ${MAX_PATH_BYTES} bytes`);
  if (path.split("/").length > MAX_PATH_DEPTH) throw unsafe(where, `lies deeper than ${MAX_PATH_DEPTH} directories`);
  return name;
}

// Return the bytes of a name that came as text. Throws UNSAFE_PATH where it has none.
export function nameBytes(name: string, parent: string): Uint8Array<ArrayBuffer> {
  if (hasHalfPair(name)) throw unsafe(shown(name, parent), "is not UTF-8");
  return utf8(name);
}

// Return the name under which an entry is written where programs of a person work: that of `name` itself, or, for one
// that a program might obey (of those that begin with a dot all but some of data), the same with "renamed-" before it.
export function disarmed(name: string): string {
  // As file systems compare that fold case, decompose, and drop dots, spaces and streams (":...") at a name's end.
  let key = caseless(name).split(":", 1)[0] ?? "";
  while (key.endsWith(".") || key.endsWith(" ")) key = key.slice(0, -1);
  const hidden = name.startsWith(".") && !DATA_NAMES.has(key);
  return hidden || OBEYED_NAMES.has(key) || SHORT_NAME.test(key) ? RENAMED_PREFIX + name : name;
}

// The names of one directory: repeats are refused, and names that some file systems take for one.
export class Names {
  readonly #seen = new Map<string, string>();

  constructor(readonly parent: string) {}

  // Return a name as text. Throws UNSAFE_PATH.
  add(raw: Uint8Array): string {
    const name = checkName(raw, this.parent);
    const key = caseless(name);
    const other = this.#seen.get(key);
    if (other !== undefined) {
      const same = `differs from ${JSON.stringify(other)} only in case or Unicode form`;
      throw unsafe(shown(name, this.parent), other === name ? "stands twice" : same);
    }
    this.#seen.set(key, name);
    return name;
  }
}

// Return Unicode's canonical caseless form (D145): what a case-folding, normalising file system compares.
export function caseless(name: string): string {
  let folded = "";
  for (const character of name.normalize("NFD")) folded += FOLDED.get(character) ?? character;
  return folded.normalize("NFD");
}

// Return the path of an entry below a parent's path, "" being the root's.
export const joined = (parent: string, name: string): string => (parent === "" ? name : `${parent}/${name}`);

function folding(): ReadonlyMap<string, string> {
  const table = new Map<string, string>(FOLDS_LONG);
  for (const [start, last, step, distance] of FOLDS) {
    for (let code = start; code <= last; code += step) {
      table.set(String.fromCodePoint(code), String.fromCodePoint(code + distance));
    }
  }
  return table;
}

const shown = (name: string, parent: string): string => `${parent || "."}/${JSON.stringify(name.slice(0, 80))}`;

function unsafe(where: string, why: string): HearthError {
  return new HearthError("UNSAFE_PATH", `the name ${where} ${why}`, "rename the file", { path: where });
}
