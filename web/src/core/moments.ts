// Times for people, in UTC. Mirrors moment and until of hearth/client/views.py. No clock is read here: `now` is the
// second of the block that is looked at.

import { YEAR_10000 } from "../generated/sentences";
import { formatDuration } from "./units";

// Return Unix seconds as UTC for people: "2026-11-22 14:02:10 UTC".
export function moment(seconds: number): string {
  return seconds >= YEAR_10000 ? LATER : `${iso(seconds).slice(0, 19).replace("T", " ")} UTC`;
}

// Return a moment and how far away it is: "14:02:10 UTC (in 5m)".
export function until(at: number, now: number): string {
  const clock = at >= YEAR_10000 ? LATER : `${iso(at).slice(11, 19)} UTC`;
  return at > now ? `${clock} (in ${formatDuration(at - now)})` : `${clock} (past)`;
}

// A lane of 40 bits holds later times than a calendar has.
const LATER = "after the year 9999";

const iso = (seconds: number): string => new Date(seconds * 1_000).toISOString();
