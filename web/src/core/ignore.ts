// Ignore rules for packing a folder: the .gitignore language. Mirrors hearth/storage/ignore.py, and of
// hearth/jobfile/workdir.py which rules hold.
//
// The library makes a regular expression of each rule. Here a rule is matched by marking all places that it may have
// reached: a folder that somebody downloaded brings its own rules, and no rule may make the page hang.

import { ALWAYS, LINE_ENDS, RULE_FILES, SPACES, USUAL } from "../generated/ignore";
import { HearthError } from "./errors";
import { folded } from "./unicode";
import { fromUtf8 } from "./unicode";

// Says whether a relative path ("a/b") is left out.
export type Ignore = (path: string, isDirectory: boolean) => boolean;

type Range = readonly [first: number, last: number];
type Part =
  | { readonly kind: "character"; readonly code: number }
  | { readonly kind: "class"; readonly negated: boolean; readonly ranges: readonly Range[] }
  | { readonly kind: "any" } // one character but the slash
  | { readonly kind: "some" } // any number of characters but the slash
  | { readonly kind: "folders" } // nothing, or anything that ends in a slash
  | { readonly kind: "below" }; // a slash and anything, to the end
interface Rule {
  readonly parts: readonly Part[];
  readonly directoriesOnly: boolean;
  readonly keep: boolean;
}

const SLASH = 0x2f;
const STAR = 0x2a;
const HINT = "hearth check job.yaml";

// Say whether a path is one that no job takes, by its last part and in whatever case that is written.
export const noJobTakes: Ignore = (path, isDirectory) => always(folded(path.slice(path.lastIndexOf("/") + 1)), isDirectory);

// Return the rules of a working directory: the standing ones, those of its .gitignore, those of its .hearthignore, as
// far as there is one, and what no file takes back. `files` holds their bytes by name. Throws BAD_SPEC for what is not UTF-8 or malformed.
export function workdirRules(files: ReadonlyMap<string, Uint8Array>): Ignore {
  const rules: string[] = [...USUAL];
  for (const name of RULE_FILES) {
    const bytes = files.get(name);
    if (bytes === undefined) continue;
    const text = fromUtf8(bytes);
    if (text === undefined) throw bad(`workdir: ${name} cannot be read: it is not UTF-8`, "make it a UTF-8 text file");
    rules.push(text);
  }
  const own = parseRules(rules.join("\n"));
  return (path, isDirectory) => own(path, isDirectory) || noJobTakes(path, isDirectory);
}

// Return the function that says whether a path is left out; of the rules that match, the last decides.
// Throws BAD_SPEC for a malformed rule.
export function parseRules(text: string): Ignore {
  const rules: Rule[] = [];
  for (const [index, line] of linesOf(text).entries()) {
    const pattern = line.endsWith("\\ ") ? line : trimEnd(line, SPACES);
    if (pattern === "" || pattern.startsWith("#")) continue;
    const keep = pattern.startsWith("!");
    const rest = keep ? pattern.slice(1) : pattern;
    const parts = compile(trimEnd(rest, "/"));
    if (parts === undefined) throw bad(`ignore rule ${JSON.stringify(line)} (line ${index + 1}) is malformed`, HINT);
    rules.push({ parts, directoriesOnly: rest.endsWith("/"), keep });
  }
  return (path, isDirectory) => {
    const codes = codesOf(path);
    const rule = rules.findLast((one) => (isDirectory || !one.directoriesOnly) && matches(one.parts, codes));
    return rule !== undefined && !rule.keep;
  };
}

// ---- rules ----

// Return the parts of a rule, undefined where a range runs backwards.
function compile(pattern: string): Part[] | undefined {
  const codes = codesOf(pattern);
  // A slash inside ties the rule to the root; without one it matches at any depth.
  const parts: Part[] = codes.includes(SLASH) ? [] : [{ kind: "folders" }];
  for (let at = Math.max(codes.findIndex((code) => code !== SLASH), 0); at < codes.length; ) {
    const [part, length] = partAt(codes, at);
    if (part === undefined) return undefined;
    parts.push(part);
    at += length;
  }
  return parts;
}

