// A job's events in the words of `hearth job show`, each with its time, its block and its transaction.

import type { Receipt } from "../../chain/answers";
import type { Hex } from "../../core/bytes";
import { counted } from "../../core/counted";
import type { MarketEvent } from "../../core/events";
import { eventFacts } from "../../core/sentences";
import { type Asset, showAmount } from "../../core/units";
import type { Loaded } from "../unreachable";
import { TEXTS } from "../texts";
import { Failure } from "./failure";
import { Moment, Stranger, Whole } from "./values";

// Of each transaction and block of a timeline something is asked, so that of a long one the newest part is shown first.
export const STEP = 200;

export interface About {
  readonly times: ReadonlyMap<Hex, number>;
  readonly receipts: ReadonlyMap<Hex, Receipt>;
}

export function Earlier({ rest, more }: { readonly rest: number; readonly more: () => void }) {
  if (rest <= 0) return null;
  return (
    <p>
      <button type="button" onClick={more}>{`Show ${Math.min(STEP, rest)} more of ${counted(rest, "earlier event")}`}</button>
    </p>
  );
}

interface TimelineProps {
  // Of a job of several units each sentence says of which.
  readonly isArray: boolean;
  readonly events: readonly MarketEvent[];
  readonly about: Loaded<About>;
  readonly asset: Asset;
}

export function Timeline({ isArray, events, about, asset }: TimelineProps) {
  const { times, receipts } = about.value ?? { times: new Map<Hex, number>(), receipts: new Map() };
  return (
    <>
      <h2>Timeline</h2>
      <ol class="timeline" aria-live="polite">
        {events.map((event) => {
          const { log } = event;
          const time = times.get(log.blockHash);
          const used = receipts.get(log.txHash);
          const { unit, text } = eventFacts(event, asset);
          const of = !isArray || unit === undefined ? "" : unit === "all" ? "all units: " : `unit ${String(unit)}: `;
          return (
            <li key={`${log.blockHash}${log.txHash}${log.logIndex}`}>
              <span class="soft">{time === undefined ? TEXTS.nothingYet : <Moment at={time} />}</span>{" "}
              <Stranger text={of + text} most={1_000} />
              <details>
                <summary>block {log.blockNumber}</summary>
                <dl>
                  <dt>Event</dt>
                  <dd>{event.name}</dd>
                  <dt>Transaction</dt>
                  <dd><Whole hex={log.txHash} /></dd>
                  {used !== undefined && (
                    <>
                      <dt>Sent by</dt>
                      <dd><Whole hex={used.from} /></dd>
                      <dt>Gas</dt>
                      <dd>{`${used.gas}, ${used.fee === undefined ? "at a price that the RPC does not say" : showAmount(used.fee, COIN)}`}</dd>
                    </>
                  )}
                </dl>
              </details>
            </li>
          );
        })}
      </ol>
      {about.error !== undefined && <Failure error={about.error} />}
    </>
  );
}

const COIN: Asset = { symbol: "ETH", decimals: 18, address: null };
