// What the submitter of a job may do with it, by the account of the connected wallet. Mirrors hearth/client/job/cancelling.py.

import { useEffect, useState } from "preact/hooks";

import type { Standing } from "../../chain/jobs";
import type { Market } from "../../chain/market";
import { hasLiveProposal } from "../../core/lapse";
import { isFinished, untouched } from "../../core/view";
import { windowEnd } from "../../core/types";
import { until } from "../../core/moments";
import { SENTINEL } from "../../generated/bounds";
import { CANCEL_GAS } from "../../generated/posting";
import { STATE } from "../../generated/states";
import { acceptCall, cancelCall } from "../../wallet/calls";
import { useWallets } from "../wallet";
import { Acts, type Offer } from "./acting";
import { journalOf } from "./sign";
import { Whole } from "./values";
import { SaveActs } from "./save-acts";
import { Wallet } from "./wallet";

interface Props {
  readonly market: Market;
  readonly standing: Standing;
}

export function Actions({ market, standing }: Props) {
  const { network } = market;
  const { posted, view } = standing;
  const wallets = useWallets(network);
  const finished = isFinished(view);
  // Its end is seen now: the same file makes a new job.
  useEffect(() => {
    if (finished) journalOf(network).see(posted.jobId).catch(() => undefined);
  }, [finished, posted.jobId]);
  const offers = offersOf(market, standing);
  const account = wallets.session?.account;
  const [offered, setOffered] = useState(false);
  useEffect(() => {
    if (offers.length > 0 && account === posted.terms.submitter) setOffered(true);
  }, [offers.length, account]);
  // What came of the last one stays readable where it was, to whoever could do it.
  if (offers.length === 0 && !offered) return null;
  return (
    <>
      <h2>Cancel or accept</h2>
      <p>
        What is open is refunded, a worker that runs a unit is given notice; an accepted result is paid at once. Only the submitter may:{" "}
        <Whole hex={posted.terms.submitter} />
      </p>
      <Wallet network={network} wallets={wallets} />
      {offers.length === 0 && <p class="soft">Nothing is left to cancel or to accept.</p>}
      {account === posted.terms.submitter && <Acts market={market} session={wallets.session} offers={offers} />}
      {account !== undefined && account !== posted.terms.submitter && <p class="soft">The connected account is another one.</p>}
      <SaveActs market={market} job={posted.jobId} submitter={posted.terms.submitter} offers={offers} />
    </>
  );
}

// Buttons of one page; an array's other units come up as these end.
const MOST = 40;

function offersOf({ network }: Market, { posted, view }: Standing): Offer[] {
  const { packed } = posted;
  const money = "what the job still holds is in Escrow, as before";
  const cancel = (label: string, index: bigint, held: string): Offer => {
    return { label, held, act: { call: cancelCall(network, packed, index), what: "cancelling", gas: CANCEL_GAS, money } };
  };
  const rest = untouched(view);
  const found: Offer[] = rest > 0 ? [cancel(rest === 1 ? "Cancel the one that nobody took" : `Cancel the ${rest} that nobody took`, SENTINEL, "")] : [];
  view.units.forEach((unit, index) => {
    if (found.length >= MOST) return;
    if (unit.state === STATE.BLOCKED || unit.state === STATE.OPEN || unit.state === STATE.RUNNING) {
      const end = until(windowEnd(unit) + view.policy.ackTime, view.now);
      const held = hasLiveProposal(unit, view.policy, view.now) ? `A proposal holds unit ${index}: it can be cancelled once it runs, or from ${end}.` : "";
      found.push(cancel(`Cancel unit ${index}`, BigInt(index), held));
    }
    if (unit.state === STATE.SUBMITTED) {
      const act = { call: acceptCall(network, packed, BigInt(index)), what: "accepting", gas: CANCEL_GAS, money };
      found.push({ label: `Accept unit ${index}`, held: "", act });
    }
  });
  return found;
}
