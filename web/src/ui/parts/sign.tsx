// What a wallet shows, and the one button that asks it.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import { judgedWords } from "../../core/attesters";
import { escrowAtPost } from "../../core/money";
import type { Hex } from "../../core/bytes";
import type { Network } from "../../core/network";
import type { Terms } from "../../core/types";
import { isWaived, type Waiver, waiverAfter } from "../../core/waiver";
import { unpackPolicy } from "../../core/words";
import { Journal, browserShelf } from "../../wallet/journal";
import { type Done, type Draft, Posting, type Step } from "../../wallet/posting";
import type { Session } from "../../wallet/request";
import { useLoad } from "../load";
import { hrefOf } from "../router";
import { Button } from "./button";
import { type Credit, WithdrawNote } from "./credit";
import { Elsewhere } from "./sign-elsewhere";
import { Failure } from "./failure";
import { Asked } from "./call-fingerprint";
import { AttesterKeys } from "./attester-keys";
import { Whole } from "./values";
import { WalletShows } from "./wallet-shows";

interface Props {
  readonly market: Market;
  readonly session: Session | undefined;
  readonly draft: Draft;
  readonly terms: Terms;
  readonly credit: Credit;
  // Whether every block of what it brings was found.
  readonly there: boolean;
  // Whether it is refused since no worker can take it.
  readonly untakable: boolean;
  readonly posted: () => void;
}

