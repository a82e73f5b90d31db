// Lines that go in steps, drawn as plain SVG, with the same numbers as a table behind a button. Nothing moves by itself.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { floorDivInt } from "../../core/numbers";

// A value from a place on, until the next one: places from 0 to `across`, heights in parts of HIGH.
export interface Point {
  readonly x: number;
  readonly high: number;
}

export interface Line {
  readonly name: string;
  readonly points: readonly Point[];
}

export const HIGH = 1_000;
const WIDE = 1_000;
// Room above and below, so that a line at the very top is seen whole.
const ROOM = 40;
const STROKES = ["solid", "dashed"] as const;

interface Props {
  readonly title: string;
  // What the newest or whole of it comes to, in a few words.
  readonly says: ComponentChildren;
  // What is drawn solid, and what dashed beside it.
  readonly lines: readonly Line[];
  readonly across: number;
  readonly top: string;
  readonly from: ComponentChildren;
  readonly to: ComponentChildren;
  readonly table: ComponentChildren;
}

export function Chart({ title, says, lines, across, top, from, to, table }: Props) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <figure class="chart">
      <figcaption>
        {title}: {says}
      </figcaption>
      <p class="axis">
        <span>{top}</span>
        {lines.length > 1 && <span>{lines.map(({ name }, at) => `${STROKES[at] ?? ""}: ${name}`).join(", ")}</span>}
      </p>
      <svg viewBox={`0 ${-ROOM} ${WIDE} ${HIGH + 2 * ROOM}`} preserveAspectRatio="none" role="img" aria-label={`${title}; the button below shows its numbers as a table`}>
        {lines.map(({ name, points }, at) => (
          <path key={name} class={STROKES[at]} d={pathOf(points, across)} />
        ))}
      </svg>
      <p class="axis">
        <span>{from}</span>
        <span>{to}</span>
      </p>
      <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {title} as a table
      </button>
      <div id={id}>{open && table}</div>
    </figure>
  );
}

function pathOf(points: readonly Point[], across: number): string {
  const at = (x: number): number => floorDivInt(WIDE * Math.max(0, Math.min(x, across)), Math.max(1, across));
  const steps = points.map(({ x, high }, place) => `${place === 0 ? "M" : "H"}${at(x)}${place === 0 ? " " : "V"}${HIGH - Math.min(HIGH, high)}`);
  return steps.length === 0 ? "" : `${steps.join("")}H${WIDE}`;
}
