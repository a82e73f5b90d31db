// Python's str.strip, which takes other characters off than String.trim does: the information separators and NEL, and
// not the byte order mark.

const SPACES: ReadonlySet<string> = new Set(
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
    "\u2028\u2029\u202f\u205f\u3000",
);

// Return a text without the white space at its ends, as Python's str.strip has it.
export function strip(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && SPACES.has(text.charAt(from))) from += 1;
  while (from < to && SPACES.has(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}
