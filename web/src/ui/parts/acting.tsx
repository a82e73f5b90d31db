// Buttons whose calls a wallet signs: each is tried on the chain first, and what came of it stands below.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import { type Act, carryOut } from "../../wallet/acting";
import type { Session } from "../../wallet/request";
import { Button } from "./button";
import { Failure } from "./failure";
import { pauseOf } from "./sign";

export interface Offer {
  readonly label: string;
  // Why it cannot be done now, "" where it can; what is not whole yet has no act.
  readonly held: string;
  readonly act: Act | undefined;
}

interface Props {
  readonly market: Market;
  readonly session: Session | undefined;
  readonly offers: readonly Offer[];
  // Hears that a block has a call.
  readonly carried?: () => void;
}

export function Acts({ market, session, offers, carried }: Props) {
  const [busy, setBusy] = useState("");
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
    setDone("");
    setError(undefined);
    try {
      await carryOut(market, session, act, shown, pauseOf(market.network), abort.current.signal);
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
      </p>
      {offers.some(({ held }) => held !== "") && <p class="soft">{offers.find(({ held }) => held !== "")?.held}</p>}
      <p role="status">{busy === "" ? done : `${busy}: your wallet asks you…`}</p>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
