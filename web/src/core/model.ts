// The job spec as a user writes it: the values of its fields, each well formed by itself. Mirrors what the models of
// hearth/jobfile/model.py take, whose fields, bounds and defaults are generated, and the code of each refusal. The words are
// the page's own.

import { SPEC_BOUNDS, SPEC_MODELS, SPEC_PATTERNS } from "../generated/spec";
import type { VENDORS } from "../generated/tiers";
import { small } from "./numbers";
import { type Location, type Problem, problem } from "./problems";
import { DECIMAL, refusalOf } from "./rules";
import { first } from "./unicode";
import { parseDuration, parseSize, splitAmount, splitRate } from "./units";
import type { Value, ValueMap } from "./values";

export type RuntimeName = "docker" | "wasm";
export type VendorName = (typeof VENDORS)[number]["name"];
export type VerifyMode = "none" | "attested" | "referee" | "retrial";
export type Condition = "success" | "failure" | "always";

export interface Gpu {
  readonly count: number;
  readonly tier: string | null;
  readonly vram: string | null;
  readonly vendor: VendorName | null;
  readonly exact: boolean;
}

export interface Resources {
  readonly gpu: Gpu;
  readonly cpus: number;
  readonly memory: string;
  readonly disk: string | null;
  readonly regions: readonly string[];
}

export interface Input {
  readonly src: string;
  readonly dst: string;
  readonly encrypt: boolean;
}

export interface Output {
  readonly path: string;
  readonly required: boolean;
  readonly max_size: string;
}

export interface Compare {
  readonly kind: "hash" | "allclose" | "cosine" | "metric";
  readonly file: string | null;
  readonly atol: string | null;
  readonly rtol: string | null;
  readonly minimum: string | null;
  readonly field: string | null;
}

export interface Verify {
  readonly mode: VerifyMode | null;
  readonly attesters: string | null;
  readonly window: string | null;
  readonly compare: Compare;
  readonly replicas: number | null;
  readonly keep: boolean;
}

// A job, as its submitter writes it; every field is there, with its default where the file leaves it out.
export interface JobSpec {
  readonly version: number;
  readonly name: string;
  readonly runtime: RuntimeName | null;
  readonly image: string | null;
  readonly module: string | null;
  readonly command: readonly string[];
  readonly workdir: string | null;
  readonly env: ReadonlyMap<string, string>;
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  readonly resources: Resources;
  readonly limits: { readonly runtime: string; readonly deadline: string | null };
  readonly price: {
    readonly max_total: string | null;
    readonly max_rate: string | null;
    readonly keeper_fee: string;
    readonly billing: "auto" | "fixed" | "fuel" | "metered";
  };
  readonly match: { readonly window: string | null; readonly newcomers: boolean };
  readonly verify: Verify;
  readonly array: { readonly units: number; readonly chunk: number };
  readonly after: readonly { readonly job: string; readonly condition: Condition }[];
  readonly retry: { readonly attempts: number };
  readonly checkpoint: { readonly every: string; readonly path: string } | null;
}

// What a field takes, as the generated table says it.
type Type =
  | { readonly kind: "text"; readonly pattern?: "name" }
  | { readonly kind: "duration" | "size" | "amount" | "fee" | "rate" | "decimal" | "bool" }
  | { readonly kind: "whole"; readonly least: number; readonly most: number }
  | { readonly kind: "word"; readonly words: readonly string[] }
  | {
      readonly kind: "list";
      readonly item: Type;
      readonly fewest?: number;
      readonly most?: number;
      readonly form?: "parents";
    }
  | { readonly kind: "map"; readonly item: Type; readonly most: number }
  | { readonly kind: "model"; readonly model: string; readonly form?: "parent" }
  | { readonly kind: "nullable"; readonly inner: Type };

interface Field {
  readonly key: string;
  readonly name?: string;
  readonly type: Type;
  readonly default?: unknown;
}

const MODELS: ReadonlyMap<string, readonly Field[]> = new Map(Object.entries(SPEC_MODELS));
const ROOT = "JobSpec";
const NAME = new RegExp(SPEC_PATTERNS.name);
const WHOLE = new RegExp(`^(?:${SPEC_PATTERNS.whole})$`);
const BY_UNIT = { duration: 'write it with its unit: "90s", "30m", "1d12h"', size: 'write it with its unit: "16GiB", "512MiB"' };

// What a value is read as where it is refused: its problem has been noted.
const REFUSED = Symbol("refused");
type Read = unknown;

// The spec that plain values describe, or every problem that keeps them from being one. Throws nothing.
export function readModel(data: ValueMap): { spec: JobSpec | null; problems: readonly Problem[] } {
  const reader = new Reader();
  const spec = reader.model(ROOT, data, []);
  return { spec: spec === REFUSED ? null : (spec as JobSpec), problems: reader.problems };
}

// Reads values by the generated table. Recursion is as deep as the model.
class Reader {
  readonly #problems: Problem[] = [];

