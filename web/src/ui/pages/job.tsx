// One job: what it came to, its money, who may act next, its timeline, its terms. A link carries the block of its post.

import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Block, Receipt } from "../../chain/answers";
import { Jobs as Reader, type Standing, standingAt } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";
import type { MarketEvent } from "../../core/events";
import { Strays } from "../../core/logs";
import { bond } from "../../core/money";
import { type Parent, unpackParents } from "../../core/parents";
import type { Network } from "../../core/network";
import { eventsIn, type Posted } from "../../core/posted";
import { receiptOf } from "../../core/receipt";
import { eventFacts, outcomeWords } from "../../core/sentences";
import { nextStep, type Seen, verification } from "../../core/steps";
import { slugOf } from "../../core/tiers";
import { leasesOf, nameOf, type Terms, type Unit } from "../../core/types";
import { type Asset, formatAmount, formatDuration, showAmount, showRate } from "../../core/units";
import { counts, isBlocked, stateOf, untouched, verdictOf } from "../../core/view";
import { type ParentView, waitsFor } from "../../core/waits";
import { cidOfDigest } from "../../core/cid";
import { fromHex, hexNumber, hexWord } from "../../core/bytes";
import { type Attempt, type FoldedUnit, JobFold } from "../../core/fold";
import { CONDITION } from "../../generated/parents";
import { BILLING, STATE, TERMS_FLAG } from "../../generated/states";
import { useKeep, useLast } from "../last";
import { beatOf, type Loaded, useLoad } from "../load";
import type { Context } from "../main";
import { Actions } from "../parts/actions";
import { Failure } from "../parts/failure";
import { Family } from "../parts/graph";
import { JobDocument } from "../parts/job-document";
import { Judged } from "../parts/judged";
import { LastJob } from "../parts/last-job";
import { NoMarket } from "../parts/no-market";
import { Results } from "../parts/result";
import { Amount, Moment, State, Stranger, Whole } from "../parts/shown";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { jobAddress } from "../job-address";
import { hrefOf, useRoute } from "../router";
import { WORDS } from "../words";

interface Whole {
  readonly standing: Standing;
  readonly events: readonly MarketEvent[];
  // What a blocked job waits for.
  readonly parents: readonly ParentView[];
  readonly seen: Seen;
  readonly at: Block;
}

// Of each transaction and block of a timeline something is asked, so that of a long one the newest part is shown first.
const STEP = 200;

interface About {
  readonly times: ReadonlyMap<Hex, number>;
  readonly receipts: ReadonlyMap<Hex, Receipt>;
}

export function JobPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { parts } = useRoute();
  const address = jobAddress(parts[1]);
  const job = address?.job;
  const ready = live.state === "ready" ? live : undefined;
  const reader = useMemo(
    () => (ready === undefined ? undefined : new Reader(ready.market)),
    [ready?.market, ready?.epoch],
  );
  // Beats are asked for only while their silence would matter.
  const runs = useRef(false);
  const [looked, setLooked] = useState("");
  const posted = useLoad(
    ready === undefined || reader === undefined || job === undefined
      ? undefined
      : () => reader.find(job, ready.head, address?.block),
    job ?? "",
    [reader, looked],
    ready?.seen,
  );
  // A reorg may have taken its post with it; and of a job that was posted a moment ago the head that was read last may know
  // nothing: each one in which something has changed is looked at.
  const gone = posted.error instanceof HearthError && posted.error.code === "NOT_FOUND";
  useEffect(() => {
    if (gone && ready !== undefined) setLooked(ready.changed.hash);
  }, [gone, ready?.changed.hash]);
  const whole = useLoad(
    ready === undefined || reader === undefined || posted.value === undefined || gone
      ? undefined
      : () => readWhole(reader, posted.value as Posted, ready.head),
    job ?? "",
    [posted.value, gone, ready?.changed.hash, runs.current ? beatOf(ready?.head.time, network?.nodeParameters.dead_after) : 0],
    ready?.seen,
  );
  runs.current = isRunning(whole.value);
  useKeep(live, job && `last/job/${job}`, whole.value && { ...whole.value, jobs: [whole.value.standing] });
  const last = useLast(live, ...(job === undefined ? [] : [`last/job/${job}` as const, "last/jobs" as const]));
  const lastOne = whole.value === undefined ? last?.jobs.find(({ posted: { jobId } }) => jobId === job) : undefined;
  const [most, setMost] = useState(STEP);
  const shownEvents = whole.value?.events.slice(-most);
  const about = useLoad<About>(
    ready === undefined || shownEvents === undefined
      ? undefined
      : () => ready.market.about(shownEvents.map(({ log }) => log.blockHash), shownEvents.map(({ log }) => log)),
    job ?? "",
    [whole.value?.events, most],
    ready?.seen,
  );
  if (network === undefined) return <NoMarket context={context} />;
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
      {whole.error !== undefined && !gone && <Failure error={whole.error} />}
      {last !== undefined && lastOne !== undefined && !gone && <LastJob last={last} standing={lastOne} network={network} />}
      {reader !== undefined && reader.strays.count > 0 && <p role="note">{reader.strays.inWords()}</p>}
      {whole.value === undefined || ready === undefined || gone ? (
        posted.error === undefined && lastOne === undefined && <p>{WORDS.nothingYet}</p>
      ) : (
        <>
          <Head whole={asOf(whole.value, ready.head.time)} network={network} now={ready.head.time} />
          <Money
            whole={asOf(whole.value, ready.head.time)}
            mined={about.value?.receipts}
            network={network}
            all={most < whole.value.events.length ? () => setMost(Infinity) : undefined}
          />
          <Actions market={ready.market} standing={whole.value.standing} />
          <Timeline events={shownEvents ?? []} about={about} asset={network.asset} />
          <Earlier rest={whole.value.events.length - most} more={() => setMost(most + STEP)} />
          <Results
            context={context}
            posted={whole.value.standing.posted}
            view={whole.value.standing.view}
            events={whole.value.events}
          />
          <Units whole={asOf(whole.value, ready.head.time)} />
          <Judged market={ready.market} standing={asOf(whole.value, ready.head.time).standing} events={whole.value.events} />
          {reader !== undefined && (
            <Family key={job} reader={reader} posted={whole.value.standing.posted} head={ready.head} changed={ready.changed.hash} />
          )}
          <TermsOf standing={whole.value.standing} asset={network.asset} attesters={network.contracts.Attesters} />
          <JobDocument context={context} terms={whole.value.standing.posted.terms} />
          <AsCommands job={job} />
        </>
      )}
    </>
  );
}

