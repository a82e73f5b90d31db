// A job whose account signs on another machine, or is a Safe: its terms are journalled here, and the call is saved as a file.

import { useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import { expirableFrom } from "../../core/lapse";
import { escrowAtPost } from "../../core/money";
import { accountOf } from "../../core/recipient";
import { unpackPolicy } from "../../core/words";
import { save } from "../../data/save";
import { fileOf, type Ready } from "../../wallet/credit";
import { requireOwnPlace } from "../../wallet/signing-place";
import { hrefOf } from "../router";
import { AccountField } from "./account-field";
import { Button } from "./button";
import { Failure } from "./failure";
import { Amount, Moment, Whole } from "./values";

interface Props {
  readonly market: Market;
  readonly there: boolean;
  readonly prepare: (account: Hex, fromCredit: boolean) => Promise<Ready>;
}

export function Elsewhere({ market, there, prepare }: Props) {
  const [typed, setTyped] = useState("");
  const [fromCredit, setFromCredit] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [found, setFound] = useState<Ready>();
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    setFound(undefined);
    try {
      // Where nothing may be signed, nothing is journalled either.
      requireOwnPlace(window);
      const made = await prepare(accountOf(typed), fromCredit);
      if (!made.posted) save([fileOf(made, market.network)], `hearth-post-${made.entry.kept.job.slice(0, 10)}.json`, "application/json");
      setFound(made);
    } catch (why) {
      setError(why);
    }
    setBusy(false);
  };
  return (
    <details id="elsewhere">
      <summary>Sign it on another machine, or with a Safe</summary>
      <p>
        What its account is to sign is saved as a file, and nothing is sent. This page finds the job by its id once it is posted, whoever
        sends it.
      </p>
      <AccountField id="elsewhere-account" label="The account that posts and pays" value={typed} change={setTyped} />
      <p>
        <label>
          <input type="checkbox" checked={fromCredit} onChange={(event) => setFromCredit(event.currentTarget.checked)} /> Withdraw what its
          credit in Escrow pays of it first
        </label>
      </p>
      <p>
        <Button busy={busy} disabled={!there || typed.trim() === ""} onClick={() => void run()}>
          Save what it is to sign
        </Button>
      </p>
      {!there && <p class="soft">Put its data where workers find them first, or say that you sign anyway.</p>}
      <div role="status">{found !== undefined && <Made market={market} {...found} />}</div>
      {error !== undefined && <Failure error={error} />}
    </details>
  );
}

function Made({ market, entry, posted, credit }: Ready & { readonly market: Market }) {
  const { kept, terms } = entry;
  const link = <a href={hrefOf(["job", kept.job])}><Whole hex={kept.job} /></a>;
  if (posted) return <p class="good">It was posted already, and there is nothing to sign: {link}</p>;
  const { asset, contracts } = market.network;
  return (
    <p class="good">
      Saved. <code>hearth wallet send FILE</code> sends it, <code>hearth job explain FILE</code> says what it does. {credit > 0n && <>First <Amount value={credit} asset={asset} /> of its credit is withdrawn to it, then the job is posted. </>}
      {asset.address !== null && <>Before, <Whole hex={contracts.JobRegistry} /> must be approved for just <Amount value={escrowAtPost(terms)} asset={asset} />. </>}
      The chain takes it before <Moment at={expirableFrom(terms, unpackPolicy(terms.policy))} />, and the sooner the longer its workers have. Then
      this is the job: {link}
    </p>
  );
}
