// Text as Python's `str` has it: of code points, where JavaScript counts UTF-16 units; and UTF-8 that is read strictly.

const HALF_PAIR = /[\ud800-\udfff]/u; // with the flag, a whole pair is one character and no match
const HALF_PAIRS = /[\ud800-\udfff]/gu;

// Say whether a text holds half a surrogate pair, which no file, database or UTF-8 can hold.
export const hasHalfPair = (text: string): boolean => HALF_PAIR.test(text);

// Write out each half of a surrogate pair, as \ud800: mirrors `plain` of hearth/base/text.py.
export function plain(text: string): string {
  return text.replace(HALF_PAIRS, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

// Return the text that bytes are in UTF-8, a byte order mark kept as the character it is; undefined where they are no
// text.
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// Return a text's first `most` characters, none of them cut in two.
export function first(text: string, most: number): string {
  return text.length <= most ? text : [...text.slice(0, 2 * most)].slice(0, most).join("");
}

// Compare as Python compares texts: by code points, where JavaScript puts U+FFFF after U+10000. Below, equal, above 0.
export function compareText(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < left.length && at < right.length; at += 1) {
    const difference = (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

// Return a text without the white space at its ends. Python's str.strip takes off more than JavaScript does, but not the mark of
// byte order: a text with one is left as it is, so that the page takes nothing that the library refuses.
export const trimmed = (text: string): string => (text.includes("\ufeff") ? text : text.trim());

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
