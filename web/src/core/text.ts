// What strangers write, made fit to be shown: what would move, hide or reorder text stands there by its number.

import { UNSEEN } from "../generated/text";

const unicode = (code: number): string => `\\u{${code.toString(16)}}`;
// What a screen does not show, or shows in another order, as it stands in the brackets of an expression.
export const UNSEEN_CLASS = UNSEEN.map(([start, last]) => `${unicode(start)}-${unicode(last)}`).join("");
// All of it but tabs and line breaks, and each half of a surrogate pair.
const HIDDEN = new RegExp(`(?![\\t\\n])[${UNSEEN_CLASS}\\p{Surrogate}]`, "gu");
const UNSEEN_CHARACTERS = new RegExp(`[${UNSEEN_CLASS}\\p{Surrogate}]`, "gu");
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

// Return a text of at most `most` characters, line breaks and tabs kept, with every other control, zero-width and
// direction character written as U+202E.
export function shown(text: string, most = 10_000): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(HIDDEN, (found) => `U+${(found.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}`);
}

// Return a text as one line with all that is unseen written out, tabs and line ends too, as the library writes it: \x1b.
// Mirrors hearth/base/text.py:one_line.
export function oneLine(text: string): string {
  return text.replace(UNSEEN_CHARACTERS, (found) => {
    const code = found.codePointAt(0) as number;
    const hex = code.toString(16);
    const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
    return short ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`);
  });
}

// The same of one line: line breaks and tabs are written out too.
export function shownLine(text: string, most = 200): string {
  return shown(text, most).replace(/[\t\n]/g, (found) => (found === "\n" ? "U+000A" : "U+0009"));
}

// A log: what colours a terminal is left out, then as any text.
export function shownLog(text: string, most = 1_000_000): string {
  return shown(text.slice(0, most).replace(ANSI, "").replace(/\r\n/g, "\n"), most);
}
