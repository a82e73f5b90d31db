// Moments as a job file writes them: "2030-01-31T12:00:00Z". Mirrors `deadline` of hearth/jobfile/rules.py, in which
// Python reads ISO 8601; the page reads its extended form alone ("2030-W05-4T12Z" and "20300131T120000Z" are refused).

import { YEAR_10000 } from "../generated/sentences";
import { HearthError } from "./errors";
import { parseDuration } from "./units";

const DATE = "([0-9]{4})-([0-9]{2})-([0-9]{2})";
const TIME = "([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?";
const MOMENT = new RegExp(`^${DATE}T${TIME}(?:Z|([+-])([0-9]{2}):([0-9]{2}))$`);
const YEAR_1 = -62_135_596_800;

// What a deadline says: seconds from now, or a moment in seconds since 1970, rounded down.
export type Deadline = { readonly after: number } | { readonly at: number };

// The deadline that a text names, or undefined for anything else.
export function deadlineIn(text: string): Deadline | undefined {
  try {
    return { after: parseDuration(text) };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
  }
  const at = momentIn(text);
  return at === undefined ? undefined : { at };
}

function momentIn(text: string): number | undefined {
  const match = MOMENT.exec(text);
  if (match === null) return undefined;
  const part = (group: number): number => Number.parseInt(match[group] ?? "0", 10);
  const [year, month, day] = [part(1), part(2), part(3)];
  const [hour, minute, second, offsetHour, offsetMinute] = [part(4), part(5), part(6), part(8), part(9)];
  if (year < 1 || hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // A day or a month that is none has become another.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const offset = (offsetHour * 60 + offsetMinute) * 60;
  const local = date.getTime() / 1_000 + hour * 3_600 + minute * 60 + second;
  const moment = match[7] === "-" ? local + offset : local - offset;
  // In UTC, too, the year is one of four digits.
  return YEAR_1 <= moment && moment < YEAR_10000 ? moment : undefined;
}
