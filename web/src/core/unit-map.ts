// The units of an array as a map: how each stands, how many stand so, and which one is where.

import { JOB_LABELS, OUTCOME, STATE } from "../generated/states";
import { HearthError } from "./errors";
import { stateLabel, unitLabel } from "./state-labels";
import { hasResult, leasesOf, type Unit } from "./types";
import type { JobView } from "./view";

// Units that are drawn at once, however many there are.
export const AT_ONCE = 4_096;
const MOST_COLUMNS = 64;
const FEWEST_COLUMNS = 16;

// What nobody has read is not free.
export const UNREAD = "not known";
// Said after the word for a result that is not settled yet, where the program failed; of a settled one the word says so.
export const NOT_OK = ", not ok";
const isUnpaid = (state: Unit["state"]): boolean => hasResult(state) && state !== STATE.SETTLED;
const UNPAID = Object.values(STATE).filter(isUnpaid).map(stateLabel);
// In the order in which they are listed.
export const STANDS: readonly string[] = [...JOB_LABELS.flatMap((word) => (UNPAID.includes(word) ? [word, word + NOT_OK] : [word])), UNREAD];

// Say how a unit of a job stands: its word, and whether a result that is not paid yet is not ok. One that somebody touched and
// that was not read is UNREAD; one that nobody touched waits, or is cancelled with its array.
export function standsAt(view: JobView, index: number): string {
  const unit = view.units[index];
  if (unit !== undefined) return standsOf(unit);
  const { header } = view;
  return header === null || index < header.touched ? UNREAD : untouchedOf(view);
}

// Count the units by how they stand, in the order of STANDS; only what there is.
export function tally(view: JobView): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const add = (stands: string, count: number): unknown => count > 0 && found.set(stands, (found.get(stands) ?? 0) + count);
  for (const unit of view.units) add(standsOf(unit), 1);
  const touched = Math.max(view.units.length, view.header?.touched ?? 1);
  add(UNREAD, touched - view.units.length);
  add(untouchedOf(view), leasesOf(view.terms) - touched);
  return new Map(STANDS.flatMap((stands) => {
    const count = found.get(stands);
    return count === undefined ? [] : [[stands, count] as const];
  }));
}

// A part of a map: its first unit, how many, and each as its column and its row tell.
export interface Window {
  readonly first: number;
  readonly count: number;
  readonly columns: number;
  readonly rows: number;
}

// Return the part of a map that has a unit.
export function windowAt(leases: number, index: number): Window {
  const first = index - (index % AT_ONCE);
  const count = Math.max(0, Math.min(AT_ONCE, leases - first));
  const columns = Math.min(MOST_COLUMNS, Math.max(FEWEST_COLUMNS, Math.ceil(Math.sqrt(2 * count))));
  return { first, count, columns, rows: Math.ceil(count / columns) };
}

// Return the unit at a place of the drawn map, both parts from 0 to 1; undefined where none is.
export function unitAt({ first, count, columns, rows }: Window, across: number, down: number): number | undefined {
  if (!(across >= 0 && across < 1 && down >= 0 && down < 1)) return undefined;
  const place = Math.floor(down * rows) * columns + Math.floor(across * columns);
  return place < count ? first + place : undefined;
}

// Return the unit that a reader types. Throws NOT_FOUND for one that the job does not have.
export function typedUnit(text: string, leases: number): number {
  const index = /^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : leases;
  if (index < leases) return index;
  throw new HearthError("NOT_FOUND", `the job has no such unit: 0 to ${leases - 1}`);
}

const standsOf = ({ state, outcome }: Unit): string =>
  unitLabel({ state, outcome }) + (isUnpaid(state) && outcome !== OUTCOME.OK ? NOT_OK : "");

const untouchedOf = ({ header }: JobView): string =>
  stateLabel(header?.closed === true ? STATE.CANCELLED : header?.waiting === true ? STATE.BLOCKED : STATE.OPEN);
