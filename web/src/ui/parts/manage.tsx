// All that changes a node: its owner's calls, and more stake, which anybody may add.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { type NodeView, readManifest } from "../../chain/owning";
import { countryIn, type Manifest, manifestRows, movedManifest } from "../../core/manifest";
import { askOf, offerOf, wishOf, type Wish } from "../../core/offer";
import { addedOf, requireIdle, requireNoAsk, requireUnbonded } from "../../core/owning";
import { recipientOf } from "../../core/recipient";
import { askInForce } from "../../core/status";
import type { Node } from "../../core/types";
import { formatDuration, showRate } from "../../core/units";
import { packOffer } from "../../core/words";
import { ZERO_ADDRESS } from "../../generated/bounds";
import type { Call } from "../../wallet/calls";
import * as owner from "../../wallet/owner-calls";
import type { Session } from "../../wallet/request";
import type { Ready } from "../context";
import { useLoad } from "../load";
import { hrefOf } from "../router";
import { TEXTS } from "../texts";
import { Acts, type Offer } from "./acting";
import { Failure } from "./failure";
import { Field, read } from "./fields";
import { OfferForm } from "./offer-form";
import { SignedRows } from "./signed-rows";
import { Moment, Whole } from "./values";
import { WalletShows } from "./wallet-shows";

interface Props {
  readonly ready: Ready;
  readonly session: Session | undefined;
  readonly view: NodeView;
}

const NOBODY = "nobody could work with it";
const LOST = "nobody could take it out again";

export function Manage(props: Props) {
  const { session, view } = props;
  const account = session?.account;
  const mine = account === view.node.owner;
  return (
    <>
      {account === undefined && <p class="soft">Connect the wallet that owns this node to change it.</p>}
      {account !== undefined && !mine && <p class="soft">The connected account is another one than the owner: it may add stake, and accept the node where it was offered.</p>}
      {mine && <Ask {...props} />}
      <Stake {...props} />
      {mine && <NewOffer {...props} />}
      {mine && <Operator {...props} />}
      {mine ? <HandOver {...props} /> : <Accept {...props} />}
      <Exit {...props} mine={mine} />
    </>
  );
}

function Ask({ ready, session, view: { node } }: Props) {
  const { network } = ready.market;
  const now = ready.head.time;
  const [text, setText] = useState("");
  const ask = read(() => askOf(text, network.asset));
  const waits = read(() => requireNoAsk(node, now)).held;
  const same = ask.value !== undefined && ask.value === askInForce(node, now) ? "It asks that already." : "";
  const held = waits || (text.trim() === "" ? "Write the price of a slot." : ask.held) || same;
  const act = ask.value === undefined ? undefined : plain(owner.setAskCall(network, node.id, ask.value), "changing the price");
  return (
    <Section title="Price">
      <p>
        A new price counts after the market's notice of {formatDuration(Number(network.nodeParameters.ask_notice))}; until then it takes leases
        at the present one. What <code>worker.toml</code> says changes nothing of it.
      </p>
      <Field id="ask" label="Price of a slot" value={text} hint={`it asks ${showRate(askInForce(node, now), network.asset)}`} change={setText} />
      <Acts market={ready.market} session={session} offers={[{ label: "Change the price", held, act }]} carried={() => setText("")} />
    </Section>
  );
}

function Stake({ ready, session, view: { node } }: Props) {
  const { network } = ready.market;
  const [text, setText] = useState("");
  const added = read(() => addedOf(text, node, network.asset));
  const held = text.trim() === "" ? "Write how much." : added.held;
  const amount = added.value;
  const money = `if it was sent all the same, the stake is node ${node.id}'s; else it is in your account`;
  const act =
    amount === undefined
      ? undefined
      : { ...plain(owner.addStakeCall(network, node.id, node.owner, amount), "adding stake"), money, pays: amount };
  return (
    <Section title="Stake">
      <p>Anybody may add stake. It leaves by exit alone, and goes to the node's owner then.</p>
      <Field id="add-stake" label="Stake to add" value={text} change={setText} />
      {amount !== undefined && (
        <WalletShows id="stake-shows" network={network} takes={amount} to={network.contracts.NodeRegistry} name="add_stake" />
      )}
      <Acts market={ready.market} session={session} offers={[{ label: "Add stake", held, act }]} carried={() => setText("")} />
    </Section>
  );
}

