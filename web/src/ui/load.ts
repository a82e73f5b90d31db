// What a page reads, kept while a newer reading is under way: a value that is not known yet is undefined, never 0.

import { useEffect, useState } from "preact/hooks";

import { HearthError } from "../core/errors";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
}

// Read again whenever one of `inputs` changes. The last value stays until the next one is there, or `key` changes: then
// it was of something else. What failed since no provider answered is tried again whenever `tick` changes.
export function useLoad<T>(
  read: (() => Promise<T>) | undefined,
  key: string,
  inputs: readonly unknown[],
  tick?: unknown,
): Loaded<T> {
  const [held, setHeld] = useState<Loaded<T> & { readonly key: string }>({ key, value: undefined, error: undefined });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (passes(held.error)) setTries((before) => before + 1);
  }, [tick]);
  useEffect(() => {
    if (read === undefined) return undefined;
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
  }, [key, tries, ...inputs]);
  return held.key === key ? held : { value: undefined, error: undefined };
}

// No provider answered, or one that did could not: that may be otherwise a moment later.
export const passes = (error: unknown): boolean =>
  error instanceof HearthError && (error.code === "RPC_UNAVAILABLE" || error.code === "RPC_ERROR");

const BEAT_SECONDS = 30;

// A number that moves every half minute of the chain, sooner where nodes count as silent sooner: beats are in no log, so
// what hangs on them is read anew then.
export function beatOf(time: number | undefined, deadAfter: bigint | undefined): number {
  const often = deadAfter === undefined ? BEAT_SECONDS : Number(deadAfter / 2n);
  return Math.floor((time ?? 0) / Math.max(1, Math.min(BEAT_SECONDS, often)));
}
