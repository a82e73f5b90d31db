// Write plain values as the text of a job file that the page and the library read back equal: mappings a line for each key, all
// else as JSON, the subset of YAML in which every text is quoted, so that no id or decimal can turn into a number. Mirrors
// `dump_values` of hearth/spec/load.py.

import { SPEC_TEXT } from "../generated/spec";
import type { Value, ValueMap } from "./yaml";

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]*$/;
const CONSTANTS: ReadonlySet<string> = new Set(SPEC_TEXT.constants.map(([word]) => word));
// What JSON allows in a text and YAML has in escapes alone.
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

// The text of a mapping. A half of a surrogate pair is written by its number, and refused when it is read.
export const dumpValues = (value: ValueMap): string => `${value.size === 0 ? "{}" : lines(value, 0).join("\n")}\n`;

function lines(value: ValueMap, indent: number): string[] {
  const pad = "  ".repeat(indent);
  return [...value].flatMap(([key, item]) => {
    const word = PLAIN_KEY.test(key) && !CONSTANTS.has(key) ? key : quoted(key);
    if (item instanceof Map && item.size > 0) return [`${pad}${word}:`, ...lines(item, indent + 1)];
    return [`${pad}${word}: ${flow(item)}`];
  });
}

function flow(value: Value): string {
  // `${` would name a variable.
  if (typeof value === "string") return quoted(value.replaceAll("${", "$$${"));
  if (value instanceof Map) return `{${[...value].map(([key, item]: [string, Value]) => `${quoted(key)}: ${flow(item)}`).join(", ")}}`;
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  return String(value);
}

const quoted = (text: string): string =>
  JSON.stringify(text).replace(UNPRINTABLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
