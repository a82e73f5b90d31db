// Buttons whose calls a wallet signs: each is tried on the chain first, and what came of it stands below.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import { type Act, type ActStep, carryOut } from "../../wallet/acting";
import type { Session } from "../../wallet/request";
import { Button } from "./button";
import { Failure } from "./failure";
import { Asked } from "./call-fingerprint";
import { pauseOf } from "./sign";

export interface Offer {
  readonly label: string;
  // Why it cannot be done now, "" where it can; what is not whole yet has no act.
  readonly held: string;
  readonly act: Act | undefined;
}

const STEPS: Readonly<Record<ActStep, string>> = {
  approving: "your wallet asks you to approve the exact amount…",
  signing: "your wallet asks you…",
  waiting: "sent; waiting for a block…",
};

interface Props {
  readonly market: Market;
  readonly session: Session | undefined;
  readonly offers: readonly Offer[];
  // Hears that a block has a call.
  readonly carried?: () => void;
}

export function Acts({ market, session, offers, carried }: Props) {
  const [busy, setBusy] = useState("");
  const [step, setStep] = useState<ActStep>();
  const [done, setDone] = useState("");
  const [error, setError] = useState<unknown>();
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const shown = session?.shown();
  const ready = session !== undefined && shown !== undefined && shown.chainId === market.network.chainId;
  const run = async ({ label, act }: Offer): Promise<void> => {
    if (!ready || act === undefined) return;
    abort.current = new AbortController();
    setBusy(label);
    setStep(undefined);
    setDone("");
    setError(undefined);
    try {
      const told: Act = { ...act, step: async (next) => setStep(next) };
      await carryOut(market, session, told, shown, pauseOf(market.network), abort.current.signal);
      setDone(`${label}: done`);
      carried?.();
    } catch (why) {
      setError(why);
    }
    setBusy("");
  };
  return (
    <>
      <p class="row">
        {offers.map((offer) => (
          <Button
            key={offer.label}
            busy={busy !== ""}
            disabled={!ready || offer.held !== "" || offer.act === undefined}
            title={offer.held}
            onClick={() => void run(offer)}
          >
            {offer.label}
          </Button>
        ))}
        {busy !== "" && (
          <button type="button" onClick={() => abort.current?.abort()}>
            Wait no longer
          </button>
        )}
      </p>
      {offers.some(({ held }) => held !== "") && <p class="soft">{offers.find(({ held }) => held !== "")?.held}</p>}
      <p role="status">{busy === "" ? done : `${busy}: ${step === undefined ? "looking at the market…" : STEPS[step]}`}</p>
      {busy !== "" && <Asked />}
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
