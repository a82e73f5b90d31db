// Medians and steps over time: what charts are drawn of. Money stays a bigint; seconds and counts are numbers.

import { floorDivInt } from "./numbers";

export const compareBig = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

// Return the value below or at which `share` hundredths of the sorted values lie: one of them, the lower of two for a median of
// an even number. Undefined of nothing.
export const quantile = <T>(sorted: readonly T[], share: number): T | undefined =>
  sorted[Math.max(0, floorDivInt(sorted.length * share + 99, 100) - 1)];

export const medianBig = (values: readonly bigint[]): bigint | undefined => quantile([...values].sort(compareBig), 50);

export const medianOf = (values: readonly number[]): number | undefined => quantile([...values].sort((a, b) => a - b), 50);

// From a second on, so many of so many.
export interface Step {
  readonly at: number;
  readonly busy: number;
  readonly slots: number;
}

// Seconds of busy slots, and of all, from a second on for `width` seconds.
export interface Bucket {
  readonly at: number;
  readonly width: number;
  readonly busy: number;
  readonly slots: number;
}

// Return the areas below steps, exact, from the first step to `end`, in buckets of `width` that begin at multiples of it. The
// first and the last one may be shorter: `width` says so.
export function bucketsOf(steps: readonly Step[], end: number, width: number): Bucket[] {
  const found: Bucket[] = [];
  const add = (at: number, to: number, step: Step): void => {
    const last = found.at(-1);
    const [busy, slots] = [step.busy * (to - at), step.slots * (to - at)];
    if (last === undefined || floorDivInt(last.at, width) !== floorDivInt(at, width)) found.push({ at, width: to - at, busy, slots });
    else found[found.length - 1] = { at: last.at, width: last.width + to - at, busy: last.busy + busy, slots: last.slots + slots };
  };
  steps.forEach((step, place) => {
    const to = Math.min(end, steps[place + 1]?.at ?? end);
    for (let at = step.at; at < to; ) {
      const next = Math.min(to, (floorDivInt(at, width) + 1) * width);
      add(at, next, step);
      at = next;
    }
  });
  return found;
}

const WIDTHS = [60, 300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000] as const;

// Return the narrowest width of buckets of which at most `most` cover so many seconds.
export const widthFor = (seconds: number, most: number): number =>
  WIDTHS.find((width) => seconds <= width * (most - 1)) ?? Math.ceil(seconds / Math.max(1, most - 1));
