// One job: what it came to, its money, who may act next, its timeline, its terms. A link carries the block of its post.

import { Fragment } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";

import { Jobs as Reader, type Standing } from "../../chain/jobs";
import type { Market } from "../../chain/market";
import type { Block } from "../../chain/answers";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";
import type { MarketEvent } from "../../core/events";
import { escrowAtPost, jobHolds } from "../../core/money";
import { unpackParents } from "../../core/parents";
import { Strays } from "../../core/logs";
import { eventsIn, type Posted } from "../../core/posted";
import { type Receipt, receiptOf } from "../../core/receipt";
import { eventFacts, outcomeWords } from "../../core/sentences";
import { nextStep, type Seen, verification } from "../../core/steps";
import { slugOf } from "../../core/tiers";
import { leasesOf, nameOf, type Terms, type Unit } from "../../core/types";
import { type Asset, formatAmount, formatDuration, showAmount, showRate } from "../../core/units";
import { counts, stateOf, untouched, verdictOf } from "../../core/view";
import { cidOfDigest } from "../../core/cid";
import { fromHex } from "../../core/bytes";
import { CONDITION } from "../../generated/parents";
import { BILLING, STATE } from "../../generated/states";
import { useLoad } from "../load";
import type { Context } from "../main";
import { Actions } from "../parts/actions";
import { Failure } from "../parts/failure";
import { NoMarket } from "../parts/no-market";
import { Results } from "../parts/result";
import { Amount, Moment, State, Stranger, Whole } from "../parts/shown";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { hrefOf, useRoute } from "../router";
import { WORDS } from "../words";

interface Whole {
  readonly standing: Standing;
  readonly events: readonly MarketEvent[];
  readonly seen: Seen;
  readonly at: Block;
}

const ID = /^(0x[0-9a-fA-F]{64})(?:@([0-9]{1,15}))?$/;

export function JobPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { parts } = useRoute();
  const [, id, hint] = ID.exec(parts[1] ?? "") ?? [];
  const job = id?.toLowerCase() as Hex | undefined;
  const ready = live.state === "ready" ? live : undefined;
  const reader = useMemo(
    () => (ready === undefined ? undefined : new Reader(ready.market)),
    [ready?.market, ready?.epoch],
  );
  const [looked, setLooked] = useState("");
  const posted = useLoad(
    ready === undefined || reader === undefined || job === undefined
      ? undefined
      : () => reader.find(job, ready.head, hint === undefined ? undefined : Number(hint)),
    job ?? "",
    [reader, looked],
  );
  // A job that was posted a moment ago is not in the head that was read last: each newer one is looked at.
  const isMissing = posted.error instanceof HearthError && posted.error.code === "NOT_FOUND";
  useEffect(() => {
    if (isMissing && ready !== undefined) setLooked(ready.changed.hash);
  }, [isMissing, ready?.changed.hash]);
  const whole = useLoad(
    ready === undefined || reader === undefined || posted.value === undefined
      ? undefined
      : () => readWhole(reader, posted.value as Posted, ready.head),
    job ?? "",
    [posted.value, ready?.changed.hash],
  );
  if (network === undefined) return <NoMarket />;
  if (job === undefined) {
    return (
      <>
        <h1>Job</h1>
        <Failure error={new HearthError("BAD_ID", "a job's id is 0x and 64 hex digits", "look at the list of jobs")} />
      </>
    );
  }
  return (
    <>
      <h1>Job</h1>
      <p class="mono">
        <Whole hex={job} />
      </p>
      <Synced live={live} />
      {posted.error !== undefined && <Failure error={posted.error} />}
      {whole.error !== undefined && <Failure error={whole.error} />}
      {reader !== undefined && reader.strays.count > 0 && <p role="note">{reader.strays.inWords()}</p>}
      {whole.value === undefined || ready === undefined ? (
        posted.error === undefined && <p>{WORDS.nothingYet}</p>
      ) : (
        <>
          <Head whole={whole.value} market={ready.market} now={ready.head.time} />
          <Actions market={ready.market} standing={whole.value.standing} />
          <Timeline market={ready.market} events={whole.value.events} asset={network.asset} />
          <Results
            context={context}
            posted={whole.value.standing.posted}
            view={whole.value.standing.view}
            events={whole.value.events}
          />
          <Units whole={whole.value} />
          <TermsOf posted={whole.value.standing.posted} asset={network.asset} attesters={network.contracts.Attesters} />
          <AsCommands job={job} />
        </>
      )}
    </>
  );
}

