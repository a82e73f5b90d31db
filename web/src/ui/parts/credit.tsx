// What an account has, and what its credit in Escrow pays first of a job: withdrawn to the account by a call of its own.

import { useState } from "preact/hooks";

import { readPurse } from "../../chain/calling";
import type { PostingGround } from "../../chain/posting-ground";
import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import { escrowAtPost } from "../../core/money";
import { creditFor, type Purse } from "../../core/posting";
import type { Network } from "../../core/network";
import type { Terms } from "../../core/types";
import { formatAmount } from "../../core/units";
import { useLoad } from "../load";
import type { Loaded } from "../unreachable";
import { Amount, Whole } from "./values";

// `most` is what credit could pay, `pays` what its owner has it pay.
export interface Credit {
  readonly purse: Loaded<Purse>;
  readonly most: bigint;
  readonly pays: bigint;
  choose(pays: boolean): void;
}

export function useCredit(market: Market | undefined, ground: PostingGround | undefined, account: Hex | undefined, terms: Terms | undefined): Credit {
  // Whose credit is to pay: another account has chosen nothing.
  const [chosen, setChosen] = useState<Hex>();
  const known = market !== undefined && ground !== undefined && account !== undefined;
  const purse = useLoad(known ? () => readPurse(market, ground.at, account) : undefined, account ?? "", [ground]);
  const most = purse.value === undefined || terms === undefined ? 0n : creditFor(purse.value.credit, escrowAtPost(terms));
  const pays = account !== undefined && chosen === account ? most : 0n;
  return { purse, most, pays, choose: (wanted) => setChosen(wanted ? account : undefined) };
}

export function CreditBox({ credit, network }: { readonly credit: Credit; readonly network: Network }) {
  const { most, pays, choose } = credit;
  return (
    <p>
      <label>
        <input id="use-credit" type="checkbox" checked={pays > 0n} onChange={(event) => choose(event.currentTarget.checked)} /> Pay{" "}
        <Amount value={most} asset={network.asset} /> of it from your credit: it is withdrawn to your account first
      </label>
    </p>
  );
}

// What the wallet shows before the post.
export function WithdrawNote({ credit: { pays }, network }: { readonly credit: Credit; readonly network: Network }) {
  if (pays === 0n) return null;
  return (
    <p id="credit-first">
      Your wallet is asked first for the withdrawal: no coin to <Whole hex={network.contracts.Escrow} />, function <code>withdraw</code>, which pays your account{" "}
      {formatAmount(pays, network.asset)} of its credit. The post then takes the whole escrow from your account.
    </p>
  );
}
