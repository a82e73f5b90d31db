// A plain table: a caption, headers with their scopes, rows as they are given; more than `STEP` rows are shown on demand.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { TEXTS } from "../texts";

export interface Column<Row> {
  readonly head: string;
  // What tells it from others where two may have one head.
  readonly id?: string | number;
  readonly cell: (row: Row) => ComponentChildren;
  readonly number?: boolean;
}

const STEP = 200;

interface Props<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly none: string;
}

export function Table<Row>({ caption, columns, rows, keyOf, none }: Props<Row>) {
  const [most, setMost] = useState(STEP);
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  const some = rows.length > 0;
  // What is wider than the screen says so: where scroll bars show only while they move, nothing else does.
  useEffect(() => {
    const scroll = box.current;
    if (scroll === null) return undefined;
    const look = new ResizeObserver(() => setWide(scroll.scrollWidth > scroll.clientWidth));
    for (const one of [scroll, ...scroll.children]) look.observe(one);
    return () => look.disconnect();
  }, [some]);
  if (rows.length === 0) return <p class="soft">{none}</p>;
  return (
    <>
      {/* A focus, so that the keyboard scrolls it where it is wider than the screen. */}
      {wide && <p class="cue">{TEXTS.wide}</p>}
      <div class={wide ? "scroll wide" : "scroll"} ref={box} tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption>
            <span>{caption}</span>
          </caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.id ?? column.head} scope="col" class={column.number === true ? "number" : undefined}>
                  {column.head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column) => (
                  <td key={column.id ?? column.head} class={column.number === true ? "number" : undefined}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && (
        <p>
          <button type="button" onClick={() => setMost(most + STEP)}>
            {`Show ${Math.min(STEP, rows.length - most)} more of ${rows.length - most}`}
          </button>
        </p>
      )}
    </>
  );
}