function NewOffer({ ready, session, view: { node } }: Props) {
  const { market, head } = ready;
  const { network } = market;
  const [wish, setWish] = useState<Wish>();
  // What the node said of itself stays: its gateways are where its results are fetched.
  const told = useLoad(() => readManifest(market, node.id, head).then((document) => ({ document })), `manifest ${node.id}`, [ready.changed.hash]);
  const country = countryIn(told.value?.document);
  const form = wish ?? wishOf(node.offer, node.offer.ask, country, network.asset);
  const offer = read(() => offerOf(form, network.asset));
  const manifest = useLoad(
    told.value === undefined || offer.value === undefined ? undefined : () => movedManifest(told.value?.document, form.country.trim()),
    `${told.value?.document ?? ""} ${form.country}`,
    [told.value === undefined, offer.value === undefined],
  );
  const call = offer.value === undefined || manifest.value === undefined ? undefined : newOffer(ready, node, offer.value, manifest.value);
  const same = call !== undefined && offer.value !== undefined && sizes(offer.value) === sizes(node.offer) && form.country.trim() === country;
  const busy = read(() => requireIdle(node)).held;
  const held = busy || offer.held || (same ? "It offers that already." : "");
  const act = call === undefined ? undefined : plain(call, "changing the offer");
  return (
    <Section title="Offer">
      <p>
        What is written here is what the chain matches jobs with; the machine has to have it. <code>hearth worker update --print-tx</code>{" "}
        there writes such a call with what it finds, which is signed at{" "}
        <a href={hrefOf(["sign"])}>{TEXTS.nav.sign}</a>. An offer changes only while no lease runs:{" "}
        <code>hearth worker drain</code>, the worker's own command, lets it end what it runs.
      </p>
      {told.error !== undefined && <Failure error={told.error} />}
      {told.value !== undefined && told.value.document === undefined && (
        <p role="note">No document was found of what this node said of itself: what is signed here names its country alone, and no gateway.</p>
      )}
      <OfferForm wish={form} change={setWish} priced={false} />
      {manifest.error !== undefined && <Failure error={manifest.error} />}
      {call !== undefined && <Document manifest={manifest.value} />}
      <Acts market={market} session={session} offers={[{ label: "Change the offer", held, act }]} carried={() => setWish(undefined)} />
    </Section>
  );
}

// What the node says of itself by such a call, before it is signed: its gateways are where its results are fetched.
function Document({ manifest }: { readonly manifest: Manifest | undefined }) {
  const rows = manifest && manifestRows(manifest.document);
  return rows === undefined ? null : (
    <>
      <p>This call carries what the node says of itself, for everybody and for good:</p>
      <SignedRows id="manifest" rows={rows} />
    </>
  );
}

function Operator({ ready, session, view: { node, offered } }: Props) {
  const { network } = ready.market;
  const [text, setText] = useState("");
  const key = read(() => recipientOf(text.trim(), network, NOBODY));
  const already = key.value === node.operator ? "It is the operator." : key.value !== undefined && key.value === offered ? "It is offered to that key." : "";
  const held = text.trim() === "" ? "Write the new operator's address." : key.held || already;
  const act = key.value === undefined ? undefined : plain(owner.setOperatorCall(network, node.id, key.value), "offering it to another key");
  const back = plain(owner.setOperatorCall(network, node.id, node.operator), "taking the offer back");
  const offers: Offer[] = [{ label: "Offer it to this operator", held, act }];
  if (offered !== ZERO_ADDRESS) offers.push({ label: "Keep the present operator", held: "", act: back });
  return (
    <Section title="Operator">
      <p>
        Where the hot key is lost, stolen or replaced: the new key's first beat takes the node over, with its leases. Until then the
        present one serves.
      </p>
      <Field id="new-operator" label="New operator" value={text} change={setText} />
      <Acts market={ready.market} session={session} offers={offers} carried={() => setText("")} />
    </Section>
  );
}

