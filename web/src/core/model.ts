// The job spec as a user writes it: the values of its fields, each well formed by itself. Mirrors the models of
// hearth/spec/model.py, whose fields, bounds and defaults are generated, and the sentences of hearth/spec/explain.py.

import { OLDER_KEYS, SPEC_BOUNDS, SPEC_MODELS, SPEC_PATTERNS } from "../generated/spec";
import { HearthError } from "./errors";
import { nearest } from "./near";
import { small } from "./numbers";
import { type Location, type Problem, problem } from "./problems";
import { shown } from "./pytext";
import { DECIMAL } from "./rules";
import { first } from "./unicode";
import { parseDuration, parseSize, splitRate } from "./units";
import type { Value, ValueMap } from "./yaml";

export type RuntimeName = "docker" | "wasm";
export type VerifyMode = "none" | "attested" | "referee" | "retrial";
export type Condition = "success" | "failure" | "always";

export interface Gpu {
  readonly count: number;
  readonly tier: string | null;
  readonly vram: string | null;
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
const OLDER: ReadonlyMap<string, readonly string[]> = new Map(Object.entries(OLDER_KEYS));
const ROOT = "JobSpec";
const NAME = new RegExp(SPEC_PATTERNS.name);
const AMOUNT = new RegExp(`^(?:${SPEC_PATTERNS.amount})$`);
const WHOLE = new RegExp(`^(?:${SPEC_PATTERNS.whole})$`);

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
  readonly problems: Problem[] = [];

