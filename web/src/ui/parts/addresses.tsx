// The reader's own addresses: their names, what they have in Escrow, and their jobs, with or without a wallet.

import { useState } from "preact/hooks";

import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import type { Network } from "../../core/network";
import { typedTwice } from "../../core/typed-twice";
import { label, LONGEST_NAME, labelled, type Labelled, unlabel } from "../../data/addresses";
import { useLoad } from "../load";
import { hrefOf } from "../router";
import { Failure } from "./failure";
import { Amount, Stranger, Whole } from "./values";
import { Table } from "./table";

interface Props {
  readonly network: Network;
  // Undefined while no provider answers: names need none, credits do.
  readonly market: Market | undefined;
  // The account that a wallet gave, if one did.
  readonly account: Hex | undefined;
  // The hash of the newest block in which a credit may have changed.
  readonly changed: Hex | undefined;
  readonly renamed: () => void;
}

export function Addresses({ network, market, account, changed, renamed }: Props) {
  const [all, setAll] = useState(() => labelled(location));
  const { asset } = network;
  const key = all.map(({ address }) => address).join(" ");
  const read = async (of: Market): Promise<readonly bigint[]> =>
    all.length === 0 ? [] : (await of.read(await of.head(), of.credits(all.map(({ address }) => address))))[0];
  const { value, error } = useLoad(market === undefined ? undefined : () => read(market), `credits ${network.name} ${key}`, [key, changed, market]);
  const again = (): void => {
    setAll([...labelled(location)]);
    renamed();
  };
  return (
    <section aria-labelledby="addresses">
      <h2 id="addresses">Your addresses</h2>
      <p>
        Names of your own, for accounts that you watch or pay to. They stand beside the whole address wherever the page shows it, are
        kept in this browser, and are nobody else's to read. Of the addresses the credit is asked for at once: whoever is asked for
        their credit learns that they belong together.
      </p>
      {error !== undefined && <Failure error={error} />}
      <Table
        caption="Addresses that you named"
        columns={[
          { head: "name", cell: ({ name }: Labelled) => <Stranger text={name} /> },
          { head: "address", cell: ({ address }) => <Whole hex={address} plain /> },
          { head: "credit", cell: ({ address }) => <Amount value={value?.[all.findIndex((one) => one.address === address)]} asset={asset} />, number: true },
          { head: "jobs", cell: ({ address }) => <a href={hrefOf(["jobs"], new Map([["submitter", address]]))}>its jobs</a> },
          {
            head: "",
            cell: ({ address, name }) => (
              <button
                type="button"
                aria-label={`Forget ${name}`}
                onClick={() => {
                  unlabel(address, location);
                  again();
                }}
              >
                Forget
              </button>
            ),
          },
        ]}
        rows={all}
        keyOf={({ address }) => address}
        none="You named none yet."
      />
      <Adding network={network} account={account} added={again} />
    </section>
  );
}

function Adding({ network, account, added }: Pick<Props, "network" | "account"> & { readonly added: () => void }) {
  const [first, setFirst] = useState("");
  const [second, setSecond] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>();
  const add = (address: () => Hex): void => {
    try {
      label(address(), name, location);
      for (const clear of [setFirst, setSecond, setName]) clear("");
      setError(undefined);
      added();
    } catch (why) {
      setError(why);
    }
  };
  const field = (id: string, text: string, value: string, set: (text: string) => void, most: number) => (
    <p class="row">
      <label for={id}>{text}</label>
      <input id={id} type="text" class={most > LONGEST_NAME ? "mono" : undefined} size={most} value={value} spellcheck={false} autocomplete="off" onInput={(event) => set(event.currentTarget.value)} />
    </p>
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        add(() => typedTwice(first, second, network));
      }}
    >
      {field("address-name", "A name", name, setName, LONGEST_NAME)}
      {field("address-first", "Its address", first, setFirst, 44)}
      {field("address-second", "The same address again", second, setSecond, 44)}
      <p class="row">
        <button type="submit" disabled={name.trim() === "" || first === ""}>
          Name it
        </button>
        {account !== undefined && (
          <button type="button" disabled={name.trim() === ""} onClick={() => add(() => account)}>
            Name the connected account
          </button>
        )}
      </p>
      {error !== undefined && <Failure error={error} />}
    </form>
  );
}