function HandOver({ ready, session, view: { node } }: Props) {
  const { network } = ready.market;
  const [text, setText] = useState("");
  const to = read(() => recipientOf(text.trim(), network, LOST));
  const held = text.trim() === "" ? "Write the new owner's address." : to.held || (to.value === node.owner ? "It is the owner." : "");
  const act = to.value === undefined ? undefined : plain(owner.offerOwnerCall(network, node.id, to.value), "offering the node");
  const back = plain(owner.offerOwnerCall(network, node.id, ZERO_ADDRESS), "taking the offer back");
  return (
    <Section title="Hand it over">
      <p>
        The new owner has the stake and all that the node earns from then on, and must accept first, on this page with that account. Its
        worker then needs <code>account.payout</code> to be the new owner.
      </p>
      <Field id="new-owner" label="New owner" value={text} change={setText} />
      {to.value !== undefined && held === "" && <p>With the stake it goes to <Whole hex={to.value} />.</p>}
      <Acts
        market={ready.market}
        session={session}
        offers={[
          { label: "Offer the node to this owner", held, act },
          { label: "Take an offer of the node back", held: "", act: back },
        ]}
        carried={() => setText("")}
      />
    </Section>
  );
}

function Accept({ ready, session, view: { node } }: Props) {
  const act = plain(owner.acceptOwnerCall(ready.market.network, node.id), "accepting the node");
  return (
    <Section title="Accept it">
      <p>Where its owner has offered this node to your account, it and its stake are yours once you accept.</p>
      <Acts market={ready.market} session={session} offers={[{ label: "Accept the node", held: "", act }]} />
    </Section>
  );
}

function Exit({ ready, session, view: { node }, mine }: Props & { readonly mine: boolean }) {
  const { network } = ready.market;
  const now = ready.head.time;
  const leaving = node.exitAt !== 0;
  const finish = { label: "Finish the exit", held: leaving ? read(() => requireUnbonded(node, now)).held : "", act: plain(owner.exitFinishCall(network, node.id), "finishing the exit") };
  const cancel = { label: "Stay after all", held: "", act: plain(owner.exitCancelCall(network, node.id), "staying") };
  const start = { label: "Start the exit", held: "", act: plain(owner.exitStartCall(network, node.id), "leaving") };
  const offers = leaving ? (mine ? [finish, cancel] : [finish]) : mine ? [start] : [];
  if (offers.length === 0) return null;
  return (
    <Section title="Exit">
      <p>
        From its start the node gets no new lease, and what runs ends as usual. After {formatDuration(Number(network.nodeParameters.unbonding))}{" "}
        anybody may finish it: the stake is then the owner's credit in Escrow.
        {leaving && <> It may be finished from <Moment at={node.exitAt} now={now} />.</>}
      </p>
      <Acts market={ready.market} session={session} offers={offers} />
    </Section>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

// A call that moves nothing out of the account.
const plain = (call: Call, what: string) => ({ call, what, gas: owner.ownerGas(call), money: "nothing but its gas leaves your account" });

const newOffer = ({ market }: Ready, node: Node, offer: Node["offer"], manifest: Manifest): Call =>
  owner.updateOfferCall(market.network, node.id, offer, manifest);

// What an offer says beside its price.
const sizes = (offer: Node["offer"]): bigint => packOffer({ ...offer, ask: 0n, pending: false });

