// Where a job's money went, as `hearth job receipt` says it: each part is of an event, or of a split in the transaction of
// one.

import { Fragment } from "preact";

import type { Receipt as Mined } from "../../chain/answers";
import type { Standing } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import type { MarketEvent } from "../../core/events";
import { Strays } from "../../core/logs";
import type { Network } from "../../core/network";
import { eventsIn } from "../../core/posted";
import { receiptOf } from "../../core/receipt";
import { Amount } from "./shown";

interface Props {
  readonly standing: Standing;
  readonly events: readonly MarketEvent[];
  // The transactions of the events that were read, by hash.
  readonly mined: ReadonlyMap<Hex, Mined>;
  readonly network: Network;
}

export function Money({ standing, events, mined, network }: Props) {
  const { asset, contracts } = network;
  const { jobId } = standing.posted;
  const transactions = new Map(
    [...mined].map(([hash, { logs }]) => [hash, [...eventsIn(logs, network, new Strays())]] as const),
  );
  const money = receiptOf(standing.view, jobId, events, transactions, contracts.JobRegistry);
  // What is not known yet is not zero.
  const complete = events.every((event) => mined.has(event.log.txHash));
  const rows: readonly (readonly [string, bigint | undefined])[] = [
    ["Locked for it", money.escrow],
    ["Still locked", money.stillLocked],
    ["To workers", complete ? money.workers : undefined],
    ["Market fee", money.marketFee],
    ["To keepers", complete ? money.keepers : undefined],
    ["Refunded", complete ? money.refunded : undefined],
  ];
  return (
    <>
      {rows.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd><Amount value={value} asset={asset} /></dd>
        </Fragment>
      ))}
    </>
  );
}
