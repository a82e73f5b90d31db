// The course of the market for the pages that show it: read on as blocks come. A long past is read at the reader's word.

import { useState } from "preact/hooks";

import { CourseReader } from "../chain/course";
import type { Block } from "../chain/answers";
import type { Market } from "../chain/market";
import type { Told } from "../core/course";
import { useLoad } from "./load";
import type { Context } from "./main";

// Blocks that are read without being asked for: some twenty requests, where providers serve ranges of 10,000.
const UNASKED = 200_000;

export interface Course {
  readonly told: { readonly told: Told; readonly at: Block } | undefined;
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
  const read = async (): Promise<{ told: Told; at: Block }> => {
    if (reader === undefined || ready === undefined) throw new Error("nothing to read");
    const at = ready.head;
    return { told: await reader.read(at, setUpTo), at };
  };
  const { value, error } = useLoad(
    reader === undefined || ahead > UNASKED ? undefined : read,
    network?.name ?? "",
    [reader, ready?.changed.hash, ahead > UNASKED],
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
