// Jobs whose terms this browser journalled and whose posting nobody saw: found by their ids on chain, signed again as they are,
// or over.

import { useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import type { Block } from "../../chain/answers";
import { escrowAtPost } from "../../core/money";
import type { Network } from "../../core/network";
import { type Entry, type Fate, fateOf } from "../../wallet/journal";
import type { Context } from "../context";
import { hrefOf } from "../router";
import { useLoad } from "../load";
import type { Wallets } from "../wallet";
import { Button } from "./button";
import { Failure } from "./failure";
import { Amount, Moment, short, Stranger, Whole } from "./values";
import { journalOf, usePosting, Work } from "./sign";

interface Props {
  readonly context: Context;
  readonly network: Network;
  readonly wallets: Wallets;
}

export function Unfinished({ context, network, wallets }: Props) {
  const { live } = context;
  const ready = live.state === "ready" ? live : undefined;
  const [turn, setTurn] = useState(0);
  const { value, error } = useLoad(
    ready === undefined ? undefined : () => readFates(ready.market, ready.head),
    network.name,
    [ready?.head.hash, turn],
  );
  if (error !== undefined) return <Failure error={error} />;
  if (value === undefined || value.length === 0 || ready === undefined) return null;
  return (
    <section aria-labelledby="unfinished">
      <h2 id="unfinished">Begun here</h2>
      <ul>
        {value.map(({ entry, fate }) => (
          <li key={entry.kept.job}>
            <One entry={entry} fate={fate} market={ready.market} wallets={wallets} changed={() => setTurn(turn + 1)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Found {
  readonly entry: Entry;
  readonly fate: Fate;
}

// Records that are looked at; older ones are found by their file.
const MOST = 50;

async function readFates(market: Market, at: Block): Promise<Found[]> {
  const entries = (await journalOf(market.network).unseen()).slice(0, MOST);
  if (entries.length === 0) return [];
  const [words, overview] = await market.read(at, market.jobs(entries.map(({ kept }) => kept.job)), market.overview());
  return entries.map((entry, place) => ({ entry, fate: fateOf(entry.terms, words[place] ?? 0n, overview) }));
}

interface OneProps extends Found {
  readonly market: Market;
  readonly wallets: Wallets;
  readonly changed: () => void;
}

function One({ entry, fate, market, wallets, changed }: OneProps) {
  const { kept, terms } = entry;
  const { network } = market;
  const work = usePosting(market, wallets.session);
  const shown = wallets.session?.shown();
  const mine = shown?.account === kept.account && shown.chainId === network.chainId;
  const name = (
    <>
      <Stranger text={kept.name} />, <Amount value={escrowAtPost(terms)} asset={network.asset} />
    </>
  );
  if (fate.is === "posted") {
    return (
      <>
        {name}: posted, <a href={hrefOf(["job", `${kept.job}`])}>{short(kept.job)}</a>
      </>
    );
  }
  if (fate.is === "over") {
    return (
      <>
        {name}: never posted, and nothing was paid; {fate.why}. Its file makes new terms to sign.{" "}
        <button type="button" onClick={() => void journalOf(network).forget(kept.job).then(changed)}>
          Forget it
        </button>
      </>
    );
  }
  return (
    <>
      {name}: prepared, and not on the chain. {kept.hash !== "" && <>Your wallet named the transaction <Whole hex={kept.hash} />, which may be on its way. </>}
      Signed again it is still one job, <Whole hex={kept.job} />. After <Moment at={terms.deadline} /> it can be posted no more.{" "}
      <Button
        busy={work.busy}
        disabled={!mine}
        onClick={() => shown !== undefined && work.run((posting) => posting.resume(entry, shown))}
      >
        Ask my wallet for it
      </Button>
      {!mine && <span class="soft"> It is {kept.account}'s: connect that account.</span>}
      <Work work={work} />
    </>
  );
}