  model(name: string, given: Value, where: Location): Read {
    const fields = fieldsOf(name);
    if (!(given instanceof Map)) {
      const hint = `write ${example(where, given) || "{key: value}"}`;
      return this.refuse(problem(where, `must be a mapping, not ${typed(given)}`, hint));
    }
    // Only names of the table become keys here.
    const values: Record<string, unknown> = {};
    let whole = true;
    for (const { key, name: inner = key, type, default: otherwise } of fields) {
      const value = given.get(key);
      if (value !== undefined) values[inner] = this.value(type, value, [...where, key]);
      else if (otherwise !== undefined) values[inner] = defaultOf(type, otherwise);
      else values[inner] = this.refuse(problem(where, `${key} is missing`, `add ${key}`, "MISSING_KEY"));
      whole &&= values[inner] !== REFUSED;
    }
    for (const key of given.keys()) {
      if (fields.some((field) => field.key === key)) continue;
      this.refuse(unknown(where, key));
      whole = false;
    }
    return whole ? values : REFUSED;
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
        return this.refuse(problem(where, `must be ${oneOf(type.words)}, not "${shown(given)}"`));
      case "bool":
        if (typeof given === "boolean") return given;
        return this.refuse(problem(where, `must be true or false, not ${typed(given)}`, "write it without quotes"));
      case "whole":
        return this.whole(type.least, type.most, given, where);
      case "duration":
      case "size":
        return this.quantity(type.kind, given, where);
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

  private list({ item, most, fewest }: Type & { kind: "list" }, given: Value, where: Location): Read {
    if (!Array.isArray(given)) {
      const hint = `write [${example(where, given) || "a, b"}]`;
      return this.refuse(problem(where, `must be a list, not ${typed(given)}`, hint));
    }
    if (most !== undefined && given.length > most) return this.tooMany(given.length, most, where);
    const items = given.map((one: Value, index) => this.value(item, one, [...where, index]));
    if (items.includes(REFUSED)) return REFUSED;
    if (fewest === undefined || items.length >= fewest) return items;
    const entries = `${fewest} item${fewest === 1 ? "" : "s"}`;
    return this.refuse(problem(where, `List should have at least ${entries} after validation, not ${items.length}`));
  }

  private map({ item, most }: Type & { kind: "map" }, given: Value, where: Location): Read {
    if (!(given instanceof Map)) {
      return this.refuse(problem(where, `must be a mapping, not ${typed(given)}`, "write {key: value}"));
    }
    const items = [...given].map(([key, one]) => [key, this.value(item, one, [...where, key])] as const);
    if (items.some(([, one]) => one === REFUSED)) return REFUSED;
    return items.length > most ? this.tooMany(items.length, most, where) : new Map(items);
  }

  private tooMany(count: number, most: number, where: Location): Read {
    return this.refuse(problem(where, `has ${count} entries; the most is ${most}`));
  }

  private whole(least: number, most: number, given: Value, where: Location): Read {
    // A value that came in by a variable is text; digits in quotes are as good as digits.
    const number = typeof given === "string" && WHOLE.test(given) ? BigInt(given) : given;
    if (typeof number !== "bigint") {
      return this.refuse(problem(where, `must be a whole number, not ${typed(number)}`));
    }
    if (BigInt(least) <= number && number <= BigInt(most)) return small(number);
    const bound = number < BigInt(least) ? `at least ${least}` : `at most ${most}`;
    return this.refuse(problem(where, `${number} is out of range: must be ${bound}`));
  }

  // A duration or a size, which a number without a unit is not.
  private quantity(kind: "duration" | "size", given: Value, where: Location): Read {
    if (typeof given === "bigint") {
      const unit = kind === "duration" ? "s" : "GiB";
      return this.refuse(problem(where, `${given} has no unit`, `did you mean "${given}${unit}"?`, "BAD_UNIT"));
    }
    if (typeof given !== "string") return this.refuse(problem(where, `must be text, not ${kindOf(given)}`));
    return this.tried(where, given, () => (kind === "duration" ? parseDuration(given) : parseSize(given)));
  }

  private written(type: Type, given: Value, where: Location): Read {
    if (type.kind === "fee" && given === "auto") return given;
    const text = this.text(given, where);
    if (text === undefined) return REFUSED;
    switch (type.kind) {
      case "text":
        if (type.pattern === undefined || NAME.test(text)) return text;
        return this.refuse(
          problem(where, `"${shown(text)}" is not a name`, "use letters, digits, space, dot, _ and -, up to 64"),
        );
      case "amount":
      case "fee":
        return this.amount(text, where) ? text : REFUSED;
      case "rate": {
        const rate = this.tried(where, text, () => splitRate(text));
        return rate !== REFUSED && this.amount(splitRate(text)[0], where) ? text : REFUSED;
      }
      case "decimal":
        if (DECIMAL.test(text)) return text;
        return this.refuse(problem(where, `"${text}" is not a decimal number`, 'write it as "0.001" or "1e-5"'));
      default:
        throw new TypeError(`the page has no rule for ${type.kind}`);
    }
  }

  private amount(text: string, where: Location): boolean {
    if (AMOUNT.test(text)) return true;
    this.refuse(problem(where, `"${text}" is not an amount`, 'write it as "0.60" or "0.60 ETH"', "BAD_AMOUNT"));
    return false;
  }

  // The text of a value, or undefined where it is none: its problem has been noted.
  private text(given: Value, where: Location): string | undefined {
    const why = textFault(given, where);
    if (why !== undefined) this.refuse(why);
    return why === undefined ? (given as string) : undefined;
  }

  // The text, where a reader takes it; what the reader refuses is the problem.
  private tried(where: Location, text: string, read: () => unknown): Read {
    try {
      read();
      return text;
    } catch (error) {
      if (!(error instanceof HearthError)) throw error;
      return this.refuse(problem(where, error.message, error.hint, error.code));
    }
  }

  private refuse(why: Problem): typeof REFUSED {
    this.problems.push(why);
    return REFUSED;
  }
}

function textFault(given: Value, where: Location): Problem | undefined {
  if (typeof given === "boolean" || typeof given === "bigint") {
    return problem(where, `${given} is unquoted, and this is text`, `quote it: "${given}"`, "UNQUOTED");
  }
  if (typeof given !== "string") return problem(where, `must be text, not ${kindOf(given)}`);
  if (given.includes("\0")) return problem(where, "holds a NUL character");
  const length = given.length > SPEC_BOUNDS.maxText ? [...given].length : 0;
  if (length <= SPEC_BOUNDS.maxText) return undefined;
  return problem(where, `has ${length} characters; the most is ${SPEC_BOUNDS.maxText}`);
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

function unknown(where: Location, key: string): Problem {
  const model = modelAt(where);
  const older = OLDER.get(where.filter((part) => typeof part === "string").join(".")) ?? [];
  const names = [...fieldsOf(model ?? ROOT).map((field) => field.key), ...older];
  // An older key that stands beside its newer form is told of that one.
  const [near] = nearest(key.toLowerCase(), names.filter((name) => name !== key), 1);
  const hint = near === undefined ? `known here: ${names.join(", ")}` : `did you mean "${near}"?`;
  return problem([...where, key], "unknown key", hint, "UNKNOWN_KEY");
}

// A mapping as its place takes one, with what was given in it where that is one value; "" for no model's place.
function example(where: Location, given: Value): string {
  const model = modelAt(where);
  if (model === undefined || given === null) return "";
  const fields = fieldsOf(model);
  const required = fields.filter((field) => field.default === undefined);
  const [leading, ...more] = required.length > 0 ? required : fields.slice(0, 1);
  const rest = more.map((field) => `${field.key}: ...`);
  if (leading === undefined) return "";
  if (typeof given !== "string" && typeof given !== "bigint") return `{${[`${leading.key}: ...`, ...rest].join(", ")}}`;
  const value = leading.type.kind === "whole" ? `${given}` : `"${shown(given)}"`;
  return `{${[`${leading.key}: ${value}`, ...rest].join(", ")}}`;
}

// The model whose fields are the keys at a place, or undefined where there is none.
function modelAt(where: Location): string | undefined {
  let model: string | undefined = ROOT;
  for (const part of where) {
    if (typeof part === "number") continue;
    const field: Field | undefined = model === undefined ? undefined : fieldsOf(model).find((one) => one.key === part);
    model = field === undefined ? undefined : modelIn(field.type);
  }
  return model;
}

function modelIn(type: Type): string | undefined {
  if (type.kind === "model") return type.model;
  if (type.kind === "nullable") return modelIn(type.inner);
  return type.kind === "list" || type.kind === "map" ? modelIn(type.item) : undefined;
}

const oneOf = (words: readonly string[]): string =>
  words.map((word) => `"${word}"`).join(", ").replace(/, ("[^"]*")$/, " or $1");

function kindOf(value: Value): string {
  if (value === null) return "empty";
  if (typeof value === "boolean") return "bool";
  return Array.isArray(value) ? "a list" : "a mapping";
}

function typed(value: Value): string {
  if (value === null) return "empty";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return `the number ${value}`;
  if (typeof value === "string") return `the text "${first(value, 80)}"`;
  return Array.isArray(value) ? "a list" : "a mapping";
}
