// Registering a node from a cold wallet, and what its machine then needs.

import { useEffect, useState } from "preact/hooks";

import { readOwned } from "../../chain/owning";
import { readFees } from "../../chain/calling";
import type { Hex } from "../../core/bytes";
import { firstManifest, type Manifest } from "../../core/manifest";
import { commandsOf, offerOf, type Wish } from "../../core/offer";
import { requireMinimum, requireRegistrable, stakeOf } from "../../core/owning";
import { gasCost } from "../../core/posting";
import { recipientOf } from "../../core/recipient";
import { formatAmount, NATIVE } from "../../core/units";
import type { Act } from "../../wallet/acting";
import { gasOf } from "../../wallet/acting";
import { ownerGas, registerCall } from "../../wallet/owner-calls";
import type { Session } from "../../wallet/request";
import type { Ready } from "../context";
import { useLoad } from "../load";
import { Acts } from "./acting";
import { Field, read } from "./fields";
import { OfferForm } from "./offer-form";
import { Amount, Moment } from "./values";
import { WalletShows } from "./wallet-shows";

const FIRST: Wish = {
  price: "",
  country: "",
  slots: "1",
  runtimes: ["wasm"],
  gpus: "0",
  model: "",
  vram: "",
  cores: "",
  memory: "",
  disk: "",
};
const NOBODY = "nobody could work with it";

interface Props {
  readonly ready: Ready;
  readonly session: Session | undefined;
  readonly minimum: bigint;
  readonly pausedUntil: number;
}

export function Register({ ready, session, minimum, pausedUntil }: Props) {
  const { market, head } = ready;
  const { network } = market;
  const { asset } = network;
  const [wish, setWish] = useState(FIRST);
  const [key, setKey] = useState("");
  const [text, setText] = useState("");
  const offer = read(() => offerOf(wish, asset));
  const operator = read(() => recipientOf(key.trim(), network, NOBODY));
  const stake = read(() => stakeOf(text, minimum, asset));
  const manifest = useFirstManifest(offer.value === undefined ? undefined : wish.country.trim());
  const held = [key.trim() === "" ? "Name the operator's address." : operator.held, offer.held, stake.held].find((why) => why !== "") ?? "";
  const act =
    operator.value === undefined || offer.value === undefined || stake.value === undefined || manifest === undefined
      ? undefined
      : actOf(ready, operator.value, registerCall(network, operator.value, offer.value, manifest, stake.value), stake.value);
  const fees = useLoad(() => readFees(market, head), network.name, [ready.changed.hash]);
  const account = session?.account;
  return (
    <>
      <h2>Register a node</h2>
      <p>
        The wallet that is connected owns the node and its stake, and is paid; it can stay cold. The operator is a hot key on the machine: it
        beats, takes leases and pays their gas, and nothing but gas need lie on it. A lease that fails costs part of the stake.
      </p>
      <Field id="operator" label="Operator" value={key} hint="the address that hearth wallet list names on the machine" change={setKey} />
      <OfferForm wish={wish} change={setWish} priced />
      <Field
        id="stake"
        label="Stake"
        value={text}
        hint={`left empty, the market's minimum of ${formatAmount(minimum, asset)}; it comes back by exit, to the owner`}
        change={setText}
      />
      {pausedUntil > head.time && <p role="note">New registrations are paused until <Moment at={pausedUntil} now={head.time} />.</p>}
      {stake.value !== undefined && (
        <WalletShows id="register-shows" network={network} takes={stake.value} to={network.contracts.NodeRegistry} name="register" />
      )}
      {act !== undefined && fees.value !== undefined && (
        <p id="register-gas">
          Its gas costs at most <Amount value={gasCost(gasOf(market, act), fees.value)} asset={asset.address === null ? asset : NATIVE} />.
        </p>
      )}
      <Acts market={market} session={session} offers={[{ label: "Register this node", held, act }]} />
      {offer.value !== undefined && account !== undefined && (
        <>
          <h3>On the machine</h3>
          <p>
            With the operator's key there (<code>--account</code> names it), in this order. The settings must offer what is registered;{" "}
            <code>hearth worker doctor</code> says where they do not, and <code>hearth worker register</code> is not needed.
          </p>
          <pre id="commands" tabIndex={0}>{commandsOf(wish, account).join("\n")}</pre>
        </>
      )}
    </>
  );
}

function actOf({ market }: Ready, operator: Hex, call: Act["call"], stake: bigint): Act {
  return {
    call,
    what: "registering",
    gas: ownerGas(call),
    pays: stake,
    money: "if it was sent all the same, the stake lies in Escrow for a node that comes up among yours; else it is in your account",
    // A node of this key may have come up since the page was read: another would lock as much once more.
    check: async (account) => {
      const ground = await readOwned(market, account);
      requireRegistrable(market.network, ground, operator);
      requireMinimum(stake, ground.minimumStake, market.network.asset);
    },
  };
}

// The manifest of a country, once it is hashed.
function useFirstManifest(country: string | undefined): Manifest | undefined {
  const [made, setMade] = useState<{ readonly country: string; readonly manifest: Manifest }>();
  useEffect(() => {
    let ended = false;
    if (country !== undefined) {
      void firstManifest(country).then((manifest) => {
        if (!ended) setMade({ country, manifest });
      });
    }
    return () => {
      ended = true;
    };
  }, [country]);
  return made?.country === country ? made?.manifest : undefined;
}