async function readWhole(reader: Reader, posted: Posted, at: Block): Promise<Whole> {
  const [standing, events] = await Promise.all([reader.whole(posted, at), reader.events(posted, at)]);
  const running = standing.view.units.filter((unit) => unit.state === STATE.RUNNING).map((unit) => unit.node);
  const ids = [...new Set(running)].slice(0, 64);
  const pages = await reader.market.read(at, ...ids.map((id) => reader.market.nodes(id, 1)));
  const lastSeen = new Map(pages.flat().map((node) => [node.id, node.state.beat]));
  const { network } = reader.market;
  const seen = { lastSeen, deadAfter: Number(network.nodeParameters.dead_after), attesters: network.contracts.Attesters };
  return { standing, events, seen, at };
}

interface HeadProps {
  readonly whole: Whole;
  readonly market: Market;
  readonly now: number;
}

function Head({ whole, market, now }: HeadProps) {
  const { view, posted } = whole.standing;
  const states = [...counts(view)].filter(([, count]) => count > 0);
  return (
    <>
      <p>
        <State name={stateOf(view)} />, {verdictOf(view)}
        {states.length > 1 && `: ${states.map(([name, count]) => `${count} ${name}`).join(", ")}`}
      </p>
      <dl>
        <dt>Submitter</dt>
        <dd>
          <a href={hrefOf(["jobs"], new Map([["submitter", posted.terms.submitter]]))}>
            <Whole hex={posted.terms.submitter} />
          </a>
        </dd>
        <dt>Deadline</dt>
        <dd><Moment at={posted.terms.deadline} now={now} /></dd>
        <dt>Checked by</dt>
        <dd>{verification(posted.terms, market.network.contracts.Attesters)}</dd>
      </dl>
      <Money whole={whole} market={market} />
    </>
  );
}

// Transactions whose receipts are read unasked.
const FEW = 200;

// Where the job's money is and went, by the splits of Escrow in the same transactions: the words of `hearth job receipt`.
function Money({ whole, market }: { readonly whole: Whole; readonly market: Market }) {
  const { standing, events } = whole;
  const { view, posted } = standing;
  const { asset } = market.network;
  const hashes = [...new Set(events.map((event) => event.log.txHash))];
  const [asked, setAsked] = useState(false);
  const { value, error } = useLoad(
    asked || hashes.length <= FEW ? () => readReceipt(market, whole, hashes) : undefined,
    posted.jobId,
    [events, asked],
  );
  const rows: readonly (readonly [string, bigint | undefined])[] = [
    ["locked", value?.escrow ?? escrowAtPost(posted.terms)],
    ["still held", value?.stillLocked ?? jobHolds(posted.terms, standing.header, view.units)],
    ["workers got", value?.workers],
    ["keepers got", value?.keepers],
    ["the market's fee", value?.marketFee],
    ["refunded", value?.refunded],
  ];
  return (
    <>
      <h2>Money</h2>
      <dl>
        {rows.map(([name, amount]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd><Amount value={amount} asset={asset} /></dd>
          </Fragment>
        ))}
      </dl>
      {error !== undefined && <Failure error={error} />}
      {value === undefined && !asked && hashes.length > FEW && (
        <button type="button" onClick={() => setAsked(true)}>{`Add up ${hashes.length} transactions`}</button>
      )}
    </>
  );
}

async function readReceipt(market: Market, { standing, events }: Whole, hashes: readonly Hex[]): Promise<Receipt> {
  const { network } = market;
  const { receipts } = await market.about([], hashes);
  const transactions = new Map(
    hashes.map((hash) => [hash, [...eventsIn(receipts.get(hash)?.logs ?? [], network, new Strays())]]),
  );
  return receiptOf(standing.view, standing.posted.jobId, events, transactions, network.contracts.JobRegistry);
}

interface TimelineProps {
  readonly market: Market;
  readonly events: readonly MarketEvent[];
  readonly asset: Asset;
}

