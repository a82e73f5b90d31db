// Where a job's money is and went, by the splits of Escrow in the same transactions: the words of `hearth job receipt`.

import { Fragment } from "preact";
import { useMemo } from "preact/hooks";

import type { Receipt } from "../../chain/answers";
import { toldIn } from "../../chain/costs";
import type { Hex } from "../../core/bytes";
import { counted } from "../../core/counted";
import type { Network } from "../../core/network";
import { costOf, receiptOf } from "../../core/receipt";
import type { WholeJob } from "../job";
import { Amount } from "./values";

interface MoneyProps {
  readonly whole: WholeJob;
  // What the transactions of the events came to, as far as they were read.
  readonly mined: ReadonlyMap<Hex, Receipt> | undefined;
  readonly network: Network;
  // Read the rest of them.
  readonly all: (() => void) | undefined;
}

export function Money({ whole, mined, network, all }: MoneyProps) {
  const { standing, events } = whole;
  const hashes = [...new Set(events.map((event) => event.log.txHash))];
  const transactions = useMemo(
    () => toldIn(hashes, mined ?? new Map(), network),
    [mined, events],
  );
  const money = receiptOf(standing.view, standing.posted.jobId, events, transactions, network.contracts.JobRegistry);
  // What is not known yet is not zero.
  const complete = hashes.every((hash) => mined?.has(hash) === true);
  const rows: readonly (readonly [string, bigint | undefined])[] = [
    ["locked", money.escrow],
    ["still held", money.stillLocked],
    ["workers got", complete ? money.workers : undefined],
    ["keepers got", complete ? money.keepers : undefined],
    ["the market's fee", money.marketFee],
    ["refunded", complete ? money.refunded : undefined],
    ["cost so far", complete ? costOf(money) : undefined],
  ];
  return (
    <>
      <h2>Money</h2>
      <dl>
        {rows.map(([name, amount]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd><Amount value={amount} asset={network.asset} /></dd>
          </Fragment>
        ))}
      </dl>
      {all !== undefined && (
        <p>
          <button type="button" onClick={all}>{`Add up ${counted(hashes.length, "transaction")}`}</button>
        </p>
      )}
    </>
  );
}
