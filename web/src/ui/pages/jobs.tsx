// The market's jobs, newest first: only the blocks around posts are asked for.

import { useMemo, useState } from "preact/hooks";

import {
  Jobs as Reader,
  type Next,
  progressOf,
  type Standing,
  standingAt,
  labelOfStanding,
} from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { counted } from "../../core/counted";
import { escrowAtPost } from "../../core/money";
import type { Posted } from "../../core/posted";
import type { Asset } from "../../core/units";
import { labelOf } from "../../data/addresses";
import { askedIn, filterOf } from "../jobs-asked";
import type { Facts } from "../jobs-facts";
import { useKeep, useLastSeen } from "../use-last-seen";
import { useLoad } from "../load";
import type { Context } from "../context";
import { Failure } from "../parts/failure";
import { JobLink } from "../parts/job-link";
import { LastSeenNote } from "../parts/last-seen-note";
import { lazy } from "../parts/lazy";
import { NoMarket } from "../parts/no-market";
import { Notes } from "../parts/notes";
import { Amount, Moment, short, State, Stranger } from "../parts/values";
import { Synced } from "../parts/synced";
import { type Column, Table } from "../parts/table";
import { hrefOf, useRoute } from "../router";
import { type Names, useNames } from "../use-names";
import { TEXTS } from "../texts";

const STEP = 25;
const Filters = lazy(async () => (await import("../parts/jobs-filters")).Filters);
const JobsMore = lazy(async () => (await import("../parts/jobs-more")).JobsMore);
const Legend = lazy(async () => (await import("../parts/legend")).Legend);

interface List {
  readonly jobs: readonly Posted[];
  readonly next: Next | undefined;
}

