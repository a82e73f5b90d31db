// Write plain values as the text of a job file that the page and the library read back equal: mappings a line for each key, all
// else as JSON, the subset of YAML in which every text is quoted, so that no id or decimal can turn into a number. What a screen
// does not show, or shows in another order, stands there by its number. Mirrors `dump_values` of hearth/jobfile/load.py.

import { SPEC_TEXT } from "../generated/spec";
import { UNSEEN } from "../generated/text";
import type { Value, ValueMap } from "./values";

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]*$/;
const CONSTANTS: ReadonlySet<string> = new Set(SPEC_TEXT.constants.map(([word]) => word));
// What JSON allows in a text and YAML has in escapes alone.
const UNPRINTABLE: readonly (readonly [number, number])[] = [[0xfffe, 0xffff]];
const ranges = [...UNPRINTABLE, ...UNSEEN].map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`);
const BY_NUMBER = new RegExp(`[${ranges.join("")}]`, "gu");

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

const quoted = (text: string): string => JSON.stringify(text).replace(BY_NUMBER, numbered);

function numbered(one: string): string {
  const code = (one.codePointAt(0) as number).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
}
