// The market as it is now: checked once, and again after each reorg, then its newest block as it comes. One tab asks for all
// of them, and hidden tabs ask nothing.

import { useEffect, useMemo, useState } from "preact/hooks";

import type { Block } from "../chain/answers";
import type { LastSeenJobs } from "../chain/last-seen";
import { Market, type Since } from "../chain/market";
import { Poller } from "../chain/poller";
import { type Rpc, rpcOf } from "../chain/rpc";
import { HearthError } from "../core/errors";
import type { Network } from "../core/network";
import { sharedOrigin } from "../data/origin";
import type { Live } from "./context";
import { passes } from "./unreachable";

export const POLL = 4_000;
const LOCAL_POLL = 1_000;

type Keeping = typeof import("../data/kept-market");

// On its way while the page finds out what it was opened with. An origin that is shared with strangers keeps nothing.
const keeping: Promise<Keeping | undefined> = sharedOrigin(location)
  ? Promise.resolve(undefined)
  : import("../data/kept-market").catch(() => undefined);

export function useLive(network: Network | undefined): Live {
  const [live, setLive] = useState<Live>({ state: "none" });
  const [tries, setTries] = useState(0);
  // The same in every try: whom it was told to leave alone for a while it leaves alone.
  const rpc = useMemo(() => (network === undefined ? undefined : rpcOf(network.rpc)), [network]);
  useEffect(() => {
    if (network === undefined || rpc === undefined) return undefined;
    let ended = false;
    let close = (): void => undefined;
    // What is shown without a provider stays until one answers.
    setLive((last) => (last.state === "refused" && passes(last.error) ? last : { state: "opening" }));
    void keeping.then((kept) => {
      if (!ended) close = follow(network, rpc, kept, setLive, () => setTries((last) => last + 1));
    });
    return () => {
      ended = true;
      close();
    };
  }, [network, tries]);
  return live;
}

type SetLive = (next: Live | ((last: Live) => Live)) => void;

// Check a market and tell of it until the returned function is called.
function follow(network: Network, rpc: Rpc, keeping: Keeping | undefined, setLive: SetLive, retry: () => void): () => void {
  let ended = false;
  let poller: Poller | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const kept = keeping?.keptOf(network, rpc);
  const market = new Market(network, rpc, kept?.past);
  // A hidden tab does not look, and one that is shown again looks at once.
  const turned = (): void => (document.hidden ? poller?.rest() : poller?.wake());
  const end = (): void => {
    ended = true;
    clearTimeout(timer);
    poller?.close();
    document.removeEventListener("visibilitychange", turned);
  };
  const refuse = (error: unknown): void => {
    if (ended) return;
    end();
    setLive({ state: "refused", error, retry, last: kept?.last });
    if (passes(error)) again();
  };
  const again = (): void => {
    timer = setTimeout(() => (document.hidden ? again() : retry()), POLL);
  };
  const tell = (news: Since): void => {
    market.past.moved(news.head, news.reorged);
    setLive((last) => next(last, market, kept?.last, news));
  };
  const look = async (before: Block, withLogs: boolean): Promise<Since> => {
    const found = await market.since(before, withLogs);
    // Another chain may have taken the place of the one that was checked.
    if (found.reorged) await market.check();
    return found;
  };
  const lost = (error: unknown): void => {
    if (isOtherMarket(error)) refuse(error);
    else setLive((last) => (last.state === "ready" ? { ...last, lost: error } : last));
  };
  const wait = network.local ? LOCAL_POLL : POLL;
  market.check().then((head) => {
    if (ended) return;
    tell({ head, changed: true, reorged: false });
    poller = new Poller(head, { wait, look, tell, lost, tabs: kept?.tabs });
    document.addEventListener("visibilitychange", turned);
    turned();
  }, refuse);
  return end;
}

const isOtherMarket = (error: unknown): boolean =>
  error instanceof HearthError && ["WRONG_CHAIN", "WRONG_CONTRACTS", "UNKNOWN_CODE"].includes(error.code);

function next(last: Live, market: Market, shown: LastSeenJobs | undefined, { head, changed, reorged }: Since): Live {
  const known = last.state === "ready" && last.market === market ? last : undefined;
  return {
    state: "ready",
    market,
    last: shown,
    head,
    changed: known === undefined || changed ? head : known.changed,
    epoch: (known?.epoch ?? 0) + (reorged ? 1 : 0),
    seen: Date.now(),
    lost: undefined,
  };
}
