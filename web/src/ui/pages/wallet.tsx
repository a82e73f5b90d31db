// What the connected account has here: balance, credit and its withdrawal, and what the market's contracts may take of its tokens.

import { useState } from "preact/hooks";

import { type Allowance, readAllowances } from "../../chain/allowances";
import type { Market } from "../../chain/market";
import { readPurse } from "../../chain/calling";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";
import type { Purse } from "../../core/posting";
import { typedTwice } from "../../core/typed-twice";
import { NATIVE, showAmount } from "../../core/units";
import { labelled } from "../../data/addresses";
import { APPROVE_GAS } from "../../generated/posting";
import { withdrawing } from "../../wallet/acting";
import { revokeOf } from "../../wallet/calls";
import { useLoad } from "../load";
import type { Context } from "../context";
import { Acts, type Offer } from "../parts/acting";
import { Addresses } from "../parts/addresses";
import { Failure } from "../parts/failure";
import { NoMarket } from "../parts/no-market";
import { Amount, Whole } from "../parts/values";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { Wallet } from "../parts/wallet";
import { useWallets, type Wallets } from "../wallet";

interface Held {
  readonly purse: Purse;
  readonly allowances: readonly Allowance[];
}

export function WalletPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const wallets = useWallets(network);
  // A new name stands at once beside whatever this page shows.
  const [renamed, setRenamed] = useState(0);
  if (network === undefined) return <NoMarket context={context} />;
  return (
    <>
      <h1>Wallet</h1>
      <Synced live={live} />
      <Wallet network={network} wallets={wallets} />
      {live.state === "ready" && wallets.session?.account !== undefined && (
        <Holdings key={wallets.session.account} context={context} market={live.market} wallets={wallets} account={wallets.session.account} />
      )}
      <Addresses
        network={network}
        market={live.state === "ready" ? live.market : undefined}
        account={wallets.session?.account}
        changed={live.state === "ready" ? live.changed.hash : undefined}
        renamed={() => setRenamed(renamed + 1)}
      />
    </>
  );
}

interface Props {
  readonly context: Context;
  readonly market: Market;
  readonly wallets: Wallets;
  readonly account: Hex;
}

function Holdings({ context: { live }, market, wallets, account }: Props) {
  const [carried, setCarried] = useState(0);
  const { asset } = market.network;
  const changed = live.state === "ready" ? live.changed : undefined;
  // A token's own logs are none of the market's: after a call of this page its block is the newest there is.
  const read = async (): Promise<Held> => {
    const at = await market.head();
    const [purse, allowances] = await Promise.all([readPurse(market, at, account), readAllowances(market, at, account)]);
    return { purse, allowances };
  };
  const { value, error } = useLoad(read, `purse ${account}`, [changed?.hash, carried], changed?.number);
  const again = (): void => setCarried((before) => before + 1);
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      <h2>What it has</h2>
      <dl>
        <dt>Native coin, for gas</dt>
        <dd id="coin"><Amount value={value?.purse.coin} asset={NATIVE} /></dd>
        {asset.address !== null && (
          <>
            <dt>Tokens of this market</dt>
            <dd id="tokens"><Amount value={value?.purse.asset} asset={asset} /></dd>
            <dt>Their contract</dt>
            <dd><Whole hex={asset.address} /></dd>
          </>
        )}
        <dt>Credit in Escrow</dt>
        <dd id="credit"><Amount value={value?.purse.credit} asset={asset} /></dd>
      </dl>
      <Withdraw market={market} wallets={wallets} account={account} credit={value?.purse.credit} carried={again} />
      <Allowances market={market} wallets={wallets} allowances={value?.allowances} carried={again} />
    </>
  );
}

interface WithdrawProps extends Omit<Props, "context"> {
  readonly credit: bigint | undefined;
  readonly carried: () => void;
}

