// Texts of cells and lines: comma-separated values as RFC 4180 has them, and the same with tabs.

import { HearthError } from "./errors";

// What is neither a quote's text nor an end, from a place on.
const PLAIN = { ",": /[^,\r\n]*/y, "\t": /[^\t\r\n]*/y } as const;
const END = /\r\n|\r|\n|$/y;

// Return the cells of each line. A quoted cell may hold the separator, line breaks and doubled quotes; a quote within a cell that
// does not begin with one is that character. Throws NO_TABLE for a quote that is not closed, or has text behind it.
export function readCsv(text: string, separator: keyof typeof PLAIN): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length || row.length > 0) {
    const [cell, end] = text[at] === '"' ? quoted(text, at, rows.length + 1) : plain(text, at, PLAIN[separator]);
    row.push(cell);
    if (text[end] === separator) {
      at = end + 1;
      continue;
    }
    END.lastIndex = end;
    const found = END.exec(text);
    if (found === null) throw noTable(`row ${rows.length + 1} has text behind a closing quote`);
    at = end + found[0].length;
    rows.push(row);
    row = [];
  }
  return rows;
}

export const noTable = (why: string): HearthError =>
  new HearthError("NO_TABLE", `this file is shown as no table: ${why}`, "save it");

function plain(text: string, from: number, cell: RegExp): readonly [string, number] {
  cell.lastIndex = from;
  const found = cell.exec(text)?.[0] ?? "";
  return [found, from + found.length];
}

function quoted(text: string, from: number, row: number): readonly [string, number] {
  const parts: string[] = [];
  for (let at = from + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) throw noTable(`a quote in row ${row} is not closed`);
    parts.push(text.slice(at, quote));
    if (text[quote + 1] !== '"') return [parts.join('"'), quote + 1];
    at = quote + 2;
  }
}
