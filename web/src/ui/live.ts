// The market as it is now: checked once, then its newest block as it comes. Hidden tabs ask nothing.

import { useEffect, useState } from "preact/hooks";

import type { Block } from "../chain/answers";
import { Market } from "../chain/market";
import { rpcOf } from "../chain/rpc";
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
    let before: Block | undefined;
    const market = new Market(network, rpcOf(network.rpc));
    const wait = network.local ? LOCAL_POLL : POLL;

    const look = async (): Promise<void> => {
      timer = undefined;
      if (!document.hidden) {
        try {
          const found =
            before === undefined ? { head: await market.head(), changed: true, reorged: false } : await market.since(before);
          before = found.head;
          if (!ended) setLive((last) => next(last, market, found));
        } catch (lost) {
          if (!ended) setLive((last) => (last.state === "ready" ? { ...last, lost } : last));
        }
      }
      // A hidden tab is woken by `shown`.
      if (!ended && !document.hidden) timer = setTimeout(() => void look(), wait);
    };
    const shown = (): void => {
      if (!document.hidden && timer === undefined) void look();
    };

    setLive({ state: "opening" });
    market.check().then(
      () => {
        if (ended) return;
        document.addEventListener("visibilitychange", shown);
        void look();
      },
      (error: unknown) => {
        if (!ended) setLive({ state: "refused", error, retry: () => setTries((before) => before + 1) });
      },
    );
    return () => {
      ended = true;
      if (timer !== undefined) clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [network, tries]);
  return live;
}

function next(
  last: Live,
  market: Market,
  { head, changed, reorged }: { readonly head: Block; readonly changed: boolean; readonly reorged: boolean },
): Live {
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
