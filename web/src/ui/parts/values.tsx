// How values are shown: exact on hover and in copies, whole where somebody may act on them.

import type { Hex } from "../../core/bytes";
import type { Shown } from "../../core/state-meanings";
import type { Asset } from "../../core/units";
import { formatAmount, showAmount } from "../../core/units";
import { moment, until } from "../../core/moments";
import { shownLine } from "../../core/text";
import { labelOf } from "../../data/addresses";
import { TEXTS } from "../texts";

export function Amount({ value, asset }: { readonly value: bigint | undefined; readonly asset: Asset }) {
  if (value === undefined) return <>{TEXTS.nothingYet}</>;
  return <data value={String(value)} title={formatAmount(value, asset)}>{showAmount(value, asset)}</data>;
}

// An address or a hash, whole: short ones are how people are led to pay somebody else.
// Beside an address stands the name that its reader gave it, unless it is `plain`.
// To be compared with another screen it stands in groups of four, and is copied as one word all the same.
export function Whole({ hex, plain = false, grouped = false }: { readonly hex: Hex; readonly plain?: boolean; readonly grouped?: boolean }) {
  const name = plain ? undefined : labelOf(hex, location);
  return (
    <>
      <code class="whole">{grouped ? groupsOf(hex).map((group, place) => <span key={place} class="group">{group}</span>) : hex}</code>
      {name !== undefined && <span class="soft"> ({name})</span>}
    </>
  );
}

const groupsOf = (hex: Hex): readonly string[] => ["0x", ...(hex.slice(2).match(/.{1,4}/gs) ?? [])];

// The short form of a hash, only for what links to the whole one.
export const short = (hex: Hex): string => `${hex.slice(0, 14)}…`;

// A second of the chain, UTC, the reader's own time on hover; with `now` how far away it is.
export function Moment({ at, now }: { readonly at: number; readonly now?: number | undefined }) {
  const date = new Date(1_000 * at);
  const readable = !Number.isNaN(date.getTime());
  return (
    <time dateTime={readable ? date.toISOString() : undefined} title={readable ? date.toString() : undefined}>
      {now === undefined ? moment(at) : until(at, now)}
    </time>
  );
}

// A stranger's text in a line, apart from what surrounds it.
export function Stranger({ text, most = 200 }: { readonly text: string; readonly most?: number }) {
  return <bdi class="stranger">{shownLine(text, most)}</bdi>;
}

const ICONS: Readonly<Record<Shown, string>> = {
  "waiting for a machine": "○",
  "waiting for other jobs": "◌",
  running: "▶",
  stopping: "▷",
  "result in": "◆",
  "under review": "⚑",
  done: "✔",
  failed: "✕",
  refunded: "↩",
  cancelled: "✕",
  expired: "✕",
  "taken away": "✕",
};

export const iconOf = (word: string): string => (Object.hasOwn(ICONS, word) ? ICONS[word as Shown] : "•");

// A state as a shape and its word, or what is told with that word: never by colour alone.
export function State({ word, text = word }: { readonly word: string; readonly text?: string }) {
  return (
    <span class={`state state-${word.replaceAll(" ", "-")}`}>
      <span aria-hidden="true">{iconOf(word)}</span> {text}
    </span>
  );
}
