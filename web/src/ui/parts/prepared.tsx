// The one button that has a file's calls signed, in their order, and what came of it.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import { HearthError } from "../../core/errors";
import type { Prepared } from "../../core/prepared";
import type { CallSummary } from "../../core/call-summary";
import { PreparedCalls } from "../../wallet/prepared";
import type { Session } from "../../wallet/request";
import { browserSigned, SignedCalls } from "../../wallet/signed";
import { hrefOf } from "../router";
import { Button } from "./button";
import { Failure } from "./failure";
import { Asked } from "./call-fingerprint";
import { Whole } from "./values";
import { pauseOf } from "./sign";

interface Props {
  readonly market: Market;
  readonly session: Session | undefined;
  readonly calls: readonly { readonly call: Prepared; readonly told: CallSummary }[];
}

const STEPS = {
  approving: "your wallet asks you to approve the exact amount…",
  signing: "your wallet asks you…",
  waiting: "sent; waiting for a block…",
  skipped: "done before",
} as const;

export function Ask({ market, session, calls }: Props) {
  const [again, setAgain] = useState(false);
  const [busy, setBusy] = useState(false);
  const [step, setStep] = useState("");
  const [done, setDone] = useState(false);
  const [error, setError] = useState<unknown>();
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const shown = session?.shown();
  const onChain = shown !== undefined && shown.chainId === market.network.chainId;
  const mine = shown !== undefined && calls.every(({ call }) => call.from === shown.account);
  const run = async (): Promise<void> => {
    if (session === undefined || shown === undefined) return;
    abort.current = new AbortController();
    const tell = (place: number, now: keyof typeof STEPS): void => setStep(`call ${place + 1} of ${calls.length}: ${STEPS[now]}`);
    const work = new PreparedCalls(market, session, new SignedCalls(browserSigned), tell, pauseOf(market.network), abort.current.signal);
    setBusy(true);
    setDone(false);
    setError(undefined);
    try {
      await work.sign(calls.map(({ call }) => call), shown, again);
      setDone(true);
    } catch (why) {
      setError(why);
    }
    setStep("");
    setBusy(false);
  };
  // Offered once it was refused for that.
  const before = error instanceof HearthError && error.code === "SIGNED_BEFORE";
  const many = calls.length > 1 ? `these ${calls.length} calls, one after the other` : "this call";
  const jobs = [...new Set(calls.flatMap(({ told }) => told.job ?? []))];
  return (
    <>
      {(again || before) && (
        <p>
          <label>
            <input type="checkbox" checked={again} onChange={(event) => setAgain(event.currentTarget.checked)} /> Sign it again, though
            this browser had it signed before
          </label>
        </p>
      )}
      <p class="row">
        <Button id="sign-file" busy={busy} disabled={!onChain || !mine} onClick={() => void run()}>
          Ask my wallet for {many}
        </Button>
        {busy && (
          <button type="button" onClick={() => abort.current?.abort()}>
            Wait no longer
          </button>
        )}
      </p>
      {!onChain && <p class="soft">Connect a wallet that is on the market's chain.</p>}
      <p role="status" id="signed">{step !== "" ? step : done ? "It is done: a block has all of it." : ""}</p>
      {busy && <Asked />}
      {done && jobs.map((job) => (
        <p key={job}>
          <a href={hrefOf(["job", job])}>
            Go to the job <Whole hex={job} />
          </a>
        </p>
      ))}
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
