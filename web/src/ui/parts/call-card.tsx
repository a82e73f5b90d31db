// One prepared call: what it does, its arguments whole, whom it calls, and what it takes.

import { Fragment } from "preact";

import type { Hex } from "../../core/bytes";
import type { Network } from "../../core/network";
import { MOST_TEXT, type Prepared } from "../../core/prepared";
import type { CallSummary } from "../../core/call-summary";
import { type Asset, formatAmount, NATIVE } from "../../core/units";
import { hrefOf } from "../router";
import { CallMarks } from "./call-fingerprint";
import { Stranger, Whole } from "./values";

interface Props {
  readonly call: Prepared;
  readonly told: CallSummary;
  readonly network: Network;
}

export function CallCard({ call, told, network }: Props) {
  const { asset } = network;
  return (
    <>
      <p class="told">
        <strong>{told.what}</strong>
      </p>
      <dl>
        {told.rows.map(([name, value], place) => (
          <Fragment key={place}>
            <dt>{name}</dt>
            <dd>
              {name === "job" ? <a href={hrefOf(["job", value])}><Whole hex={value as Hex} /></a> : /^0x[0-9a-f]+$/.test(value) ? <Whole hex={value as Hex} /> : <Stranger text={value} most={MOST_TEXT} />}
            </dd>
          </Fragment>
        ))}
        <dt>as</dt>
        <dd><Whole hex={call.from} /></dd>
        <dt>your wallet will show</dt>
        <dd>
          {call.approve > 0n && <>first, if less is approved, an approval of exactly <Exact value={call.approve} asset={asset} />; then </>}
          <Exact value={call.value} asset={asset.address === null ? asset : NATIVE} /> to <Whole hex={call.to} grouped /> ({call.contract}), on chain{" "}
          {String(network.chainId)}; the address shortened, as most do, raw data, and the method <code>{call.function}</code> where it knows it
        </dd>
        <dt>its data</dt>
        <dd class="marks"><CallMarks call={call} network={network} /></dd>
      </dl>
    </>
  );
}

// All digits, as a wallet shows them.
function Exact({ value, asset }: { readonly value: bigint; readonly asset: Asset }) {
  return <data value={String(value)}>{formatAmount(value, asset)}</data>;
}
