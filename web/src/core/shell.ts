// Split a command into words as a POSIX shell does, and say whether it needs one. Mirrors Python's shlex.split and
// `needs_shell` of hearth/spec/sugar.py.

import { SPEC_PATTERNS } from "../generated/spec";

const WHITE = " \t\r\n";
const SHELL = new RegExp(SPEC_PATTERNS.shell, "u");
// Quoted text in which a shell would replace nothing.
const INERT = /'[^']*'|"[^"$`\\]*"|\\[^\n]/gu;

// Say whether a command holds what only a shell understands: pipes, variables, lists of commands.
export const needsShell = (text: string): boolean => SHELL.test(text.replace(INERT, ""));

// The words of a command; or, as text, why it has none: a quote that is not closed, a backslash with nothing behind it.
export function splitWords(text: string): readonly string[] | string {
  const words: string[] = [];
  let word = "";
  let begun = false;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const one = text.charAt(at);
    if (one === "\\" && quote !== "'") {
      at += 1;
      if (at >= text.length) return "No escaped character";
      const next = text.charAt(at);
      // Within quotes only the quote itself and the backslash are escaped.
      word += quote !== "" && next !== "\\" && next !== quote ? one + next : next;
      begun = true;
    } else if (quote !== "") {
      if (one === quote) quote = "";
      else word += one;
    } else if (one === "'" || one === '"') {
      quote = one;
      begun = true;
    } else if (WHITE.includes(one)) {
      if (begun) words.push(word);
      word = "";
      begun = false;
    } else {
      word += one;
      begun = true;
    }
  }
  if (quote !== "") return "No closing quotation";
  if (begun) words.push(word);
  return words;
}
