// A call that a machine has prepared with `--print-tx`: what it does, and the button that has it signed.

import { useState } from "preact/hooks";

import { readOwned } from "../../chain/owning";
import type { Hex } from "../../core/bytes";
import { requireRegistrable } from "../../core/owning";
import { type Prepared, preparedOf } from "../../core/prepared";
import type { Network } from "../../core/network";
import { formatAmount, formatRate } from "../../core/units";
import { unpackOffer } from "../../core/words";
import type { Act } from "../../wallet/acting";
import { ownerGas } from "../../wallet/owner-calls";
import type { Session } from "../../wallet/request";
import type { Ready } from "../pages/provide";
import { Acts } from "./acting";
import { Failure } from "./failure";
import { offerInWords } from "./node-facts";
import { Whole } from "./shown";
import { Table } from "./table";
import { WalletShows } from "./wallet-shows";

interface Props {
  readonly ready: Ready;
  readonly session: Session | undefined;
}

export function SignPrepared({ ready, session }: Props) {
  const { network } = ready.market;
  const [picked, setPicked] = useState(0);
  const [found, setFound] = useState<Prepared>();
  const [error, setError] = useState<unknown>();
  const pick = async (file: File | undefined): Promise<void> => {
    setPicked((last) => last + 1);
    setFound(undefined);
    setError(undefined);
    if (file === undefined) return;
    await file
      .slice(0, MOST)
      .text()
      .then((text) => preparedOf(text, network))
      .then(setFound, setError);
  };
  return (
    <>
      <h2>Sign what the machine prepared</h2>
      <p>
        <code>hearth worker register --print-tx &gt; register.json</code> on the machine writes what it has, and what it says of itself, into a
        call for the owner's wallet; so do <code>update</code>, <code>price</code>, <code>stake</code>, <code>operator</code>, <code>exit</code> and{" "}
        <code>withdraw</code>. What the call does is read out of its data here.
      </p>
      <p>
        <label for="prepared">Prepared file</label>{" "}
        <input
          type="file"
          id="prepared"
          accept=".json,application/json"
          // So that the same file can be picked again.
          onClick={(event) => {
            event.currentTarget.value = "";
          }}
          onChange={(event) => void pick(event.currentTarget.files?.[0])}
        />
      </p>
      {error !== undefined && <Failure error={error} />}
      {found !== undefined && <Call key={picked} found={found} ready={ready} session={session} />}
    </>
  );
}

// What is beyond it is refused by its length.
const MOST = 2 ** 20 + 1;

function Call({ found, ready, session }: Props & { readonly found: Prepared }) {
  const { network } = ready.market;
  const account = session?.account;
  // Stake may come from anybody; all else is the owner's to sign.
  const [signed, setSigned] = useState(false);
  const wrong = account !== undefined && account !== found.sender && found.name !== "add_stake";
  const once = signed ? "It was signed. Pick the file again to sign it once more." : "";
  const held = wrong ? `It is for ${found.sender}: connect that account.` : once;
  return (
    <>
      <Table
        caption={`It calls ${found.name}, as ${found.sender}`}
        columns={[
          { head: "argument", cell: ([name]) => name },
          { head: "value", cell: ([name, value]) => <Value name={name} value={value} network={network} /> },
        ]}
        rows={[...found.args]}
        keyOf={([name]) => name}
        none=""
      />
      <WalletShows id="prepared-shows" network={network} takes={found.takes} to={found.to} name={found.name} />
      <Acts market={ready.market} session={session} offers={[{ label: "Sign it", held, act: actOf(ready, found) }]} done={() => setSigned(true)} />
    </>
  );
}

function Value({ name, value, network }: { readonly name: string; readonly value: unknown; readonly network: Network }) {
  const { asset } = network;
  if (typeof value !== "bigint") return <Whole hex={String(value).toLowerCase() as Hex} />;
  if (name === "stake" || name === "amount") return <>{formatAmount(value, asset)}</>;
  if (name === "ask") return <>{formatRate(value, asset)}</>;
  if (name !== "offer") return <>{String(value)}</>;
  try {
    const offer = unpackOffer(value);
    const price = offer.ask === 0n ? "at the price it has" : `at ${formatRate(offer.ask, asset)}`;
    return <>{`${offer.slots} x: ${offerInWords(offer)}; ${price}`}</>;
  } catch {
    return <>none that a node can have</>;
  }
}

function actOf({ market }: Ready, found: Prepared): Act {
  const { to, data, value, label, name, takes } = found;
  const call = { to, data, value, label };
  const money = takes > 0n ? "if it was sent all the same, it is the node's stake in Escrow; else it is in your account" : "nothing but its gas leaves your account";
  const act = { call, what: `"${name}"`, gas: ownerGas(call), money, takes };
  if (name !== "register") return act;
  const operator = String(found.args.get("operator")).toLowerCase() as Hex;
  return { ...act, check: async (account) => requireRegistrable(market.network, await readOwned(market, account), operator) };
}
