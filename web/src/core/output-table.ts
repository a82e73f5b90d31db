// A program's small output as a table, and its columns of numbers as lines. A stranger wrote it: whatever it holds, the work is
// as much as its bytes may be, and a number is shown as it is written.

import { counted } from "./counted";
import { noTable, readCsv } from "./csv";
import { floorDivInt } from "./numbers";

export const MOST_BYTES = 262_144;
// Columns that are shown; of a line no more points than twice the half.
const MOST_COLUMNS = 50;
// Cells that a table is made with: a file writes no more of them, but a table has one in each row for each name.
const MOST_CELLS = MOST_BYTES;
const MOST_STRETCHES = 500;

// Rows of cells, each at most MOST_COLUMNS wide and maybe shorter than the others; `wide` is how many columns there are.
export interface OutputTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly wide: number;
}

// Say whether a file's name and size are of what is shown as a table.
export const isOutputTable = (path: string, size: number | bigint): boolean => /\.(?:csv|tsv|json)$/i.test(path) && size <= MOST_BYTES;

// Read a file by its name. Throws NO_TABLE.
export function outputTableOf(path: string, bytes: Uint8Array): OutputTable {
  if (bytes.length > MOST_BYTES) throw noTable(`it has more than ${MOST_BYTES} bytes`);
  const text = textOf(bytes);
  if (text.trim() === "") throw noTable("it is empty");
  if (/\.json$/i.test(path)) return ofJson(text);
  return ofLines(readCsv(text, /\.tsv$/i.test(path) ? "\t" : ","));
}

// Return the numbers of a column, null where a cell is empty; undefined where one is no number, or fewer than two are.
export function numbersOf({ rows }: OutputTable, column: number): readonly (number | null)[] | undefined {
  const found: (number | null)[] = [];
  let count = 0;
  for (const row of rows) {
    const cell = (row[column] ?? "").trim();
    const value = cell === "" ? null : NUMBER.test(cell) ? Number(cell) : Number.NaN;
    if (value !== null && !Number.isFinite(value)) return undefined;
    if (value !== null) count += 1;
    found.push(value);
  }
  return count < 2 ? undefined : found;
}

// A line from row to row: heights from 0 to 1, and the rows of its lowest and highest place.
export interface Plot {
  readonly points: readonly { readonly row: number; readonly height: number }[];
  readonly lowest: number;
  readonly highest: number;
}

// Return the line of numbers. Of many the lowest and highest of each stretch are kept, so that no peak goes.
export function plotOf(numbers: readonly (number | null)[]): Plot {
  const given = numbers.flatMap((value, row) => (value === null ? [] : [{ row, value }]));
  const [first] = given;
  if (first === undefined) return { points: [], lowest: 0, highest: 0 };
  let [low, high] = [first, first];
  for (const one of given) {
    if (one.value < low.value) low = one;
    if (one.value > high.value) high = one;
  }
  // Halves, since the whole span of two finite numbers may be none.
  const span = high.value / 2 - low.value / 2;
  const kept = given.length > 2 * MOST_STRETCHES ? extremes(given) : given;
  const points = kept.map(({ row, value }) => ({ row, height: span === 0 ? 0.5 : (value / 2 - low.value / 2) / span }));
  return { points, lowest: low.row, highest: high.row };
}

// ---- inside ----

interface Given {
  readonly row: number;
  readonly value: number;
}

function extremes(given: readonly Given[]): readonly Given[] {
  const wide = floorDivInt(given.length - 1, MOST_STRETCHES) + 1;
  const found: Given[] = [];
  for (let start = 0; start < given.length; start += wide) {
    let [low, high] = [given[start] as Given, given[start] as Given];
    for (const one of given.slice(start, start + wide)) {
      if (one.value < low.value) low = one;
      if (one.value > high.value) high = one;
    }
    found.push(...(low === high ? [low] : low.row < high.row ? [low, high] : [high, low]));
  }
  return found;
}

const NUMBER = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw noTable("it is no UTF-8 text");
  }
}

