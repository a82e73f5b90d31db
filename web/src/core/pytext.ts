// Text as Python's built-ins make it, where the library's sentences and rules depend on that: str() of a value, and
// what two names are when case is put aside.

import { first } from "./unicode";
import type { Value } from "./yaml";

// A value as str() shows it: "None", "True", "[1, 'a']"; text is itself.
export const str = (value: Value): string => (typeof value === "string" ? value : repr(value));

// A value as str() shows it, at most 80 characters of it: what a sentence quotes.
export const shown = (value: Value): string => first(str(value), 80);

function repr(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string") return quoted(value);
  if (value instanceof Map) {
    return `{${[...value].map(([key, item]) => `${quoted(key)}: ${repr(item)}`).join(", ")}}`;
  }
  return `[${(value as readonly Value[]).map(repr).join(", ")}]`;
}

// Text in the quotes that Python would choose, with what does not print written out.
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let inner = "";
  for (const one of text) {
    if (one === quote || one === "\\") inner += `\\${one}`;
    else if (one === "\n") inner += "\\n";
    else if (one === "\r") inner += "\\r";
    else if (one === "\t") inner += "\\t";
    else if (one !== " " && /[\p{C}\p{Z}]/u.test(one)) inner += escaped(one.codePointAt(0) as number);
    else inner += one;
  }
  return quote + inner + quote;
}

function escaped(code: number): string {
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

// A name without its case and its way of composing accents: two names with one folded form are one name. It tells
// apart what str.casefold() does after NFC, but for the dotless i, which it takes for an i.
export function folded(name: string): string {
  let text = "";
  for (const one of name.normalize("NFC")) {
    // Twice, since a capital sharp s becomes a small one first, and only then two letters.
    text += lowered(raised(lowered(raised(one))));
  }
  return text;
}

// Case character by character: as words, a sigma at the end would become another letter.
const raised = (text: string): string => [...text].map((one) => one.toUpperCase()).join("");
const lowered = (text: string): string => [...text].map((one) => one.toLowerCase()).join("");
