// The market as it is now: checked once, and again after each reorg, then its newest block as it comes. Hidden tabs ask
// nothing.

import { useEffect, useState } from "preact/hooks";

import type { Block } from "../chain/answers";
import { Market, type Since } from "../chain/market";
import { rpcOf } from "../chain/rpc";
import { HearthError } from "../core/errors";
import type { Network } from "../core/network";

export type Live =
  | { readonly state: "none" }
  | { readonly state: "opening" }
  | { readonly state: "refused"; readonly error: unknown; readonly retry: () => void }
  // `changed` is the newest block in which the market may have changed: pages read again when it moves, and else ask
  // nothing. `epoch` grows with each reorg. `lost` is why the last look at the head failed; what is shown is as old as
  // `seen`, in milliseconds since the epoch.
  | {
      readonly state: "ready";
      readonly market: Market;
      readonly head: Block;
      readonly changed: Block;
      readonly epoch: number;
      readonly seen: number;
      readonly lost: unknown;
    };

const POLL = 4_000;
const LOCAL_POLL = 1_000;

export function useLive(network: Network | undefined): Live {
  const [live, setLive] = useState<Live>({ state: "none" });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (network === undefined) return undefined;
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let looking = false;
    let before: Block | undefined;
    let failed = false;
    const market = new Market(network, rpcOf(network.rpc));
    const wait = network.local ? LOCAL_POLL : POLL;

    const refuse = (error: unknown): void => {
      setLive({ state: "refused", error, retry: () => setTries((last) => last + 1) });
    };
    const look = async (): Promise<void> => {
      timer = undefined;
      if (before === undefined) return;
      looking = true;
      try {
        // After a failure nobody knows how far back `before` is: what was logged since may be much, and is not asked for.
        const found = await market.since(before, !failed);
        // Another chain may have taken the place of the one that was checked.
        if (found.reorged) await market.check();
        [before, failed] = [found.head, false];
        if (!ended) setLive((last) => next(last, market, found));
      } catch (lost) {
        failed = true;
        if (!ended && isOtherMarket(lost)) {
          ended = true;
          refuse(lost);
        } else if (!ended) setLive((last) => (last.state === "ready" ? { ...last, lost } : last));
      }
      looking = false;
      plan();
    };
    const plan = (): void => {
      if (!ended && !document.hidden) timer = setTimeout(() => void look(), wait);
    };
    // A hidden tab does not look, and one that is shown again looks at once; never twice at the same time.
    const turned = (): void => {
      if (ended || looking) return;
      if (timer !== undefined) clearTimeout(timer);
      timer = undefined;
      if (!document.hidden) void look();
    };

    setLive({ state: "opening" });
    market.check().then(
      (head) => {
        if (ended) return;
        before = head;
        document.addEventListener("visibilitychange", turned);
        setLive((last) => next(last, market, { head, changed: true, reorged: false }));
        plan();
      },
      (error: unknown) => {
        if (!ended) refuse(error);
      },
    );
    return () => {
      ended = true;
      if (timer !== undefined) clearTimeout(timer);
      document.removeEventListener("visibilitychange", turned);
    };
  }, [network, tries]);
  return live;
}

const isOtherMarket = (error: unknown): boolean =>
  error instanceof HearthError && (error.code === "WRONG_CHAIN" || error.code === "WRONG_CONTRACTS");

function next(last: Live, market: Market, { head, changed, reorged }: Since): Live {
  const known = last.state === "ready" && last.market === market ? last : undefined;
  return {
    state: "ready",
    market,
    head,
    changed: known === undefined || changed ? head : known.changed,
    epoch: (known?.epoch ?? 0) + (reorged ? 1 : 0),
    seen: Date.now(),
    lost: undefined,
  };
}
