// What is shown of what was read or kept, where nobody answers, and where another market does.

import type { LastSeen } from "../chain/last-seen";
import { HearthError } from "../core/errors";
import type { Live } from "./context";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
}

export interface Held<T> extends Loaded<T> {
  readonly key: string;
}

// No provider answered, or one that did could not: that may be otherwise a moment later.
export const passes = (error: unknown): boolean =>
  error instanceof HearthError && (error.code === "RPC_UNAVAILABLE" || error.code === "RPC_ERROR");

// What answers is another market, or nobody can say that it is not.
export const isOther = (live: Live): boolean => live.state === "refused" && !passes(live.error);

// No provider answers, or the last look at the head failed.
export const isLost = (live: Live): boolean =>
  live.state === "refused" ? passes(live.error) : live.state === "ready" && live.lost !== undefined;

// Of what was read: nothing of anything else, and nothing above another market.
export const shownOf = <T>(held: Held<T>, key: string, other: boolean): Loaded<T> =>
  held.key === key && !other ? held : { value: undefined, error: undefined };

// Of what was kept: nothing while a provider answers, and nothing above another market.
export const lastShown = (live: Live, held: { readonly key: string; readonly last: LastSeen } | undefined, key: string): LastSeen | undefined =>
  isLost(live) && held?.key === key ? held.last : undefined;
