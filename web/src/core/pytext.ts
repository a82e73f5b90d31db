// Text as Python handles it, where JavaScript would differ: order and length by code points, case, repr.

// Compare as Python compares str: by code points. JavaScript's own order is that of UTF-16 units, in which characters
// above U+FFFF come before U+E000.
export function comparePoints(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at += 1) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

// A UTF-16 unit's place in the order of code points: a surrogate stands for one above all others.
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);

// How many code points a text has: Python's len().
export function points(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    const unit = text.charCodeAt(at);
    const next = text.charCodeAt(at + 1);
    if (unit >= 0xd800 && unit <= 0xdbff && next >= 0xdc00 && next <= 0xdfff) count -= 1;
  }
  return count;
}

// The first `most` code points of a text: Python's text[:most].
export function firstPoints(text: string, most: number): string {
  if (text.length <= most) return text;
  return Array.from(text.slice(0, 2 * most)).slice(0, most).join("");
}
