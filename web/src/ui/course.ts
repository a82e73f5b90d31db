// The course of the market for the pages that show it: read on as blocks come. A long past is read at the reader's word.

import { useState } from "preact/hooks";

import { CourseReader } from "../chain/course";
import type { Block } from "../chain/answers";
import type { Market } from "../chain/market";
import { readFleet } from "../chain/nodes";
import { deniedBy, type CourseTold } from "../core/course";
import { useLoad } from "./load";
import type { Context } from "./context";

// Blocks that are read without being asked for: some twenty requests, where providers serve ranges of 10,000.
const UNASKED = 200_000;

// All that was told up to a block, and how its slots differ from those in storage there, "" where they do not.
export interface Found {
  readonly told: CourseTold;
  readonly at: Block;
  readonly denied: string;
}

export interface Course {
  readonly told: Found | undefined;
  readonly error: unknown;
  // Blocks that are read only at the reader's word, 0 for none.
  readonly ahead: number;
  readonly upTo: number | undefined;
  readonly strays: string;
  readonly ask: () => void;
}

// What one page has read the next one goes on with; after a reorg it is read anew.
let held: { readonly market: Market; readonly epoch: number; readonly reader: CourseReader } | undefined;

function readerOf(market: Market, epoch: number): CourseReader {
  if (held?.market !== market || held.epoch !== epoch) {
    held = { market, epoch, reader: new CourseReader(market, () => new Promise((go) => setTimeout(go))) };
  }
  return held.reader;
}

export function useCourse({ live, network }: Context): Course {
  const [asked, setAsked] = useState(false);
  const [upTo, setUpTo] = useState<number>();
  const ready = live.state === "ready" ? live : undefined;
  const reader = ready === undefined ? undefined : readerOf(ready.market, ready.epoch);
  const ahead = reader === undefined || ready === undefined || asked ? 0 : reader.ahead(ready.head);
  const read = (): Promise<Found> => {
    if (ready === undefined) throw new Error("nothing to read");
    const { market, epoch, head: at } = ready;
    // What was kept of an earlier visit is forgotten before it accuses anybody, and with it what was read of that.
    const once = async (): Promise<Found> => {
      const [told, { nodes }] = await Promise.all([readerOf(market, epoch).read(at, setUpTo), readFleet(market, at)]);
      const denied = deniedBy(told, nodes);
      if (denied !== "") held = undefined;
      return { told, at, denied };
    };
    return market.sure(once, ({ denied }) => denied !== "");
  };
  const { value, error } = useLoad(
    reader === undefined || ahead > UNASKED ? undefined : read,
    network?.name ?? "",
    [ready?.market, ready?.epoch, ready?.changed.hash, ahead > UNASKED],
    ready?.seen,
  );
  return {
    told: value,
    error,
    ahead: ahead > UNASKED ? ahead : 0,
    upTo,
    strays: reader?.strays.inWords() ?? "",
    ask: () => setAsked(true),
  };
}
