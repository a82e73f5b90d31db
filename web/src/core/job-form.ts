// A job file as a form shows it: its values by their places, and the values with one of them changed. The text stays the one
// source: a form is read from a text, and what it changes is written as a text again (core/dump.ts).

import { SPEC_MODELS } from "../generated/spec";
import { HearthError } from "./errors";
import { fieldName, type Location } from "./problems";
import { desugar } from "./sugar";
import type { Value, ValueMap } from "./values";
import { readText } from "./yaml";

// What a field takes, without being nullable.
export interface FieldType {
  readonly kind: string;
  readonly words: readonly string[];
  // The names of a model's fields, and what a list or a mapping holds.
  readonly keys: readonly string[];
  readonly item: FieldType | undefined;
}

interface Raw {
  readonly kind: string;
  readonly words?: readonly string[];
  readonly model?: string;
  readonly inner?: Raw;
  readonly item?: Raw;
}

const MODELS: ReadonlyMap<string, readonly { readonly key: string; readonly type: Raw; readonly default?: unknown }[]> = new Map(
  Object.entries(SPEC_MODELS),
);
const ROOT: Raw = { kind: "model", model: "JobSpec" };

// The type of the field at a place; a number stands for any item of a list, a name for any of a mapping. Throws a TypeError for a
// place that no job file has.
export function typeAt(where: Location): FieldType {
  let raw: Raw = ROOT;
  for (const part of where) {
    const at = bare(raw);
    const next: Raw | undefined = fieldsOf(at).find(({ key }) => key === part)?.type ?? at.item;
    if (next === undefined) throw new TypeError(`a job file has no ${fieldName(where)}`);
    raw = next;
  }
  return typeOf(raw);
}