// All of the credit, so that a call which is sent twice finds nothing the second time.
function Withdraw({ market, wallets, account, credit, carried }: WithdrawProps) {
  const [first, setFirst] = useState("");
  const [second, setSecond] = useState("");
  const [named, setNamed] = useState("");
  const { network } = market;
  const none = credit === undefined || credit === 0n ? "There is no credit to withdraw." : "";
  const offer = (label: string, to: Hex, held: string): Offer => ({
    label,
    held: none || held,
    act: withdrawing(network, to, credit ?? 0n),
  });
  const others = labelled(location).filter(({ address }) => address !== account);
  const [one, other] = named === "" ? [first, second] : [named, named];
  const found = one !== "" || other !== "" ? targetOf(one, other, market) : undefined;
  const amount = credit === undefined ? "it" : showAmount(credit, network.asset);
  const offers = [
    offer("Withdraw it to this account", account, ""),
    ...(found === undefined || found instanceof HearthError ? [] : [offer(`Withdraw ${amount} to ${found}`, found, "")]),
  ];
  const field = (id: string, label: string, value: string, set: (text: string) => void) => (
    <p class="row">
      <label for={id}>{label}</label>
      <input id={id} type="text" class="mono" size={44} value={value} spellcheck={false} autocomplete="off" onInput={(event) => set(event.currentTarget.value)} />
    </p>
  );
  return (
    <section aria-labelledby="withdraw">
      <h2 id="withdraw">Withdraw the credit</h2>
      <p>To this account, or to another one: type its whole address twice, or pick one that you named. Nothing brings back what went to a wrong one.</p>
      {others.length > 0 && (
        <p class="row">
          <label for="to-named">One of your addresses</label>
          <select id="to-named" value={named} onChange={(event) => setNamed(event.currentTarget.value)}>
            <option value="">none: it is typed</option>
            {others.map(({ address, name }) => (
              <option key={address} value={address}>{`${name}: ${address}`}</option>
            ))}
          </select>
        </p>
      )}
      {named === "" && field("to-first", "Another account", first, setFirst)}
      {named === "" && field("to-second", "The same address again", second, setSecond)}
      {found instanceof HearthError && <Failure error={found} />}
      <Acts market={market} session={wallets.session} offers={offers} carried={carried} />
    </section>
  );
}

function targetOf(first: string, second: string, { network }: Market): Hex | HearthError {
  try {
    return typedTwice(first, second, network);
  } catch (error) {
    if (error instanceof HearthError) return error;
    throw error;
  }
}

interface AllowancesProps {
  readonly market: Market;
  readonly wallets: Wallets;
  readonly allowances: readonly Allowance[] | undefined;
  readonly carried: () => void;
}

function Allowances({ market, wallets, allowances, carried }: AllowancesProps) {
  const { asset } = market.network;
  const token = asset.address;
  if (token === null) return null;
  const offers = (allowances ?? [])
    .filter(({ amount }) => amount > 0n)
    .map(({ contract, spender }): Offer => {
      const money = "an allowance moves nothing: your tokens are in your account";
      return { label: `Revoke what ${contract} may take`, held: "", act: { call: revokeOf(token, spender), what: "revoking", gas: APPROVE_GAS, money } };
    });
  return (
    <section aria-labelledby="allowances">
      <h2 id="allowances">What may be taken of your tokens</h2>
      <p>A post or a stake is approved exactly, and takes all of it. What is left here was approved and never taken.</p>
      <Table
        caption="Allowances of this market's contracts"
        columns={[
          { head: "contract", cell: (one: Allowance) => one.contract },
          { head: "address", cell: (one) => <Whole hex={one.spender} /> },
          { head: "may take", cell: (one) => <Amount value={one.amount} asset={asset} />, number: true },
        ]}
        rows={allowances ?? []}
        keyOf={(one) => one.contract}
        none="…"
      />
      <Acts market={market} session={wallets.session} offers={offers} carried={carried} />
    </section>
  );
}
