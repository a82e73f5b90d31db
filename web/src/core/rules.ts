// Rules that hold for a spec as written and for the canonical document that a worker reads. Mirrors
// hearth/jobfile/rules.py.

import { COMPARED, RESERVED_PREFIXES, SPEC_BOUNDS, SPEC_PATTERNS } from "../generated/spec";
import { utf8 } from "./bytes";
import { parseCid } from "./cid";
import { HearthError } from "./errors";
import { type Location, type Problem, problem } from "./problems";
import { folded, trimmed } from "./unicode";
import { zoneOf } from "./zones";

const whole = (pattern: string, flags = ""): RegExp => new RegExp(`^(?:${pattern})$`, flags);

export const DECIMAL = whole(SPEC_PATTERNS.decimal);
export const IMAGE = whole(SPEC_PATTERNS.image);
export const DIGEST_IMAGE = whole(SPEC_PATTERNS.digestImage);
const ENV_NAME = whole(SPEC_PATTERNS.envName);
const SECRET_NAME = whole(SPEC_PATTERNS.secretName, "i");
const PASSWORD = new RegExp(SPEC_PATTERNS.password);
// A control, format or private character, half a surrogate pair, or one that Unicode does not have; or a backslash.
const ODD = /[\p{C}\\]/u;

// Checks what names a thing to take in: a path, ipfs://CID[/path], or (inputs only) a URL.
export function source(src: string, where: Location): Problem[] {
  const at = src.indexOf("://");
  const scheme = src.slice(0, Math.max(at, 0));
  if (src === "") return [problem(where, "is empty", "name a path, ipfs://CID or https://...")];
  if (at < 0) return [];
  if (scheme === "ipfs") return refusalOf(where, () => parseCid(src.slice(at + 3).split("/", 1)[0] ?? ""));
  if (scheme !== "http" && scheme !== "https") {
    return [problem(where, `${scheme}:// is not supported`, "use a path, ipfs://CID or https://...")];
  }
  if (where[0] !== "inputs") return [problem(where, `${String(where[0])} is a path or ipfs://CID, not a URL`, "download it first")];
  if (!PASSWORD.test(src)) return [];
  return [problem(where, "is a URL with a password, and a job is public", "download it first, and name the file")];
}

// Checks names in the environment: everything in a spec is public, for ever.
export function env(names: Iterable<string>, where: Location): Problem[] {
  return [...names].flatMap((name) => {
    const place = [...where, name];
    if (!ENV_NAME.test(name)) return [problem(place, "is not a name of an environment variable", "use A-Z, 0-9 and _")];
    if (SECRET_NAME.test(name)) {
      return [problem(place, "looks like a secret, and all that a job brings is public", "keep secrets out of it", "SECRET_IN_ENV")];
    }
    const prefix = RESERVED_PREFIXES.find((one) => name.toUpperCase().startsWith(one));
    if (prefix === undefined) return [];
    return [problem(place, `names that start with ${prefix} are the worker's`, "choose another name")];
  });
}

// Checks what variables hold, where the rule of their names lets them be; a document of before may hold more.
export function envValues(pairs: ReadonlyMap<string, string>, where: Location): Problem[] {
  return [...pairs]
    .filter(([name, value]) => PASSWORD.test(value) && !SECRET_NAME.test(name))
    .map(([name]) => problem([...where, name], "is a URL with a password, and all that a job brings is public", "keep secrets out of it", "SECRET_IN_ENV"));
}

// Checks paths inside the job: absolute, below `root` (for /out also equal to it), none inside another.
export function places(entries: readonly (readonly [Location, string])[], root: string): Problem[] {
  const problems: Problem[] = [];
  const seen = new Map<string, string>();
  for (const [where, path] of entries) {
    const fault = pathFault(path, root);
    if (fault !== "") {
      problems.push(problem(where, fault, `write an absolute path such as ${root}/data`));
      continue;
    }
    // Two names that one file system holds apart and another does not are one name.
    const name = folded(path);
    for (const [other, shown] of seen) {
      if (name === other) {
        problems.push(problem(where, `"${path}" is given twice ("${shown}")`, "give each its own path"));
      } else if (name.startsWith(`${other}/`) || other.startsWith(`${name}/`)) {
        problems.push(problem(where, `"${path}" and "${shown}" lie inside each other`, "give each its own folder"));
      }
    }
    seen.set(name, path);
  }
  return problems;
}

