// What strangers write, made fit to be shown: what would move, hide or reorder text stands there by its number.

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

// Return a text of at most `most` characters, line breaks and tabs kept, with every other control, zero-width and
// direction character written as U+202E.
export function shown(text: string, most = 10_000): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(HIDDEN, (found) => `U+${(found.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}`);
}

// The same of one line: line breaks and tabs are written out too.
export function shownLine(text: string, most = 200): string {
  return shown(text, most).replace(/[\t\n]/g, (found) => (found === "\n" ? "U+000A" : "U+0009"));
}

// A log: what colours a terminal is left out, then as any text.
export function shownLog(text: string, most = 1_000_000): string {
  return shown(text.slice(0, most).replace(ANSI, "").replace(/\r\n/g, "\n"), most);
}
