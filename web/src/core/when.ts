// Moments as a job file writes them: "2030-01-31T12:00:00Z". Mirrors `deadline` of hearth/spec/rules.py, in which
// Python reads ISO 8601; the page reads its extended form alone ("2030-W05-4T12Z" and "20300131T120000Z" are refused).

import { HearthError } from "./errors";
import { floorDivInt } from "./numbers";
import { parseDuration } from "./units";

const DATE = "([0-9]{4})-([0-9]{2})-([0-9]{2})";
const TIME = "([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?";
const MOMENT = new RegExp(`^${DATE}T${TIME}(?:Z|([+-])([0-9]{2}):([0-9]{2}))$`);
const DAY = 86_400;
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

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
  // A month that is none has no days.
  if (year < 1 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const offset = (offsetHour * 60 + offsetMinute) * 60;
  const local = daysTo(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
  const moment = match[7] === "-" ? local + offset : local - offset;
  // In UTC, too, the year is one of four digits.
  return daysTo(1, 1, 1) * DAY <= moment && moment < daysTo(10_000, 1, 1) * DAY ? moment : undefined;
}

const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

const daysIn = (year: number, month: number): number =>
  (MONTHS[month - 1] ?? 0) + (month === 2 && isLeap(year) ? 1 : 0);

// Days from 1970-01-01 to a date, by the calendar of today at all times.
function daysTo(year: number, month: number, day: number): number {
  const before = year - 1;
  const leaps = floorDivInt(before, 4) - floorDivInt(before, 100) + floorDivInt(before, 400);
  let days = before * 365 + leaps + day - 1;
  for (let one = 1; one < month; one += 1) days += daysIn(year, one);
  return days - DAYS_TO_1970;
}

const DAYS_TO_1970 = 719_162;