export function Jobs({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { query } = useRoute();
  const ready = live.state === "ready" ? live : undefined;
  const reader = useMemo(
    () => (ready === undefined ? undefined : new Reader(ready.market)),
    [ready?.market, ready?.epoch],
  );
  const [most, setMost] = useState(STEP);
  const list = useLoad(
    ready === undefined || reader === undefined ? undefined : () => newest(reader, ready.head, most),
    network?.name ?? "",
    [reader, ready?.changed.hash, most],
    ready?.seen,
  );
  const standings = useLoad(
    ready === undefined || reader === undefined || list.value === undefined
      ? undefined
      : async () => ({ at: ready.head, jobs: await reader.standing(list.value?.jobs ?? [], ready.head) }),
    network?.name ?? "",
    [list.value],
    ready?.seen,
  );
  useKeep(live, "last/jobs", standings.value);
  const last = useLastSeen(live, "last/jobs");
  const [facts, setFacts] = useState<Facts>();
  const [learnt, setLearnt] = useState(0);
  const names = useNames(network, list.value, learnt);
  const asked = askedIn(query);
  const [isAsked, mistyped] = filterOrFault(asked, names.value, location);
  if (network === undefined) return <NoMarket context={context} />;
  // What time alone changes is as of the newest block; nobody is asked for that.
  const every = standings.value?.jobs.map((one) => (ready === undefined ? one : standingAt(one, ready.head.time))) ?? last?.jobs;
  // Which of them have that name nobody knows until the names are read.
  const rows = asked.name !== "" && names.value === undefined ? undefined : every?.filter(isAsked);
  const unnamed = asked.name === "" ? 0 : (every?.filter(({ posted }) => names.value?.has(posted.terms.spec) !== true).length ?? 0);
  const unread = unnamed === 0 ? "" : `; the names of ${counted(unnamed, "job")} are not read`;
  return (
    <>
      <h1>Jobs</h1>
      <Synced live={live} />
      {standings.value === undefined && last !== undefined && <LastSeenNote last={last} />}
      {list.error !== undefined && <Failure error={list.error} />}
      {standings.error !== undefined && <Failure error={standings.error} />}
      {reader !== undefined && reader.strays.count > 0 && <p role="note">{reader.strays.inWords()}</p>}
      {names.error !== undefined && <Failure error={names.error} />}
      <Filters asked={asked} />
      <Legend />
      {mistyped !== undefined ? (
        <Failure error={mistyped} />
      ) : rows === undefined ? (
        <p>{TEXTS.nothingYet}</p>
      ) : (
        <>
          <Table
            caption={`${rows.length} of the newest ${counted(every?.length ?? 0, "job")}${unread}`}
            columns={columnsOf(network.asset, standings.value === undefined ? last?.at.time : ready?.head.time, names.value, facts, standings.value !== undefined)}
            rows={rows}
            keyOf={(one) => one.posted.jobId}
            none={every?.length === 0 ? "Nobody has posted a job yet." : `None of these jobs is like that${unread}.`}
          />
          {rows.length > 0 && <Notes />}
          <p class="row">
            {list.value?.next !== undefined && (
              <button type="button" onClick={() => setMost(most + STEP)}>
                Older jobs
              </button>
            )}
            {reader !== undefined && standings.value !== undefined && (
              <JobsMore
                context={context}
                network={network}
                reader={reader}
                {...standings.value}
                rows={rows}
                names={names.value}
                facts={facts}
                tell={setFacts}
                read={() => setLearnt(learnt + 1)}
              />
            )}
          </p>
        </>
      )}
    </>
  );
}

async function newest(reader: Reader, head: { hash: `0x${string}` } & Parameters<Reader["events"]>[1], most: number): Promise<List> {
  const [overview] = await reader.market.read(head, reader.market.overview());
  return reader.page(reader.end(overview, head), most);
}

// A name is its document's, which anybody may post again: whose job it is stands beside it.
function Submitter({ of }: { readonly of: Hex }) {
  const name = labelOf(of, location);
  return (
    <a href={hrefOf(["jobs"], new Map([["submitter", of]]))} title={of}>
      {name === undefined ? <code>{short(of)}</code> : <Stranger text={name} />}
    </a>
  );
}

function filterOrFault(...asked: Parameters<typeof filterOf>): readonly [(one: Standing) => boolean, unknown?] {
  try {
    return [filterOf(...asked)];
  } catch (error) {
    return [() => false, error];
  }
}

function columnsOf(asset: Asset, now: number | undefined, names: Names, facts: Facts | undefined, reads: boolean): Column<Standing>[] {
  return [
    { head: "job", cell: ({ posted }) => <JobLink job={posted.jobId} block={posted.log.blockNumber} /> },
    { head: "name", cell: ({ posted }) => <Stranger text={names?.get(posted.terms.spec) ?? ""} /> },
    { head: "submitter", cell: ({ posted }) => <Submitter of={posted.terms.submitter} /> },
    { head: "state", cell: (one) => <State {...labelOfStanding(one)} /> },
    {
      head: "units",
      cell: (one) => {
        const { ended, of } = progressOf(one);
        return (
          <>
            <progress value={ended} max={of} aria-label={`${ended} of ${of} ended`} /> {ended}/{of}
          </>
        );
      },
      number: true,
    },
    { head: "at most", cell: ({ posted }) => <Amount value={escrowAtPost(posted.terms)} asset={asset} />, number: true },
    {
      head: "cost so far",
      cell: ({ posted }) => {
        const cost = facts?.costs.get(posted.jobId);
        return cost === undefined && (facts !== undefined || !reads) ? "-" : <Amount value={cost} asset={asset} />;
      },
      number: true,
    },
    {
      head: "deadline",
      cell: (one) => {
        const { ended, of } = progressOf(one);
        return <Moment at={one.posted.terms.deadline} now={ended === of ? undefined : now} />;
      },
    },
    {
      head: "posted",
      cell: ({ posted }) => {
        const at = facts?.posted.get(posted.jobId);
        return at === undefined ? `block ${posted.log.blockNumber}` : <Moment at={at} />;
      },
    },
  ];
}