// Return the part that stands at a place, and how many characters it takes.
function partAt(codes: readonly number[], at: number): [Part | undefined, number] {
  const text = String.fromCodePoint(...codes.slice(at, at + 3));
  const code = codes[at] as number;
  let end = at;
  while (codes[end] === STAR) end += 1;
  const begins = at === 0 || codes[at - 1] === SLASH;
  if (end - at > 1 && begins && codes[end] === SLASH) return [{ kind: "folders" }, end + 1 - at];
  if (text === "/**" && at + 3 === codes.length) return [{ kind: "below" }, 3];
  if (end > at) return [{ kind: "some" }, end - at];
  if (text.startsWith("?")) return [{ kind: "any" }, 1];
  if (text.startsWith("[")) {
    const negated = text[1] === "!" || text[1] === "^";
    const start = at + (negated ? 2 : 1);
    // The first character of a class is in it, a closing bracket too.
    const close = codes.indexOf(0x5d, start + 1);
    if (close >= 0) return [classOf(codes.slice(start, close), negated), close + 1 - at];
  }
  const next = codes[at + 1];
  if (text.startsWith("\\") && next !== undefined) return [{ kind: "character", code: next }, 2];
  return [{ kind: "character", code }, 1];
}

function classOf(body: readonly number[], negated: boolean): Part | undefined {
  const ranges: Range[] = [];
  for (let at = 0; at < body.length; ) {
    const [first, dash, last] = [body[at] as number, body[at + 1], body[at + 2]];
    if (dash !== 0x2d || last === undefined) {
      ranges.push([first, first]);
      at += 1;
      continue;
    }
    if (last < first) return undefined;
    ranges.push([first, last]);
    at += 3;
  }
  return { kind: "class", negated, ranges };
}

// ---- matching ----

// Say whether parts match a whole path, in time of their number by its length.
function matches(parts: readonly Part[], path: readonly number[]): boolean {
  let reached: boolean[] = [true];
  for (const part of parts) {
    reached = step(part, path, reached);
    if (!reached.includes(true)) return false;
  }
  return reached[path.length] === true;
}

// Return the places that are reached after a part from those before it.
function step(part: Part, path: readonly number[], from: readonly boolean[]): boolean[] {
  const to: boolean[] = new Array<boolean>(path.length + 1).fill(false);
  let begun = false; // some place before is reached
  for (let at = 0; at <= path.length; at += 1) {
    const code = path[at];
    const here = from[at] === true;
    if (part.kind === "folders") {
      to[at] = here || (begun && path[at - 1] === SLASH);
    } else if (part.kind === "some") {
      to[at] = here || (to[at - 1] === true && path[at - 1] !== SLASH);
    } else if (here && code !== undefined && takes(part, code)) {
      to[part.kind === "below" ? path.length : at + 1] = true;
    }
    begun ||= here;
  }
  return to;
}

function takes(part: Part, code: number): boolean {
  if (part.kind === "character") return code === part.code;
  if (part.kind === "below") return code === SLASH;
  if (part.kind !== "class") return code !== SLASH;
  return code !== SLASH && part.ranges.some(([first, last]) => first <= code && code <= last) !== part.negated;
}

// ---- text ----

const codesOf = (text: string): number[] => [...text].map((character) => character.codePointAt(0) as number);

// Split as Python's splitlines does, whose line ends are more than two.
function linesOf(text: string): string[] {
  const lines: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (!LINE_ENDS.includes(text[at] as string)) continue;
    lines.push(text.slice(start, at));
    if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    start = at + 1;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
}

function bad(why: string, hint: string): HearthError {
  return new HearthError("BAD_SPEC", why, hint);
}

const always = parseRules(ALWAYS.join("\n"));
