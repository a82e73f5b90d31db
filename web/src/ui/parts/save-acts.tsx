// What a submitter may do with a job, saved for a machine or a Safe that has its key.

import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import { documentText } from "../../core/prepared";
import { save } from "../../data/save";
import { hrefOf } from "../router";
import type { Offer } from "./acting";

interface Props {
  readonly market: Market;
  readonly job: Hex;
  readonly submitter: Hex;
  readonly offers: readonly Offer[];
}

export function SaveActs({ market, job, submitter, offers }: Props) {
  if (offers.length === 0) return null;
  const { chainId } = market.network;
  const keep = ({ label, act }: Offer): void => {
    if (act === undefined) return;
    const key = `${label.toLowerCase()}/${job.slice(2)}`;
    const name = `hearth-${act.call.label.replace(".", "-")}-${job.slice(0, 10)}.json`;
    save([documentText(act.call, { from: submitter, approve: 0n, key, chainId })], name, "application/json");
  };
  return (
    <details id="save-acts">
      <summary>Sign it on another machine, or with a Safe</summary>
      <p>
        Saved as a file, which is signed at <a href={hrefOf(["sign"])}>Sign a file</a> wherever the submitter's key is. Nothing is sent here.{" "}
        <code>hearth wallet send FILE</code> sends it, <code>hearth job explain FILE</code> says what it does.
      </p>
      <p class="row">
        {offers.map((offer) => (
          <button key={offer.label} type="button" disabled={offer.held !== ""} title={offer.held} onClick={() => keep(offer)}>
            Save: {offer.label}
          </button>
        ))}
      </p>
    </details>
  );
}