// Checks the path of a folder inside the job: as `places` does, and not `root` itself.
export function folderBelow(path: string, root: string, where: Location): Problem[] {
  const problems = places([[where, path]], root);
  if (path !== root) return problems;
  return [...problems, problem(where, `is ${root} itself`, `name a folder in it, such as ${root}/data`)];
}

function pathFault(path: string, root: string): string {
  const parts = path.split("/");
  if (!path.startsWith("/")) return "is not absolute";
  if (parts.slice(1).some((part) => part === "" || part === "." || part === "..")) {
    return 'holds an empty part, "." or ".."';
  }
  if (ODD.test(path)) return "holds a control character or a backslash";
  const { maxPath, maxPathDepth } = SPEC_BOUNDS;
  if (utf8(path).length > maxPath || parts.length - 1 > maxPathDepth) {
    return `is longer than ${maxPath} bytes or deeper than ${maxPathDepth}`;
  }
  if (root === "/in" && parts[1] === "in" && parts[2] === "parents") {
    return "is kept for outputs of the jobs that this one waits for, which cannot be inputs in this version";
  }
  return path.startsWith(`${root}/`) || (root === "/out" && path === root) ? "" : `is not under ${root}`;
}

// A country's code as documents write it.
export const countryCode = (country: string): string => trimmed(country).toLowerCase();

// Checks a list of countries.
export function regions(countries: readonly string[], where: Location): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  for (const [index, country] of countries.entries()) {
    const place = [...where, index];
    problems.push(...refusalOf(place, () => zoneOf(country)));
    const code = countryCode(country);
    if (seen.has(code)) problems.push(problem(place, `"${country}" is given twice`, "remove one"));
    seen.add(code);
  }
  return problems;
}

interface Kind {
  readonly needed: readonly string[];
  readonly optional: readonly string[];
}
const KINDS: ReadonlyMap<string, Kind> = new Map(Object.entries(COMPARED));

// Checks a comparator: which fields its kind needs, and which it takes besides. Empty text counts as absent.
export function compare(values: ReadonlyMap<string, string>, where: Location): Problem[] {
  const kind = values.get("kind") ?? "";
  const { needed, optional } = KINDS.get(kind) ?? { needed: [], optional: [] };
  const given = [...values].filter(([name, value]) => name !== "kind" && value !== "").map(([name]) => name);
  const problems = needed
    .filter((name) => !given.includes(name))
    .map((name) => problem(where, `kind ${kind} needs ${name}`, `add ${name}`));
  for (const name of given.filter((one) => !needed.includes(one) && !optional.includes(one)).sort()) {
    problems.push(problem([...where, name], `kind ${kind} has no ${name}`, `remove ${name}`));
  }
  if (kind === "allclose" && !given.some((name) => optional.includes(name))) {
    problems.push(problem(where, "kind allclose needs atol or rtol", 'add atol: "1e-5"'));
  }
  const file = values.get("file") ?? "";
  if (file === "") return problems;
  const place = [...where, "file"];
  problems.push(...places([[place, file]], "/out"));
  const suffix = kind === "metric" ? ".json" : ".npy";
  if (kind !== "hash" && !file.endsWith(suffix)) {
    problems.push(problem(place, `kind ${kind} compares ${suffix} files`, `name a ${suffix} file`));
  }
  return problems;
}

// What a reader refuses, as a problem of a place.
export function refusalOf(where: Location, read: () => unknown): Problem[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return [problem(where, error.message, error.hint, error.code)];
  }
}
