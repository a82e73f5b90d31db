// The market's jobs, newest first: only the blocks around posts are asked for.

import { useEffect, useMemo, useState } from "preact/hooks";

import {
  Jobs as Reader,
  type Next,
  progressOf,
  type Standing,
  standingAt,
  stateOfStanding as stateOf,
  verdictOfStanding as verdictOf,
} from "../../chain/jobs";
import { counted } from "../../core/counted";
import { escrowAtPost } from "../../core/money";
import type { Posted } from "../../core/posted";
import { addressOf } from "../../core/recipient";
import { STATE_NAMES } from "../../core/types";
import type { Asset } from "../../core/units";
import { labelled } from "../../data/addresses";
import { useKeep, useLast } from "../last";
import { useLoad } from "../load";
import type { Context } from "../main";
import { Failure } from "../parts/failure";
import { LastNote } from "../parts/last";
import { lazy, offline } from "../parts/lazy";
import { NoMarket } from "../parts/no-market";
import { Notes } from "../parts/notes";
import { Amount, Moment, short, State, Stranger } from "../parts/shown";
import { Synced } from "../parts/synced";
import { type Column, Table } from "../parts/table";
import { hrefOf, useRoute } from "../router";
import { WORDS } from "../words";

const STEP = 25;
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
  const [fault, setFault] = useState<unknown>();
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
  const last = useLast(live, "last/jobs");
  // What this browser knows of them already; nobody is asked for a list's sake.
  const names = useLoad(
    network === undefined ? undefined : async () => (await import("../names")).namesOf(network),
    network?.name ?? "",
    [network, list.value],
  );
  const state = query.get("state") ?? "";
  const [submitters, mistyped] = submittersIn(query.get("submitter") ?? "");
  if (network === undefined) return <NoMarket context={context} />;
  // What time alone changes is as of the newest block; nobody is asked for that.
  const every = standings.value?.jobs.map((one) => (ready === undefined ? one : standingAt(one, ready.head.time))) ?? last?.jobs;
  const rows = every?.filter(
    (one) => (state === "" || stateOf(one) === state) && (submitters === undefined || submitters.includes(one.posted.terms.submitter)),
  );
  return (
    <>
      <h1>Jobs</h1>
      <Synced live={live} />
      {standings.value === undefined && last !== undefined && <LastNote last={last} />}
      {list.error !== undefined && <Failure error={list.error} />}
      {standings.error !== undefined && <Failure error={standings.error} />}
      {reader !== undefined && reader.strays.count > 0 && <p role="note">{reader.strays.inWords()}</p>}
      {fault !== undefined && <Failure error={fault} />}
      <Filters state={state} submitter={query.get("submitter") ?? ""} />
      <Legend />
      {mistyped !== undefined ? (
        <Failure error={mistyped} />
      ) : rows === undefined ? (
        <p>{WORDS.nothingYet}</p>
      ) : (
        <>
          <Table
            caption={`${rows.length} of the newest ${counted(every?.length ?? 0, "job")}`}
            columns={columnsOf(network.asset, standings.value === undefined ? last?.at.time : ready?.head.time, names.value)}
            rows={rows}
            keyOf={(one) => one.posted.jobId}
            none={every?.length === 0 ? "Nobody has posted a job yet." : "None of these jobs is like that."}
          />
          {rows.length > 0 && <Notes />}
          <p class="row">
            {list.value?.next !== undefined && (
              <button type="button" onClick={() => setMost(most + STEP)}>
                Older jobs
              </button>
            )}
            <button type="button" disabled={rows.length === 0 || standings.value === undefined} onClick={() => void import("../jobs-csv").then(({ saveJobs }) => saveJobs(rows, network.asset), () => setFault(offline()))}>
              Save as CSV
            </button>
          </p>
        </>
      )}
    </>
  );
}

async function newest(reader: Reader, head: { hash: `0x${string}` } & Parameters<Reader["events"]>[1], most: number): Promise<List> {
  const [overview] = await reader.market.read(head, reader.market.overview());
  return reader.page(reader.end(overview), most);
}

const MINE = "mine";

// Return the accounts whose jobs are asked for, undefined for all, or why a text is no address. MINE are those that the reader named.
function submittersIn(text: string): readonly [readonly string[] | undefined, unknown?] {
  if (text === MINE) return [labelled(location).map(({ address }) => address)];
  try {
    return [text.trim() === "" ? undefined : [addressOf(text.trim())]];
  } catch (error) {
    return [undefined, error];
  }
}

function columnsOf(asset: Asset, now: number | undefined, names: ReadonlyMap<string, string> | undefined): Column<Standing>[] {
  return [
    {
      head: "job",
      cell: ({ posted }) => (
        <a href={hrefOf(["job", `${posted.jobId}@${posted.log.blockNumber}`])} title={posted.jobId}>
          <code>{short(posted.jobId)}</code>
        </a>
      ),
    },
    { head: "name", cell: ({ posted }) => <Stranger text={names?.get(posted.terms.spec) ?? ""} /> },
    { head: "state", cell: (one) => <State name={stateOf(one)} /> },
    { head: "came to", cell: verdictOf },
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
    { head: "deadline", cell: ({ posted }) => <Moment at={posted.terms.deadline} now={now} /> },
    { head: "block", cell: ({ posted }) => posted.log.blockNumber, number: true },
  ];
}

function Filters({ state, submitter }: { readonly state: string; readonly submitter: string }) {
  const [text, setText] = useState("");
  useEffect(() => setText(submitter === MINE ? "" : submitter), [submitter]);
  const go = (name: string, value: string): void => {
    const query = new Map(Object.entries({ state, submitter, [name]: value }).filter(([, one]) => one !== ""));
    location.hash = hrefOf(["jobs"], query);
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        go("submitter", text.trim());
      }}
    >
      <label>
        State{" "}
        <select value={state} onChange={(event) => go("state", event.currentTarget.value)}>
          {["", ...STATE_NAMES, "ended"].map((one) => (
            <option key={one} value={one}>
              {one === "" ? "any" : one}
            </option>
          ))}
        </select>
      </label>
      <label>
        Submitter{" "}
        <input type="text" value={text} placeholder="0x…" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit">Filter</button>
      {(submitter === MINE || labelled(location).length > 0) && (
        <label>
          <input type="checkbox" checked={submitter === MINE} onChange={(event) => go("submitter", event.currentTarget.checked ? MINE : "")} /> of my
          addresses
        </label>
      )}
    </form>
  );
}
