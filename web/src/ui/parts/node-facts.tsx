// What the chain says of a node, in the columns of `hearth worker status` and `hearth worker offers`.

import type { NodeView } from "../../chain/owning";
import { counted } from "../../core/counted";
import { HearthError } from "../../core/errors";
import type { Network } from "../../core/network";
import { runtimesOf } from "../../core/offer";
import { bpsPercent } from "../../core/numbers";
import { reputation } from "../../core/reputation";
import { waitsOf } from "../../core/obstacles";
import { statusLabel } from "../../core/state-labels";
import { askInForce, stakeShort, statusOf } from "../../core/status";
import { slugOf, vendorOf } from "../../core/tiers";
import type { Node, Offer } from "../../core/types";
import { formatDuration } from "../../core/units";
import { ZERO_ADDRESS } from "../../generated/bounds";
import { ZONES } from "../../generated/zones";
import { Failure } from "./failure";
import { Rate } from "./rate";
import { Amount, Moment, State, Whole } from "./values";

interface Props {
  readonly view: NodeView;
  readonly network: Network;
  // The chain's second now, which counts down.
  readonly now: number;
}

export function NodeFacts({ view, network, now }: Props) {
  const { node, offered } = view;
  const { asset, nodeParameters } = network;
  const { state } = node;
  const short = stakeShort(node, nodeParameters.minimum_stake);
  return (
    <dl>
      <dt>Status</dt>
      <dd id="status"><State word={statusWordOf(node, now, network)} /></dd>
      <dt>Owner</dt>
      <dd><Whole hex={node.owner} />, who is paid: what it earns is this account's credit in Escrow</dd>
      <dt>Operator</dt>
      <dd><Whole hex={node.operator} /></dd>
      {offered !== ZERO_ADDRESS && (
        <>
          <dt>Offered to</dt>
          <dd><Whole hex={offered} />, whose first beat takes it over</dd>
        </>
      )}
      <dt>Asks</dt>
      <dd><Rate rate={askInForce(node, now)} asset={network.asset} /></dd>
      {node.offer.pending && now < node.nextAskAt && (
        <>
          <dt>Will ask</dt>
          <dd><Rate rate={node.nextAsk} asset={network.asset} /> from <Moment at={node.nextAskAt} now={now} /></dd>
        </>
      )}
      <dt>One slot has</dt>
      <dd>{offerInWords(node.offer)}</dd>
      <dt>Slots busy</dt>
      <dd>{`${state.busy}/${node.offer.slots}`}</dd>
      <dt>Stake</dt>
      <dd>
        <Amount value={node.stake} asset={asset} />
        {short > 0n && <>, short of what it needs to be live by <Amount value={short} asset={asset} /></>}
      </dd>
      <dt>Of it reserved</dt>
      <dd><Amount value={state.bond} asset={asset} /> for leases that have not ended</dd>
      <dt>Last beat</dt>
      <dd>{state.beat === 0 ? "none yet" : <><Moment at={state.beat} />, {formatDuration(Math.max(0, now - state.beat))} ago</>}</dd>
      <dt>Reputation</dt>
      <dd>{bpsPercent(reputation(state.r, state.s))}{state.seasoned ? "" : ", on probation"}</dd>
      {now < state.quarantine && (
        <>
          <dt>Quarantined</dt>
          <dd>until <Moment at={state.quarantine} now={now} /></dd>
        </>
      )}
      {node.exitAt !== 0 && (
        <>
          <dt>Leaves</dt>
          <dd id="exit">its stake is free from <Moment at={node.exitAt} now={now} /></dd>
        </>
      )}
    </dl>
  );
}

// What keeps a node from work, each with the command that mends it.
export function Waits({ node, network, now }: { readonly node: Node; readonly network: Network; readonly now: number }) {
  const waits = waitsOf(node, now, network.nodeParameters, network.asset);
  if (waits.length === 0) return <p>Nothing keeps it from leases.</p>;
  return (
    <ul id="waits">
      {waits.map(({ reason, text, next }) => (
        <li key={reason}>
          {text}. <span class="hint">Next: <code>{next}</code></span>
        </li>
      ))}
    </ul>
  );
}

export const statusWordOf = (node: Node, now: number, { nodeParameters }: Pick<Network, "nodeParameters">): string =>
  statusLabel(statusOf(node, now, Number(nodeParameters.dead_after), nodeParameters.minimum_stake));

export function offerInWords(offer: Offer): string {
  const gpus = offer.gpuCount === 0 ? "no GPU" : `${offer.gpuCount} x ${slugOf(vendorOf(offer.runtimes), offer.tier)} of ${offer.vramGib} GiB`;
  const sizes = `${counted(offer.cores, "core")}, ${offer.ramGib} GiB of memory, ${offer.diskGib} GiB of disk`;
  return `${runtimesOf(offer)}; ${gpus}, ${sizes}; zone ${ZONES[offer.zone]?.slug ?? "?"}`;
}

export function NoNode() {
  return (
    <>
      <h1>Node</h1>
      <Failure error={new HearthError("BAD_ID", "a node's number is a whole number from 1", "look at the list of workers")} />
    </>
  );
}
