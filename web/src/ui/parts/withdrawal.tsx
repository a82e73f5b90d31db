// An account's credit in Escrow, and its withdrawal as a file: for an account that no wallet here has.

import { useState } from "preact/hooks";

import type { Block } from "../../chain/answers";
import type { Market } from "../../chain/market";
import { readPurse } from "../../chain/calling";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";
import { documentText } from "../../core/prepared";
import { accountOf } from "../../core/recipient";
import { save } from "../../data/save";
import { withdrawCall } from "../../wallet/calls";
import { AccountField } from "./account-field";
import { Button } from "./button";
import { Failure } from "./failure";
import { Amount, Whole } from "./values";

export function Withdrawal({ market, head }: { readonly market: Market; readonly head: Block }) {
  const { network } = market;
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [saved, setSaved] = useState<{ readonly account: Hex; readonly credit: bigint }>();
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    setSaved(undefined);
    try {
      const account = accountOf(typed);
      const { credit } = await readPurse(market, head, account);
      if (credit === 0n) throw new HearthError("NO_CREDIT", `${account} has no credit in Escrow`, "look whether the address is whole");
      // Credit may come and be withdrawn again: another block is another withdrawal.
      const key = `withdraw/${account}/${head.number}`;
      const text = documentText(withdrawCall(network, account, credit), { from: account, approve: 0n, key, chainId: network.chainId });
      save([text], `hearth-withdraw-${account.slice(0, 10)}.json`, "application/json");
      setSaved({ account, credit });
    } catch (why) {
      setError(why);
    }
    setBusy(false);
  };
  return (
    <section aria-labelledby="withdrawal">
      <h2 id="withdrawal">Prepare a withdrawal</h2>
      <p>Of all credit that an account has in Escrow, to the account itself: a file for the machine or the Safe that signs for it.</p>
      <AccountField id="withdraw-account" label="The account" value={typed} change={setTyped} />
      <p>
        <Button busy={busy} disabled={typed.trim() === ""} onClick={() => void run()}>
          Save the withdrawal
        </Button>
      </p>
      <p role="status">
        {saved !== undefined && (
          <>
            Saved: <Amount value={saved.credit} asset={network.asset} /> to <Whole hex={saved.account} />.{" "}
            <code>hearth wallet send FILE</code> sends it, <code>hearth job explain FILE</code> says what it does.
          </>
        )}
      </p>
      {error !== undefined && <Failure error={error} />}
    </section>
  );
}
