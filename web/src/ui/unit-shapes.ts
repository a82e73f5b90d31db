// The units of an array as they are drawn: each stand by a shape of its own, so that nothing is told by colour alone.

import { floorDivInt } from "../core/numbers";
import { NOT_OK, standsAt, UNREAD, type Window } from "../core/unit-map";
import type { JobView } from "../core/view";
import type { JOB_LABELS } from "../generated/states";

type Told = (typeof JOB_LABELS)[number] | typeof UNREAD;

export const SQUARE = 10;
const CROSS = "m2 1l3 3l3 -3l1 1l-3 3l3 3l-1 1l-3 -3l-3 3l-1 -1l3 -3l-3 -3z";
// Each inside its square.
const SHAPES: Readonly<Record<Told | `${"result in" | "under review"}${typeof NOT_OK}`, string>> = {
  "waiting for other jobs": "m1 4h8v2h-8z",
  "waiting for a machine": "m3.500 3.500h3v3h-3z",
  running: "m2 1l7 4l-7 4z",
  stopping: "m8 1l-7 4l7 4z",
  "result in": "m5 .5l4.500 4.500l-4.500 4.500l-4.500 -4.500z",
  [`result in${NOT_OK}`]: "m5 .5l4.500 4.500h-9z",
  "under review": "m2 1h6v4h-4v4h-2z",
  [`under review${NOT_OK}`]: "m8 1h-6v4h4v4h2z",
  done: "m.5 .5h9v9h-9z",
  failed: CROSS,
  refunded: "m1 1h8l-4 8z",
  cancelled: "m1 8l7 -7l1 1l-7 7z",
  expired: "m1 1h8v2h-8zm0 6h8v2h-8z",
  [UNREAD]: "m4 1h2v2h-2zm0 6h2v2h-2z",
};
const OTHER = "m1 1h3v8h-3z";
const COLOURS: Readonly<Record<Told, "good" | "bad" | "link" | "soft">> = {
  "waiting for other jobs": "soft",
  "waiting for a machine": "soft",
  running: "link",
  stopping: "link",
  "result in": "link",
  "under review": "bad",
  done: "good",
  failed: "bad",
  refunded: "bad",
  cancelled: "soft",
  expired: "soft",
  [UNREAD]: "soft",
};

export const shapeOf = (stands: string): string => (Object.hasOwn(SHAPES, stands) ? SHAPES[stands as keyof typeof SHAPES] : OTHER);

export function colourOf(stands: string): string {
  if (stands.endsWith(NOT_OK)) return "var(--bad)";
  return `var(--${Object.hasOwn(COLOURS, stands) ? COLOURS[stands as Told] : "soft"})`;
}

// Draw the units of a part: one path for each stand that there is, in squares of SQUARE.
export function pathsOf(view: JobView, { first, count, columns }: Window): ReadonlyMap<string, string> {
  const parts = new Map<string, string[]>();
  for (let place = 0; place < count; place += 1) {
    const stands = standsAt(view, first + place);
    const drawn = `M${SQUARE * (place % columns)} ${SQUARE * floorDivInt(place, columns)}${shapeOf(stands)}`;
    const some = parts.get(stands);
    if (some === undefined) parts.set(stands, [drawn]);
    else some.push(drawn);
  }
  return new Map([...parts].map(([stands, some]) => [stands, some.join("")]));
}
