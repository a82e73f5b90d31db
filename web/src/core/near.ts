// The names that are most like a word: "did you mean". Mirrors Python's difflib.get_close_matches, by Ratcliff and
// Obershelp, without its shortcut for texts of 200 characters and more, which are like no name here.

import { compareText } from "./unicode";

const CUTOFF = 0.6;
const LONGEST = 200;

// The at most `most` names like the word, the most similar first.
export function nearest(word: string, names: readonly string[], most: number): string[] {
  const wanted = [...word];
  if (wanted.length >= LONGEST) return [];
  return names
    .map((name) => ({ name, score: ratio([...name], wanted) }))
    .filter(({ score }) => score >= CUTOFF)
    .sort((a, b) => b.score - a.score || compareText(b.name, a.name))
    .slice(0, most)
    .map(({ name }) => name);
}

// How much two texts have in common, 0 to 1: twice the characters of their common runs, of all characters.
function ratio(a: readonly string[], b: readonly string[]): number {
  const all = a.length + b.length;
  return all === 0 ? 1 : (2 * common(a, b)) / all;
}

// The characters of the longest common run, and of those left and right of it in the same way.
function common(a: readonly string[], b: readonly string[]): number {
  const parts: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  let found = 0;
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    const [aLow, aHigh, bLow, bHigh] = part;
    const [at, to, size] = longestRun(a, b, part);
    if (size === 0) continue;
    found += size;
    parts.push([aLow, at, bLow, to], [at + size, aHigh, to + size, bHigh]);
  }
  return found;
}

// Where the longest run that both parts have begins in each, and its length: of equal ones the first in a, then in b.
function longestRun(
  a: readonly string[],
  b: readonly string[],
  [aLow, aHigh, bLow, bHigh]: readonly [number, number, number, number],
): [number, number, number] {
  let best: [number, number, number] = [aLow, bLow, 0];
  let before = new Map<number, number>();
  for (let at = aLow; at < aHigh; at += 1) {
    const lengths = new Map<number, number>();
    for (let to = bLow; to < bHigh; to += 1) {
      if (a[at] !== b[to]) continue;
      const length = (before.get(to - 1) ?? 0) + 1;
      lengths.set(to, length);
      if (length > best[2]) best = [at - length + 1, to - length + 1, length];
    }
    before = lengths;
  }
  return best;
}