function Timeline({ market, events, asset }: TimelineProps) {
  const places = events.map((event) => event.log);
  const about = useLoad(
    () => market.about(places.map((log) => log.blockHash), places.map((log) => log.txHash)),
    market.network.name,
    [events],
  );
  const { times, receipts } = about.value ?? { times: new Map<Hex, number>(), receipts: new Map() };
  return (
    <>
      <h2>Timeline</h2>
      <ol class="timeline" aria-live="polite">
        {events.map((event) => {
          const { log } = event;
          const time = times.get(log.blockHash);
          const used = receipts.get(log.txHash);
          return (
            <li key={`${log.blockHash}${log.logIndex}`}>
              <span class="soft">{time === undefined ? WORDS.nothingYet : <Moment at={time} />}</span>{" "}
              <Stranger text={eventFacts(event, asset).text} most={1_000} />
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
                      <dd>{`${used.gas}, ${showAmount(used.fee, COIN)}`}</dd>
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

function Units({ whole }: { readonly whole: Whole }) {
  const { view } = whole.standing;
  const rest = untouched(view);
  return (
    <>
      <h2>Units</h2>
      <Table
        caption={rest > 0 ? `${rest} more wait to be taken` : "Who may act next, and until when"}
        columns={[
          { head: "unit", cell: ([index]: readonly [number, Unit]) => index, number: true },
          { head: "state", cell: ([, unit]) => <State name={nameOf(STATE, unit.state)} /> },
          { head: "outcome", cell: ([, unit]) => outcomeWords(unit.outcome) },
          { head: "node", cell: ([, unit]) => (unit.node === 0 ? "" : unit.node), number: true },
          { head: "attempts", cell: ([, unit]) => unit.attempts, number: true },
          { head: "next", cell: ([index]) => nextStep(view, index, whole.seen) },
        ]}
        rows={view.units.map((unit, index) => [index, unit] as const)}
        keyOf={([index]) => String(index)}
        none="Nobody has taken a unit yet."
      />
    </>
  );
}

const BILLED = { [BILLING.FIXED]: "a fixed price", [BILLING.FUEL]: "by fuel", [BILLING.METERED]: "by the second" };

function TermsOf({ posted, asset, attesters }: { readonly posted: Posted; readonly asset: Asset; readonly attesters: Hex }) {
  const { terms, parents } = posted;
  const { needs } = terms;
  const rows: readonly (readonly [string, string])[] = [
    ["spec", String(cidOfDigest(fromHex(terms.spec)))],
    ["units", `${terms.units} in ${leasesOf(terms)} leases`],
    ["billing", `${BILLED[terms.billing]}, at most ${showRate(terms.ceiling, asset)}`],
    ["time", `${formatDuration(terms.maxSeconds)} a unit, ${terms.maxAttempts} attempts`],
    ["keeper fee", formatAmount(terms.keeperFee, asset)],
    ["GPU", needs.gpuCount === 0 ? "none" : `${needs.gpuCount} x ${slugOf(needs.tier)} or better, ${needs.vramGib} GiB`],
    ["cores, RAM, disk", `${needs.cores}, ${needs.ramGib} GiB, ${needs.diskGib} GiB`],
    ["judge", judgeOf(terms, attesters)],
    ["policy", `0x${terms.policy.toString(16)}`],
    ["waits for", unpackParents(parents).map(({ job, condition }) => `${job} (${nameOf(CONDITION, condition)})`).join(", ") || "nothing"],
  ];
  return (
    <>
      <h2>Terms</h2>
      <dl>
        {rows.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd class={name === "spec" || name === "policy" ? "mono" : undefined}>{value}</dd>
          </Fragment>
        ))}
      </dl>
      <details>
        <summary>The nine words</summary>
        <pre>{posted.packed.map((word) => (typeof word === "bigint" ? `0x${word.toString(16).padStart(64, "0")}` : word)).join("\n")}</pre>
      </details>
    </>
  );
}

function judgeOf(terms: Terms, attesters: Hex): string {
  if (BigInt(terms.judge) === 0n) return "none";
  return terms.judge === attesters ? `signatures of attesters (${terms.judge})` : terms.judge;
}

function AsCommands({ job }: { readonly job: Hex }) {
  return (
    <>
      <h2>As commands</h2>
      <pre>{[`hearth job show ${job}`, `hearth job get ${job}`, `hearth job events ${job}`].join("\n")}</pre>
    </>
  );
}
