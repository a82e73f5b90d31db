// One node, for anybody: what it offers, how it stands, what it did and earned, and which open jobs it could take.

import { useMemo, useState } from "preact/hooks";

import { Jobs as Reader } from "../../chain/jobs";
import { manifestRows } from "../../core/manifest";
import { type NodePast, NodeReader, stakeFault } from "../../chain/node-past";
import { hasLeft, type NodeView, readManifest } from "../../chain/owning";
import { immutablesOf } from "../../chain/posting-ground";
import type { Block } from "../../chain/answers";
import { counted } from "../../core/counted";
import type { Hex } from "../../core/bytes";
import type { HearthError } from "../../core/errors";
import { type Opening, openingOf } from "../../core/openings";
import { useLoad } from "../load";
import type { Loaded } from "../unreachable";
import type { Context, Ready } from "../context";
import { nodeIdOf, useNode } from "../node";
import { Failure } from "../parts/failure";
import { JobLink } from "../parts/job-link";
import { NoMarket } from "../parts/no-market";
import { NodeBooks } from "../parts/node-books";
import { NodeFacts, NoNode, Waits } from "../parts/node-facts";
import { SignedRows } from "../parts/signed-rows";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { hrefOf, useRoute } from "../router";
import { type Names, useNames } from "../use-names";
import { TEXTS } from "../texts";

// Newest jobs that are looked at for open units.
const NEWEST = 50;

export function NodePage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const id = nodeIdOf(useRoute().parts[1]);
  const view = useNode(context, id);
  const ready = live.state === "ready" ? live : undefined;
  const jobs = useMemo(() => (ready === undefined ? undefined : new Reader(ready.market)), [ready?.market, ready?.epoch]);
  const reader = useMemo(() => (jobs === undefined || id === undefined ? undefined : new NodeReader(jobs, id)), [jobs, id]);
  const [looked, setLooked] = useState(0);
  const [failed, setFailed] = useState<unknown>();
  const past = useLoad(
    ready === undefined || reader === undefined || view.value === undefined ? undefined : () => reader.upTo(ready.head),
    `node ${id}`,
    [reader, ready?.changed.hash, looked, view.value === undefined],
    ready?.seen,
  );
  // The books, compared with the stake in storage.
  const books = useLoad(
    reader === undefined || view.value === undefined || past.value === undefined ? undefined : () => compared(reader, view.value as NodeView),
    `node ${id}`,
    [view.value, past.value],
    ready?.seen,
  );
  const shown = books.value?.past ?? past.value;
  const node = view.value?.node;
  const openings = useLoad(
    ready === undefined || jobs === undefined || node === undefined || hasLeft(node) ? undefined : () => readOpenings(jobs, view.value as NodeView),
    `node ${id}`,
    [view.value],
    ready?.seen,
  );
  const names = useNames(network, openings.value);
  const said = useLoad(
    ready === undefined || node === undefined || hasLeft(node) ? undefined : () => saidBy(ready, node.id),
    `manifest ${id}`,
    [ready?.changed.hash, node === undefined],
  );
  if (network === undefined) return <NoMarket context={context} />;
  if (id === undefined) return <NoNode />;
  const now = ready?.head.time ?? 0;
  return (
    <>
      <h1>Node {id}</h1>
      <Synced live={live} />
      {view.error !== undefined && <Failure error={view.error} />}
      {jobs !== undefined && jobs.strays.count > 0 && <p role="note">{jobs.strays.inWords()}</p>}
      {view.value === undefined || node === undefined ? (
        view.error === undefined && <p>{TEXTS.nothingYet}</p>
      ) : hasLeft(node) ? (
        <p id="left">It has left the market, and its id is never given again.</p>
      ) : (
        <>
          <NodeFacts view={view.value} network={network} now={now} />
          <Said said={said} />
          <p>
            Its owner changes it: <a href={hrefOf(["provide", String(id)])}>stake, price, offer, exit</a>.
          </p>
          <h2>What keeps it from work</h2>
          <Waits node={node} network={network} now={now} />
        </>
      )}
      {past.error !== undefined && <Failure error={past.error} />}
      {books.error !== undefined && <Failure error={books.error} />}
      {books.value?.fault !== undefined && <Failure error={books.value.fault} />}
      {failed !== undefined && <Failure error={failed} />}
      {shown === undefined ? (
        view.value !== undefined && past.error === undefined && <p>{TEXTS.nothingYet}</p>
      ) : (
        <NodeBooks
          past={shown}
          node={id}
          asset={network.asset}
          now={now}
          older={() => void reader?.older().then(() => setLooked((last) => last + 1)).then(() => setFailed(undefined), setFailed)}
        />
      )}
      {node !== undefined && !hasLeft(node) && <Openings openings={openings} names={names.value} />}
    </>
  );
}

// What a node's owner says of its machine; undefined where no call carries it.
async function saidBy({ market, head }: Ready, node: number): Promise<{ readonly rows: ReturnType<typeof manifestRows> }> {
  const document = await readManifest(market, node, head);
  return { rows: document && manifestRows(document) };
}

function Said({ said: { value, error } }: { readonly said: Loaded<Awaited<ReturnType<typeof saidBy>>> }) {
  return (
    <>
      <h2>What it says of itself</h2>
      {error !== undefined && <Failure error={error} />}
      {value !== undefined && (value.rows === undefined ? <p>No document of it was found.</p> : <SignedRows id="says" rows={value.rows} />)}
    </>
  );
}

async function compared(reader: NodeReader, view: NodeView): Promise<{ readonly past: NodePast | undefined; readonly fault: HearthError | undefined }> {
  const past = await reader.against(view);
  return { past, fault: past === undefined ? undefined : stakeFault(past, view) };
}

interface OpenJob extends Opening {
  readonly job: Hex;
  readonly block: number;
  readonly spec: Hex;
}

interface Found {
  readonly at: Block;
  readonly looked: number;
  readonly open: readonly OpenJob[];
}

async function readOpenings(reader: Reader, { at, overview, node }: NodeView): Promise<Found> {
  const { jobs } = await reader.page(reader.end(overview, at), NEWEST);
  const immutables = immutablesOf(reader.market.network);
  const open: OpenJob[] = [];
  for (const { posted, partial, view } of await reader.standing(jobs, at)) {
    const opening = partial ? undefined : openingOf(view, node, immutables);
    if (opening !== undefined) open.push({ ...opening, job: posted.jobId, block: posted.log.blockNumber, spec: posted.terms.spec });
  }
  return { at, looked: jobs.length, open };
}

interface OpeningsProps {
  readonly openings: Loaded<Found>;
  readonly names: Names;
}

function Openings({ openings: { value, error }, names }: OpeningsProps) {
  return (
    <>
      <h2>What it could take now</h2>
      {error !== undefined && <Failure error={error} />}
      {value === undefined ? (
        error === undefined && <p>{TEXTS.nothingYet}</p>
      ) : (
        <Table
          caption={`Open units of the newest ${counted(value.looked, "job")}, by the chain's gates at block ${value.at.number}; its own settings may refuse more`}
          columns={[
            {
              head: "job",
              cell: ({ job, block, spec }) => <JobLink job={job} block={block} name={names?.get(spec)} />,
            },
            { head: "unit", cell: ({ index }) => index, number: true },
            { head: "gate", cell: ({ text }) => text },
          ]}
          rows={value.open}
          keyOf={({ job }) => job}
          none={`None of the newest ${counted(value.looked, "job")} has an open unit.`}
        />
      )}
    </>
  );
}