// The first line names the columns where none of its cells is a number, and others follow.
function ofLines(lines: readonly (readonly string[])[]): OutputTable {
  const [first = [], ...rest] = lines;
  const wide = lines.reduce((most, row) => Math.max(most, row.length), 0);
  const named = rest.length > 0 && first.every((cell) => !NUMBER.test(cell.trim()));
  return sheet(named ? first : [], named ? rest : lines, wide);
}

function sheet(names: readonly string[], rows: readonly (readonly string[])[], wide: number): OutputTable {
  const columns = Array.from({ length: Math.min(wide, MOST_COLUMNS) }, (_, at) => names[at] || String(at + 1));
  return { columns, rows: rows.map((row) => (row.length > MOST_COLUMNS ? row.slice(0, MOST_COLUMNS) : row)), wide };
}

// ---- JSON ----

type Value = string | boolean | null | readonly Value[] | { readonly [name: string]: Value };

// Once a text is known to be JSON, these are its strings and its numbers, and nothing else is.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*/g;

// Return a text's value with each number as "n" and its digits, each string and name as "s" and itself: numbers are rounded by
// nobody, and no name is one of the language's own.
function valueOf(text: string): Value {
  try {
    JSON.parse(text);
    return JSON.parse(text.replace(TOKENS, (token) => (token[0] === '"' ? `"s${token.slice(1)}` : `"n${token}"`))) as Value;
  } catch {
    throw noTable("it is no JSON");
  }
}

function ofJson(text: string): OutputTable {
  const value = valueOf(text);
  if (isList(value)) return ofList(value);
  if (!isObject(value)) return sheet(["value"], [[cellOf(value)]], 1);
  const entries = Object.entries(value);
  if (entries.length > 0 && entries.every(([, one]) => isList(one))) return ofColumns(entries as [string, readonly Value[]][]);
  return sheet(["name", "value"], entries.map(([name, one]) => [name.slice(1), cellOf(one)]), 2);
}

function ofList(list: readonly Value[]): OutputTable {
  if (list.length > 0 && list.every(isObject)) {
    const names = new Map<string, number>();
    for (const one of list) for (const name of Object.keys(one)) if (!names.has(name)) names.set(name, names.size);
    const shown = [...names.keys()].slice(0, MOST_COLUMNS);
    requireCells(list.length, shown.length);
    const rows = list.map((one) => shown.map((name) => (Object.hasOwn(one, name) ? cellOf(one[name] as Value) : "")));
    return sheet(shown.map((name) => name.slice(1)), rows, names.size);
  }
  if (list.length > 0 && list.every(isList)) {
    const wide = list.reduce((most, one) => Math.max(most, one.length), 0);
    return sheet([], list.map((one) => one.slice(0, MOST_COLUMNS).map(cellOf)), wide);
  }
  return sheet(["value"], list.map((one) => [cellOf(one)]), 1);
}

// An object of lists: a column each.
function ofColumns(entries: readonly (readonly [string, readonly Value[]])[]): OutputTable {
  const shown = entries.slice(0, MOST_COLUMNS);
  const length = shown.reduce((most, [, list]) => Math.max(most, list.length), 0);
  requireCells(length, shown.length);
  const rows = Array.from({ length }, (_, at) => shown.map(([, list]) => (at < list.length ? cellOf(list[at] as Value) : "")));
  return sheet(shown.map(([name]) => name.slice(1)), rows, entries.length);
}

function requireCells(rows: number, columns: number): void {
  if (rows * columns > MOST_CELLS) throw noTable(`its ${rows} rows of ${columns} columns have more than ${MOST_CELLS} cells`);
}

// What is inside another cell is counted and not gone into: nothing here is as deep as a stranger nests.
function cellOf(value: Value): string {
  if (typeof value === "string") return value.slice(1);
  if (typeof value === "boolean") return String(value);
  if (value === null) return "";
  return isList(value) ? `[${counted(value.length, "value")}]` : `{${counted(Object.keys(value).length, "name")}}`;
}

const isList = (value: Value): value is readonly Value[] => Array.isArray(value);
const isObject = (value: Value): value is { readonly [name: string]: Value } =>
  typeof value === "object" && value !== null && !isList(value);