async function readWhole(reader: Reader, posted: Posted, at: Block): Promise<Whole> {
  const [standing, events] = await Promise.all([reader.whole(posted, at), reader.events(posted, at)]);
  const parents = isBlocked(standing.view) ? await reader.parents(posted, at) : [];
  const running = standing.view.units.filter((unit) => unit.state === STATE.RUNNING).map((unit) => unit.node);
  const ids = [...new Set(running)].slice(0, 64);
  const pages = await reader.market.read(at, ...ids.map((id) => reader.market.nodes(id, 1)));
  const lastSeen = new Map(pages.flat().map((node) => [node.id, node.state.beat]));
  const { network } = reader.market;
  const seen = { lastSeen, deadAfter: Number(network.nodeParameters.dead_after), attesters: network.contracts.Attesters };
  return waiting({ standing, events, parents, seen, at });
}

const isRunning = (whole: Whole | undefined): boolean =>
  whole?.standing.view.units.some((unit) => unit.state === STATE.RUNNING) === true;

// Return what was read as of the newest block; while a node runs a unit, as of when its last beat was read.
const asOf = (whole: Whole, now: number): Whole =>
  isRunning(whole) ? whole : waiting({ ...whole, standing: standingAt(whole.standing, now) });

// Say what a blocked job waits for.
function waiting(whole: Whole): Whole {
  const { view } = whole.standing;
  const waits = isBlocked(view) && whole.parents.length > 0 ? waitsFor(view, whole.parents) : null;
  return { ...whole, seen: { ...whole.seen, waits } };
}

interface HeadProps {
  readonly whole: Whole;
  readonly network: Network;
  readonly now: number;
}

function Head({ whole, network, now }: HeadProps) {
  const { view, posted } = whole.standing;
  const { Attesters } = network.contracts;
  const states = [...counts(view)].filter(([, count]) => count > 0);
  return (
    <>
      <p>
        <State name={stateOf(view)} />, {verdictOf(view)}
        {states.length > 1 && `: ${states.map(([name, count]) => `${count} ${name}`).join(", ")}`}
      </p>
      {whole.seen.waits && <p>{whole.seen.waits}</p>}
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
        <dd>{verification(posted.terms, Attesters)}</dd>
      </dl>
    </>
  );
}

interface MoneyProps {
  readonly whole: Whole;
  // What the transactions of the events came to, as far as they were read.
  readonly mined: ReadonlyMap<Hex, Receipt> | undefined;
  readonly network: Network;
  // Read the rest of them.
  readonly all: (() => void) | undefined;
}

// Where the job's money is and went, by the splits of Escrow in the same transactions: the words of `hearth job receipt`.
function Money({ whole, mined, network, all }: MoneyProps) {
  const { standing, events } = whole;
  const hashes = [...new Set(events.map((event) => event.log.txHash))];
  const transactions = useMemo(
    () => new Map(hashes.map((hash) => [hash, [...eventsIn(mined?.get(hash)?.logs ?? [], network, new Strays())]])),
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
          <button type="button" onClick={all}>{`Add up ${hashes.length} transactions`}</button>
        </p>
      )}
    </>
  );
}

