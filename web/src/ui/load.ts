// What a page reads, kept while a newer reading is under way: a value that is not known yet is undefined, never 0.

import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
}

// Read again whenever one of `inputs` changes. The last value stays until the next one is there, or `key` changes: then
// it was of something else.
export function useLoad<T>(read: (() => Promise<T>) | undefined, key: string, inputs: readonly unknown[]): Loaded<T> {
  const [held, setHeld] = useState<Loaded<T> & { readonly key: string }>({ key, value: undefined, error: undefined });
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
  }, [key, ...inputs]);
  return held.key === key ? held : { value: undefined, error: undefined };
}

// A number that moves every half minute of the chain: beats are in no log, so what hangs on them is read anew then.
export const beatOf = (time: number | undefined): number => Math.floor((time ?? 0) / 30);
