// What a node did and earned, as its events tell it: a strip of its leases, and its books by day.

import { byDay, type Earnings, earningsOf, type Line, linesOf } from "../../core/earnings";
import type { NodePast } from "../../chain/node-past";
import type { Asset } from "../../core/units";
import { type End, endsOf, type NodeLease, leasesOfNode } from "../../core/node-leases";
import { save } from "../../data/save";
import { hrefOf } from "../router";
import { Amount } from "./values";
import { type Column, Table } from "./table";

interface Props {
  readonly past: NodePast;
  readonly node: number;
  readonly asset: Asset;
  readonly now: number;
  readonly older: () => void;
}

// Each end has a shape of its own: never by colour alone.
const SHAPES: Readonly<Record<End, string>> = {
  done: "✔",
  failed: "✕",
  "taken away": "⌛",
  "gave up": "↩",
  "given back": "–",
  "let it pass": "○",
  stopped: "▷",
  rejected: "⚑",
  unproven: "?",
  "result in": "◆",
  running: "▶",
};
const STRIP = 120;

export function NodeBooks({ past, node, asset, now, older }: Props) {
  const terms = (job: `0x${string}`) => past.terms.get(job);
  const took = leasesOfNode(past.events, node, now, terms);
  const lines = linesOf(past.events, node, terms);
  const since = past.whole ? "since it was registered" : `since block ${past.from}`;
  const unknown = past.events.filter((event) => event.name === "Finished" && !past.terms.has(event.jobId)).length;
  return (
    <>
      <h2>Leases</h2>
      <p id="ends"><Ends took={took} />, {since}.</p>
      <Strip took={took.slice(0, STRIP)} />
      <p class="soft">Taken away: it was late or silent. Given back: it could not run it. Gave up: it stopped, and paid for it. Let it pass: it was chosen and did not start.</p>
      <h2>Earnings</h2>
      <Sums of={earningsOf(lines)} asset={asset} />
      <Table
        caption={`Its books by day, UTC, ${since}`}
        columns={columnsOf(asset)}
        rows={byDay(lines, past.times)}
        keyOf={({ day }) => day}
        none="Nothing was earned or lost."
      />
      {unknown > 0 && (
        <p role="note">
          {`Of ${unknown} results the posts lie too far back: the keeper fees that their settling paid are not counted.`}
        </p>
      )}
      <p class="soft">What its operator paid for gas is in no event of the market, and is not counted.</p>
      <p class="row">
        {!past.whole && (
          <button type="button" onClick={older}>
            Read further back
          </button>
        )}
        <button type="button" disabled={lines.length === 0} onClick={() => save([csvOf(lines, past)], `node-${node}.csv`, "text/csv")}>
          Save as CSV
        </button>
      </p>
    </>
  );
}

function Strip({ took }: { readonly took: readonly NodeLease[] }) {
  if (took.length === 0) return null;
  return (
    <ol class="strip" aria-label="Its leases, the newest first">
      {took.map(({ job, index, block, end }) => (
        <li key={`${job} ${index} ${block} ${end}`}>
          <a href={hrefOf(["job", job])} title={`unit ${index} of ${job.slice(0, 14)}…, block ${block}: ${end}`} aria-label={`${end}, unit ${index} of ${job}`}>
            <span aria-hidden="true">{SHAPES[end]}</span>
          </a>
        </li>
      ))}
    </ol>
  );
}

function Sums({ of, asset }: { readonly of: Earnings; readonly asset: Asset }) {
  return (
    <dl>
      <dt>Earned</dt>
      <dd><Amount value={of.income} asset={asset} />, the market's fee of <Amount value={of.fees} asset={asset} /> taken off</dd>
      <dt>Slashed</dt>
      <dd><Amount value={of.slashed} asset={asset} /></dd>
      <dt>For silence</dt>
      <dd><Amount value={of.livenessFees} asset={asset} /></dd>
      <dt>Net</dt>
      <dd><Amount value={of.net} asset={asset} /></dd>
    </dl>
  );
}

// How many leases ended how, each with the shape that the strip has for it.
function Ends({ took }: { readonly took: readonly NodeLease[] }) {
  const counts = [...endsOf(took)];
  if (counts.length === 0) return <>It took no lease</>;
  return (
    <>
      {counts.map(([end, count], place) => (
        <span key={end}>
          {place > 0 && ", "}
          {count} <span aria-hidden="true">{SHAPES[end]}</span> {end}
        </span>
      ))}
    </>
  );
}

interface Day {
  readonly day: string;
  readonly of: Earnings;
}

function columnsOf(asset: Asset): Column<Day>[] {
  const count = (head: string, counted: (of: Earnings["counts"]) => number): Column<Day> => ({
    head,
    cell: ({ of }) => counted(of.counts),
    number: true,
  });
  const money = (head: string, value: (of: Earnings) => bigint): Column<Day> => ({
    head,
    cell: ({ of }) => <Amount value={value(of)} asset={asset} />,
    number: true,
  });
  return [
    { head: "day", cell: ({ day }) => (day === "" ? "not known" : day) },
    count("paid", (of) => of.paid),
    count("program failed, still paid", (of) => of.failed_theirs),
    count("stopped", (of) => of.closed + of.voided),
    count("given back or up", (of) => of.declined + of.given_up),
    count("taken away", (of) => of.reclaimed),
    count("rejected", (of) => of.rejected + of.unproven),
    money("earned", (of) => of.income),
    money("lost", (of) => of.slashed + of.livenessFees),
    money("net", (of) => of.net),
  ];
}

// Each line of the books, amounts in base units.
function csvOf(lines: readonly Line[], { times }: NodePast): string {
  const rows = lines.map(({ log, kind, job, amount, fee }) =>
    [log.blockNumber, times.get(log.blockHash) ?? "", kind, job ?? "", String(amount), String(fee)].join(","),
  );
  return ["block,time,kind,job,amount,fee", ...rows].map((row) => `${row}\r\n`).join("");
}