function Earlier({ rest, more }: { readonly rest: number; readonly more: () => void }) {
  if (rest <= 0) return null;
  return (
    <p>
      <button type="button" onClick={more}>{`Show ${Math.min(STEP, rest)} more of ${rest} earlier events`}</button>
    </p>
  );
}

interface TimelineProps {
  readonly events: readonly MarketEvent[];
  readonly about: Loaded<About>;
  readonly asset: Asset;
}

function Timeline({ events, about, asset }: TimelineProps) {
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
  const { view, posted } = whole.standing;
  const rest = untouched(view);
  const attempts = useMemo(() => attemptsOf(posted, whole.events), [posted, whole.events]);
  return (
    <>
      <h2>Units</h2>
      <Table
        caption={rest > 0 ? `${rest} more wait to be taken` : "Who may act next, and until when"}
        columns={[
          { head: "unit", cell: ([index]: readonly [number, Unit]) => index, number: true },
          { head: "state", cell: ([, unit]) => <State name={nameOf(STATE, unit.state)} /> },
          { head: "outcome", cell: ([, unit]) => outcomeWords(unit.outcome) },
          { head: "node", cell: ([, unit]) => (unit.node === 0 ? "" : <a href={hrefOf(["node", String(unit.node)])}>{unit.node}</a>), number: true },
          { head: "attempts", cell: ([index, unit]) => <Attempts count={unit.attempts} of={attempts[index]?.attempts ?? []} /> },
          { head: "next", cell: ([index]) => nextStep(view, index, whole.seen) },
        ]}
        rows={view.units.map((unit, index) => [index, unit] as const)}
        keyOf={([index]) => String(index)}
        none="Nobody has taken a unit yet."
      />
    </>
  );
}

// Each unit's leases, from their starts to what ended them, by the job's events.
function attemptsOf(posted: Posted, events: readonly MarketEvent[]): readonly FoldedUnit[] {
  // The second of its post is that of untouched units, which have no attempts.
  const fold = new JobFold(posted, 0);
  for (const event of events) fold.add(event);
  return fold.units;
}

function Attempts({ count, of }: { readonly count: number; readonly of: readonly Attempt[] }) {
  if (of.length < 2) return <>{count}</>;
  return (
    <details>
      <summary>{count}</summary>
      <ol>
        {of.map(({ number, node, end, resumedFrom }) => (
          <li key={number} value={number}>
            {`node ${node}`}
            {resumedFrom !== null && `, from the checkpoint of attempt ${resumedFrom}`}
            {end !== null && `: ${end.name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase()}`}
          </li>
        ))}
      </ol>
    </details>
  );
}

const BILLED = { [BILLING.FIXED]: "a fixed price", [BILLING.FUEL]: "by fuel", [BILLING.METERED]: "by the second" };

function TermsOf({ standing, asset, attesters }: { readonly standing: Standing; readonly asset: Asset; readonly attesters: Hex }) {
  const { posted, view } = standing;
  const { terms, parents } = posted;
  const { needs } = terms;
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    ["spec", String(cidOfDigest(fromHex(terms.spec)))],
    ["units", `${terms.units} in ${leasesOf(terms)} leases`],
    ["billing", `${BILLED[terms.billing]}, at most ${showRate(terms.ceiling, asset)}`],
    ["time", `${formatDuration(terms.maxSeconds)} a unit, ${terms.maxAttempts} attempts`],
    ["keeper fee", formatAmount(terms.keeperFee, asset)],
    ["GPU", needs.gpuCount === 0 ? "none" : `${needs.gpuCount} x ${slugOf(needs.tier)} or better, ${needs.vramGib} GiB`],
    ["cores, RAM, disk", `${needs.cores}, ${needs.ramGib} GiB, ${needs.diskGib} GiB`],
    ["judge", judgeOf(terms, attesters)],
    ["a lease's bond", formatAmount(bond(terms, view.policy), asset)],
    ...(terms.checkpointEvery === 0 ? [] : [["checkpoints", `every ${formatDuration(terms.checkpointEvery)}; another node can resume it`] as const]),
    ...((terms.flags & TERMS_FLAG.KEEP) === 0 ? [] : [["results", "kept: the chain itself has their digests"] as const]),
    ["policy", hexNumber(terms.policy)],
    ["waits for", parents.length === 0 ? "nothing" : <Parents of={unpackParents(parents)} />],
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
        <pre>{posted.packed.map((word) => (typeof word === "bigint" ? hexWord(word) : word)).join("\n")}</pre>
      </details>
    </>
  );
}

function Parents({ of }: { readonly of: readonly Parent[] }) {
  return (
    <>
      {of.map(({ job, condition }, place) => (
        <Fragment key={job}>
          {place > 0 && ", "}
          <a href={hrefOf(["job", job])}>
            <Whole hex={job} />
          </a>
          {` (${nameOf(CONDITION, condition)})`}
        </Fragment>
      ))}
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