// What a field is taken for where it is left out, as it would be written; "" for nothing. One whose mapping is left out too is what
// the mapping's own default says: no GPU where there is no `gpu`, one where there is.
export function leftOut(data: ValueMap, where: Location): string {
  let raw: Raw = ROOT;
  for (const [place, part] of where.entries()) {
    const at = bare(raw);
    const field = fieldsOf(at).find(({ key }) => key === part);
    const last = place === where.length - 1;
    if (field !== undefined && (last || (valueAt(data, where.slice(0, place + 1)) ?? null) === null)) {
      let value: unknown = field.default;
      for (const key of where.slice(place + 1)) value = isRecord(value) ? value[String(key)] : undefined;
      return typeof value === "object" || value === undefined ? "" : String(value);
    }
    raw = field?.type ?? at.item ?? raw;
  }
  return "";
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null;

// A job file's values as a form shows them.
export interface Form {
  readonly data: ValueMap;
}

// Read a text for a form; an empty one is a file that says nothing yet. Throws what `readText` does, and BAD_SPEC for values that a
// form has no fields for.
export async function readForm(text: string): Promise<Form> {
  return text.trim() === "" ? { data: new Map() } : formOf((await readText(text, "job.yaml")).value);
}

// The older forms of a job become the present one. Throws BAD_SPEC.
export function formOf(value: ValueMap): Form {
  const { data, problems } = desugar(value);
  const [first] = problems;
  if (first !== undefined) throw misfit(first.where, first.message, first.hint);
  const whole = new Map(data);
  const after = data.get("after");
  if (after !== undefined && after !== null) whole.set("after", (Array.isArray(after) ? after : [after]).map(parent));
  requireShape(ROOT, whole, []);
  return { data: whole };
}

const parent = (value: Value): Value => (typeof value === "string" ? new Map([["job", value]]) : value);

// The value at a place, undefined where there is none.
export function valueAt(data: ValueMap, where: Location): Value | undefined {
  let at: Value | undefined = data;
  for (const part of where) {
    if (at instanceof Map) at = (at as ValueMap).get(String(part));
    else if (Array.isArray(at)) at = at[Number(part)];
    else return undefined;
  }
  return at;
}

// The values with one of them set, or taken out by undefined. What is left empty by that goes with it: `gpu: {}` would ask for one.
// The item of a list stays.
export function withValue(data: ValueMap, where: Location, value: Value | undefined): ValueMap {
  return set(data, where, value) as ValueMap;
}

function set(at: Value | undefined, [part, ...rest]: Location, value: Value | undefined): Value | undefined {
  if (part === undefined) return value;
  if (typeof part === "number") {
    const items: Value[] = Array.isArray(at) ? [...(at as readonly Value[])] : [];
    const next = set(items[part], rest, value);
    if (next === undefined && rest.length === 0) items.splice(part, 1);
    else items[part] = next ?? new Map();
    return items.length === 0 ? undefined : items;
  }
  const fields = new Map(at instanceof Map ? (at as ValueMap) : []);
  const next = set(fields.get(part), rest, value);
  const emptied = next instanceof Map && next.size === 0 && value === undefined;
  if (next === undefined || emptied) fields.delete(part);
  else fields.set(part, next);
  return fields;
}

// The word that stands for what is picked at a field of the file: its own if it has one, else the name of what was picked. One word
// is one thing, so it is none that another field has, nor a new one that something was `named` by: data.csv, then data-2.csv.
export function sourceWord(data: ValueMap, where: Location, picked: string, named: { has(word: string): boolean }): string {
  const here = fieldName(where);
  const inputs = data.get("inputs");
  const places: readonly Location[] = [["module"], ["workdir"], ...(Array.isArray(inputs) ? inputs.map((_, at) => ["inputs", at, "src"]) : [])];
  const others = new Set(places.filter((place) => fieldName(place) !== here).map((place) => valueAt(data, place)));
  const given = valueAt(data, where);
  const own = typeof given === "string" && given !== "" && !given.includes("://") ? given : undefined;
  if (own !== undefined && !others.has(own)) return own;
  return freeName(own ?? picked, (word) => !others.has(word) && !named.has(word));
}

// A name, or with a number before its end where that one is not free.
function freeName(base: string, isFree: (word: string) => boolean): string {
  const [, stem = base, end = ""] = /^(.+)(\.[^./]*)$/s.exec(base) ?? [];
  for (let count = 1; ; count += 1) {
    const word = count === 1 ? base : `${stem}-${count}${end}`;
    if (isFree(word)) return word;
  }
}

// The values with a picked source at its place. An input that says no place inside the job gets one by the name of what was picked.
export function withSource(data: ValueMap, where: Location, src: string, picked: string): ValueMap {
  const changed = withValue(data, where, src);
  const place = [...where.slice(0, -1), "dst"];
  if (where[0] !== "inputs" || shownValue(valueAt(changed, place)) !== "") return changed;
  const inputs = changed.get("inputs");
  const taken = new Set(Array.isArray(inputs) ? inputs.map((_, at) => valueAt(changed, ["inputs", at, "dst"])) : []);
  return withValue(changed, place, freeName(`/in/${picked}`, (word) => !taken.has(word)));
}

// What a reader typed into a field, as its value; nothing is nothing. Digits are a number only where a number belongs.
export function typedValue(text: string, { kind }: FieldType): Value | undefined {
  if (text === "") return undefined;
  return kind === "whole" && /^-?(?:0|[1-9][0-9]{0,17})$/.test(text) ? BigInt(text) : text;
}

// A value as a field shows it.
export const shownValue = (value: Value | undefined): string => (value === undefined || value === null ? "" : String(value));

// What is wrong, by field: of each error that tells problems, or names its field.
export function faultsOf(errors: readonly unknown[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const error of errors) {
    if (!(error instanceof HearthError)) continue;
    const { problems, field } = error.details as { problems?: unknown; field?: unknown };
    const all = Array.isArray(problems) ? problems : typeof field === "string" ? [{ field, message: error.message, hint: error.hint }] : [];
    for (const one of all as readonly { readonly field: string; readonly message: string; readonly hint: string }[]) {
      const said = one.hint === "" ? one.message : `${one.message}. Next: ${one.hint}`;
      const here = found.get(one.field) ?? [];
      if (!here.includes(said)) found.set(one.field, [...here, said]);
    }
  }
  return found;
}

const bare = (raw: Raw): Raw => (raw.kind === "nullable" && raw.inner !== undefined ? raw.inner : raw);

const fieldsOf = (raw: Raw) => (raw.kind === "model" ? MODELS.get(raw.model ?? "") : undefined) ?? [];

function typeOf(raw: Raw): FieldType {
  const { kind, words = [], item, model } = bare(raw);
  return {
    kind,
    words,
    keys: model === undefined ? [] : fieldsOf(bare(raw)).map(({ key }) => key),
    item: item === undefined ? undefined : typeOf(item),
  };
}

// Refuse values that stand where a form would show something else. Nothing is nothing, but as the item of a list.
function requireShape(raw: Raw, value: Value | undefined, where: Location): void {
  const { kind, item } = bare(raw);
  if (value === undefined || (value === null && typeof where.at(-1) !== "number")) return;
  if (kind === "model") {
    if (!(value instanceof Map)) throw misfit(where, "is no mapping");
    for (const { key, type } of fieldsOf(bare(raw))) requireShape(type, value.get(key), [...where, key]);
  } else if (kind === "list") {
    if (!Array.isArray(value)) throw misfit(where, "is no list");
    value.forEach((one: Value, at) => requireShape(item as Raw, one, [...where, at]));
  } else if (kind === "map") {
    if (!(value instanceof Map)) throw misfit(where, "is no mapping");
    for (const [key, one] of value) requireShape(item as Raw, one, [...where, key]);
  } else if (typeof value === "object" && value !== null) {
    throw misfit(where, "is no plain value");
  }
}

function misfit(where: Location, message: string, hint = ""): HearthError {
  const name = fieldName(where);
  return new HearthError("BAD_SPEC", `${name === "" ? "" : `${name}: `}${message}`, hint, { field: name });
}
