// What a page reads, kept while a newer reading is under way: a value that is not known yet is undefined, never 0.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

import { type Held, type Loaded, passes, shownOf } from "./unreachable";

// True while what answers is another market. What was read before is forgotten then: once the market is back it is read anew.
export const OtherMarket = createContext(false);

// Read again whenever one of `inputs` changes. The last value stays until the next one is there, or `key` changes: then
// it was of something else. What failed since no provider answered is tried again whenever `tick` changes.
export function useLoad<T>(
  read: (() => Promise<T>) | undefined,
  key: string,
  inputs: readonly unknown[],
  tick?: unknown,
): Loaded<T> {
  const other = useContext(OtherMarket);
  const [held, setHeld] = useState<Held<T>>({ key, value: undefined, error: undefined });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (passes(held.error)) setTries((before) => before + 1);
  }, [tick]);
  useEffect(() => {
    if (other) setHeld({ key, value: undefined, error: undefined });
    if (other || read === undefined) return undefined;
    let ended = false;
    read().then(
      (value) => {
        if (!ended) setHeld({ key, value, error: undefined });
      },
      (error: unknown) => {
        if (!ended) setHeld((before) => ({ key, value: before.key === key ? before.value : undefined, error }));
      },
    );
    return () => {
      ended = true;
    };
  }, [key, tries, other, ...inputs]);
  return shownOf(held, key, other);
}

const BEAT_SECONDS = 30;

// A number that moves every half minute of the chain, sooner where nodes count as silent sooner: beats are in no log, so
// what hangs on them is read anew then.
export function beatOf(time: number | undefined, deadAfter: bigint | undefined): number {
  const often = deadAfter === undefined ? BEAT_SECONDS : Number(deadAfter / 2n);
  return Math.floor((time ?? 0) / Math.max(1, Math.min(BEAT_SECONDS, often)));
}