  get problems(): readonly Problem[] {
    return [...this.#problems];
  }

  model(name: string, given: Value, where: Location): Read {
    if (!(given instanceof Map)) return this.refuse(where, "must be a mapping");
    const fields = fieldsOf(name);
    // Only names of the table become keys here.
    const values: Record<string, unknown> = {};
    for (const { key, name: inner = key, type, default: otherwise } of fields) {
      const value = given.get(key);
      if (value !== undefined) values[inner] = this.value(type, value, [...where, key]);
      else if (otherwise !== undefined) values[inner] = defaultOf(type, otherwise);
      else values[inner] = this.refuse(where, `${key} is missing`, `add ${key}`, "MISSING_KEY");
    }
    const names = fields.map((field) => field.key);
    const unknown = [...given.keys()].filter((key) => !names.includes(key));
    for (const key of unknown) this.refuse([...where, key], "unknown key", `known here: ${names.join(", ")}`, "UNKNOWN_KEY");
    return unknown.length > 0 || Object.values(values).includes(REFUSED) ? REFUSED : values;
  }

  private value(type: Type, given: Value, where: Location): Read {
    switch (type.kind) {
      case "nullable":
        return given === null ? null : this.value(type.inner, given, where);
      case "model":
        return type.form === "parent" ? this.parent(type.model, given, where) : this.model(type.model, given, where);
      case "list":
        return this.list(type, type.form === "parents" && !Array.isArray(given) ? [given] : given, where);
      case "map":
        return this.map(type, given, where);
      case "word":
        if (typeof given === "string" && type.words.includes(given)) return given;
        return this.refuse(where, `must be one of: ${type.words.join(", ")}`);
      case "bool":
        return typeof given === "boolean" ? given : this.refuse(where, "must be true or false, without quotes");
      case "whole":
        return this.whole(type.least, type.most, given, where);
      case "duration":
      case "size":
        if (typeof given === "bigint") return this.refuse(where, `${given} has no unit`, BY_UNIT[type.kind], "BAD_UNIT");
        if (typeof given !== "string") return this.refuse(where, "must be text", BY_UNIT[type.kind]);
        return this.tried(where, given, type.kind === "duration" ? parseDuration : parseSize);
      default:
        return this.written(type, given, where);
    }
  }

  // A job to wait for: its id alone, or a mapping.
  private parent(model: string, given: Value, where: Location): Read {
    if (given instanceof Map) return this.model(model, given, where);
    const job = this.text(given, where);
    return job === undefined ? REFUSED : this.model(model, new Map([["job", job]]), where);
  }

  private list({ item, most = Infinity, fewest = 0 }: Type & { kind: "list" }, given: Value, where: Location): Read {
    if (!Array.isArray(given)) return this.refuse(where, "must be a list");
    if (given.length > most) return this.tooMany(given.length, most, where);
    if (given.length < fewest) return this.refuse(where, `must have at least ${fewest} entry`);
    const items = given.map((one: Value, index) => this.value(item, one, [...where, index]));
    return items.includes(REFUSED) ? REFUSED : items;
  }

  private map({ item, most }: Type & { kind: "map" }, given: Value, where: Location): Read {
    if (!(given instanceof Map)) return this.refuse(where, "must be a mapping");
    const items = [...given].map(([key, one]) => [key, this.value(item, one, [...where, key])] as const);
    if (items.some(([, one]) => one === REFUSED)) return REFUSED;
    return items.length > most ? this.tooMany(items.length, most, where) : new Map(items);
  }

  private tooMany(count: number, most: number, where: Location): Read {
    return this.refuse(where, `has ${count} entries; the most is ${most}`);
  }

  private whole(least: number, most: number, given: Value, where: Location): Read {
    // A value that came in by a variable is text; digits in quotes are as good as digits.
    const number = typeof given === "string" && WHOLE.test(given) ? BigInt(given) : given;
    if (typeof number === "bigint" && BigInt(least) <= number && number <= BigInt(most)) return small(number);
    return this.refuse(where, `must be a whole number from ${least} to ${most}`);
  }

  private written(type: Type, given: Value, where: Location): Read {
    if (type.kind === "fee" && given === "auto") return given;
    const text = this.text(given, where);
    if (text === undefined) return REFUSED;
    switch (type.kind) {
      case "text":
        if (type.pattern === undefined || NAME.test(text)) return text;
        return this.refuse(where, "is not a name", "use letters, digits, space, dot, _ and -, up to 64");
      case "amount":
      case "fee":
        return this.tried(where, text, splitAmount);
      case "rate":
        return this.tried(where, text, () => splitAmount(splitRate(text)[0]));
      case "decimal":
        return DECIMAL.test(text) ? text : this.refuse(where, "is not a decimal number", 'write it as "0.001" or "1e-5"');
      default:
        throw new TypeError(`the page has no rule for ${type.kind}`);
    }
  }

  // The text of a value, or undefined where it is none: its problem has been noted.
  private text(given: Value, where: Location): string | undefined {
    if (typeof given === "bigint" || typeof given === "boolean") {
      this.refuse(where, `${given} is unquoted, and this is text`, `write "${given}" in quotes`, "UNQUOTED");
    } else if (typeof given !== "string") this.refuse(where, "must be text");
    else if (given.includes("\0")) this.refuse(where, "holds a NUL character");
    else if (first(given, SPEC_BOUNDS.maxText) !== given) this.refuse(where, `has more than ${SPEC_BOUNDS.maxText} characters`);
    else return given;
    return undefined;
  }

  // The text, where a reader takes it; what the reader refuses is the problem.
  private tried(where: Location, text: string, read: (text: string) => unknown): Read {
    const [fault] = refusalOf(where, () => read(text));
    if (fault === undefined) return text;
    this.#problems.push(fault);
    return REFUSED;
  }

  private refuse(where: Location, message: string, hint = "", code = "BAD_SPEC"): typeof REFUSED {
    this.#problems.push(problem(where, message, hint, code));
    return REFUSED;
  }
}

function fieldsOf(model: string): readonly Field[] {
  const fields = MODELS.get(model);
  if (fields === undefined) throw new TypeError(`the page has no model ${model}`);
  return fields;
}

// A default as the model's values are: mappings of words are Maps, and nothing is shared that a caller could change.
function defaultOf(type: Type, given: unknown): unknown {
  if (type.kind === "map") return new Map(Object.entries(given as Record<string, string>));
  return structuredClone(given);
}