export function Sign({ market, session, draft, terms, credit, there, untakable, posted }: Props) {
  const { network } = market;
  const work = usePosting(market, session, posted);
  const [turn, setTurn] = useState(0);
  const { deadline } = draft.loaded.spec.limits;
  const held = useLoad(() => journalOf(network).holds(terms, deadline), `${network.name} ${draft.digest}`, [terms, work.busy, turn]);
  const unseen = useBox(!there, draft.digest);
  const anyway = useBox(untakable, draft.digest);
  const again = useBox(held.value === true, draft.digest);
  const shown = session?.shown();
  const escrow = escrowAtPost(terms);
  const onChain = shown !== undefined && shown.chainId === network.chainId;
  return (
    <>
      <h2>Before you sign</h2>
      <p id="judged">{judgedWords(terms, unpackPolicy(terms.policy), draft.attesters, network.asset)}</p>
      {draft.attesters !== undefined && <AttesterKeys set={draft.attesters} />}
      <WithdrawNote credit={credit} network={network} />
      <WalletShows id="wallet-shows" network={network} takes={escrow} to={network.contracts.JobRegistry} name="post" job />
      {again.stands && (
        <p class="soft">This file was saved or posted here before: signed again it is still that one job, and cannot be posted twice.</p>
      )}
      <Box box={again}>Post a second job with this file</Box>
      <Box box={anyway}>Post it anyway, though no worker can take it</Box>
      <Box box={unseen}>Sign it anyway, though its data were not found</Box>
      <p class="row">
        <Button
          id="sign"
          busy={work.busy}
          disabled={!onChain || !(there || unseen.ticked)}
          onClick={() =>
            shown !== undefined &&
            work.run((posting) => posting.post(draft, { shown, escrow, credit: credit.pays, anyway: anyway.ticked, again: again.ticked }))
          }
        >
          Ask my wallet
        </Button>
        {work.busy && (
          <button type="button" onClick={work.stop}>
            Wait no longer
          </button>
        )}
      </p>
      {!onChain && <p class="soft">Connect a wallet that is on the market's chain.</p>}
      {!there && <p class="soft">Put its data where workers find them first, or say that you sign anyway.</p>}
      <Work work={work} />
      <Elsewhere
        market={market}
        there={there || unseen.ticked}
        prepare={async (account, fromCredit) => {
          const posting = new Posting(market, journalOf(network), undefined, () => undefined, pauseOf(network), new AbortController().signal);
          return posting.prepare(draft, account, { escrow, anyway: anyway.ticked, again: again.ticked }, fromCredit).finally(() => setTurn(turn + 1));
        }}
      />
    </>
  );
}

interface Tick {
  readonly stands: boolean;
  readonly ticked: boolean;
  tick(ticked: boolean): void;
}

// A box that stands while what it waves off does.
function useBox(stands: boolean, digest: Hex): Tick {
  const [waiver, setWaiver] = useState<Waiver>();
  useEffect(() => setWaiver((before) => waiverAfter(before, stands)), [stands]);
  return { stands, ticked: isWaived(waiver, digest, stands), tick: (ticked) => setWaiver(ticked ? digest : undefined) };
}

function Box({ box, children }: { readonly box: Tick; readonly children: string }) {
  if (!box.stands) return null;
  return (
    <p>
      <label>
        <input type="checkbox" checked={box.ticked} onChange={(event) => box.tick(event.currentTarget.checked)} /> {children}
      </label>
    </p>
  );
}

const STEPS: Readonly<Record<Step, string>> = {
  looking: "looking at the market…",
  journalling: "writing its terms into this browser…",
  withdrawing: "your wallet asks you to withdraw your credit…",
  approving: "your wallet asks you to approve the exact amount…",
  trying: "trying it on the chain…",
  signing: "your wallet asks you…",
  waiting: "sent; waiting for a block…",
};

export interface Working {
  readonly busy: boolean;
  readonly step: string;
  readonly notes: readonly string[];
  readonly error: unknown;
  readonly done: Done | undefined;
  run(act: (posting: Posting) => Promise<Done>): void;
  stop(): void;
}

// Post as asked, say so, and go to the job's page in the end.
export function usePosting(market: Market, session: Session | undefined, posted: () => void = () => undefined): Working {
  const [step, setStep] = useState("");
  const [notes, setNotes] = useState<readonly string[]>([]);
  const [error, setError] = useState<unknown>();
  const [done, setDone] = useState<Done>();
  const [busy, setBusy] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  // What was left goes on unseen, and must not lead its reader away from another page.
  useEffect(() => () => stop.current?.abort(), []);
  const run = (act: (posting: Posting) => Promise<Done>): void => {
    if (session === undefined) return;
    const abort = new AbortController();
    stop.current = abort;
    const tell = (now: Step, note: string): void => {
      if (abort.signal.aborted) return;
      setStep(STEPS[now]);
      if (note !== "") setNotes((before) => [...before, note]);
    };
    const journal = journalOf(market.network);
    const posting = new Posting(market, journal, session, tell, pauseOf(market.network), abort.signal);
    setBusy(true);
    setNotes([]);
    setError(undefined);
    setDone(undefined);
    act(posting)
      .then(
        (found) => {
          setDone(found);
          if (!found.earlier) posted();
          if (!abort.signal.aborted && !found.earlier) location.hash = hrefOf(["job", jobAt(found)]);
        },
        (why: unknown) => setError(why),
      )
      .finally(() => {
        setStep("");
        setBusy(false);
      });
  };
  return { busy, step, notes, error, done, run, stop: () => stop.current?.abort() };
}

export function Work({ work }: { readonly work: Working }) {
  return (
    <>
      <Steps work={work} />
      {work.busy && <Asked />}
    </>
  );
}

function Steps({ work }: { readonly work: Working }) {
  return (
    <div aria-live="polite">
      {work.step !== "" && <p id="step">{work.step}</p>}
      {work.notes.map((note) => (
        <p key={note} class="note">{note}</p>
      ))}
      {work.error !== undefined && <Failure error={work.error} />}
      {work.done?.earlier === true && (
        <p class="good">
          It was posted already, and nothing was sent: <a href={hrefOf(["job", work.done.job])}><Whole hex={work.done.job} /></a>
        </p>
      )}
    </div>
  );
}

export const journalOf = (network: Network): Journal => new Journal(browserShelf, network);

const jobAt = ({ job, block }: Done): string => (block === undefined ? job : `${job}@${block}`);

// Between two looks at the chain, milliseconds.
export const pauseOf = (network: Network) => (): Promise<void> => new Promise((go) => setTimeout(go, network.local ? 500 : 4_000));
