// A job file, checked here as `hearth check` checks it: what is wrong and where, its document and digest, what it needs and
// what it costs at most. Nothing is sent anywhere.

import { counted } from "../../core/counted";
import { billingOf, deadlineOf, type Prices, planPrices } from "../../core/plan";
import { maxSeconds } from "../../core/spec";
import { nameOf } from "../../core/types";
import { formatDuration, showRate } from "../../core/units";
import { unpackPolicy } from "../../core/words";
import { BILLING } from "../../generated/states";
import { useLoad } from "../load";
import type { Context } from "../context";
import { Attesters } from "../parts/attesters";
import { Failure } from "../parts/failure";
import { Document, Editor, type Found, Sources, useJobFile } from "../parts/job-file";
import { Amount, Moment } from "../parts/values";

export function Check({ context }: { readonly context: Context }) {
  const file = useJobFile();
  const { found } = file;
  return (
    <>
      <h1>Job file</h1>
      <p>Checked on this machine, by the rules of <code>hearth check</code>. Nothing is sent anywhere.</p>
      <Editor file={file} />
      {found !== undefined && (
        <>
          <Sources file={file} found={found} />
          <Attesters file={file} found={found} />
          <Document file={file} found={found} />
          <Costs context={context} found={found} />
        </>
      )}
    </>
  );
}

// What it costs in this market, as its parameters are now.
function Costs({ context, found }: { readonly context: Context; readonly found: Found }) {
  const { live, network } = context;
  const ready = live.state === "ready" ? live : undefined;
  const { value, error } = useLoad(
    ready === undefined ? undefined : async () => (await ready.market.read(ready.head, ready.market.overview()))[0],
    network?.name ?? "",
    [ready?.changed.hash],
  );
  if (network === undefined) return null;
  const { spec } = found.loaded;
  const policy = value === undefined ? undefined : unpackPolicy(value.policy);
  let prices: Prices | undefined;
  let deadline: number | undefined;
  let refused: unknown = error;
  try {
    if (policy !== undefined && ready !== undefined) {
      prices = planPrices(spec, network.asset, policy);
      deadline = deadlineOf(spec, policy, ready.head.time);
    }
  } catch (why) {
    refused = why;
  }
  return (
    <>
      <h2>What it costs at most</h2>
      {refused !== undefined && <Failure error={refused} />}
      <dl>
        <dt>Escrow</dt>
        <dd id="escrow"><Amount value={prices?.total} asset={network.asset} /></dd>
        <dt>A unit</dt>
        <dd><Amount value={prices?.unitPrice} asset={network.asset} /></dd>
        <dt>Highest rate</dt>
        <dd>{prices === undefined ? "" : showRate(prices.ceiling, network.asset)}</dd>
        <dt>Keeper fee</dt>
        <dd><Amount value={prices?.keeperFee} asset={network.asset} /></dd>
        <dt>Billing</dt>
        <dd>{nameOf(BILLING, billingOf(spec))}</dd>
        <dt>Time</dt>
        <dd>{`${formatDuration(maxSeconds(spec))} a unit, ${counted(spec.array.units, "unit")}`}</dd>
        <dt>Deadline</dt>
        <dd>{deadline === undefined ? "" : <Moment at={deadline} now={ready?.head.time} />}</dd>
      </dl>
    </>
  );
}
