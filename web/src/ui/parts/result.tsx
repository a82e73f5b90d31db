// What a unit left: its document, its words, its files, each checked block by block before it is shown or saved.

import { useState } from "preact/hooks";

import { concat } from "../../core/bytes";
import { writeCar } from "../../core/car";
import { counted } from "../../core/counted";
import type { MarketEvent } from "../../core/events";
import type { Posted } from "../../core/posted";
import { outcomeLabel } from "../../core/sentences";
import { isOutputTable } from "../../core/output-table";
import { hasResult } from "../../core/types";
import { blocksOf, type Found, readFile } from "../../core/unixfs";
import { OUTCOME } from "../../generated/states";
import { Blocks } from "../../data/blocks";
import { outputLimits, type Place, type Read, readResult } from "../../data/results";
import { save } from "../../data/save";
import type { Context } from "../context";
import { useLoad } from "../load";
import { TEXTS } from "../texts";
import { Failure } from "./failure";
import { RerunLink } from "./job-head";
import { ShownTable } from "./output-table";
import { Moment, Stranger } from "./values";
import { Table } from "./table";
import type { JobView } from "../../core/view";

interface Props {
  readonly context: Context;
  readonly posted: Posted;
  readonly view: JobView;
  readonly events: readonly MarketEvent[];
  // The unit that its reader picked.
  readonly chosen: number | undefined;
  readonly choose: (unit: number) => void;
}

// Units in the list to pick from; of more one is picked by its number.
const LISTED = 200;

export function Results({ context, posted, view, events, chosen, choose }: Props) {
  const places = placesOf(posted, view, events);
  const place = chosen === undefined ? places[0] : places.find((one) => one.index === chosen);
  return (
    <>
      <h2>Result</h2>
      {place === undefined ? (
        <p class="soft">{chosen === undefined || places.length === 0 ? "No unit has a result yet." : `Unit ${chosen} has no result yet.`}</p>
      ) : (
        <>
          {places.length > LISTED && <p>{`Of unit ${place.index}; ${places.length} units have one.`}</p>}
          {places.length > 1 && places.length <= LISTED && (
            <label>
              Unit{" "}
              <select value={String(place.index)} onChange={(event) => choose(Number(event.currentTarget.value))}>
                {places.map(({ index }) => (
                  <option key={index} value={String(index)}>
                    {index}
                  </option>
                ))}
              </select>
            </label>
          )}
          <OneResult key={place.result} context={context} place={place} />
          {place.unit.outcome !== OUTCOME.OK && <RerunLink posted={posted} />}
        </>
      )}
    </>
  );
}

// Each unit that has a result, by what named it last.
function placesOf(posted: Posted, view: JobView, events: readonly MarketEvent[]): Place[] {
  const named = new Map<number, { readonly result: Place["result"]; readonly report: Place["report"] }>();
  for (const event of events) {
    if (event.name === "Submitted" || event.name === "Finished") named.set(Number(event.index), event);
  }
  return view.units.flatMap((unit, index) => {
    const digests = named.get(index);
    if (digests === undefined || !hasResult(unit.state)) return [];
    return [{ terms: posted.terms, index, unit, result: digests.result, report: digests.report }];
  });
}

function OneResult({ context, place }: { readonly context: Context; readonly place: Place }) {
  const [blocks] = useState(() => new Blocks(context.opened, context.network?.gateways ?? []));
  const [tries, setTries] = useState(0);
  const { value, error } = useLoad(() => readResult(place, blocks), place.result, [tries]);
  if (value === undefined) {
    if (error === undefined) return <p>{TEXTS.nothingYet}</p>;
    return (
      <>
        <Failure error={error} />
        <button type="button" onClick={() => setTries(tries + 1)}>
          Try again
        </button>
      </>
    );
  }
  return <Shown place={place} read={value} blocks={blocks} />;
}

function Shown({ place, read, blocks }: { readonly place: Place; readonly read: Read; readonly blocks: Blocks }) {
  const { result, report } = read;
  return (
    <>
      <p class="good">Its digest, its unit and every block of it are what the chain says.</p>
      <dl>
        <dt>Outcome</dt>
        <dd>{outcomeLabel(place.unit.outcome)}</dd>
        <dt>Status</dt>
        <dd><Stranger text={result.status} />{result.exitCode !== null && `, exit code ${result.exitCode}`}</dd>
        {report !== undefined && report.detail !== "" && (
          <>
            <dt>Detail</dt>
            <dd><Stranger text={report.detail} most={4_096} /></dd>
          </>
        )}
        {report?.keptUntil !== undefined && (
          <>
            <dt>Kept until</dt>
            <dd><Moment at={report.keptUntil} />, by the worker's word</dd>
          </>
        )}
      </dl>
      {read.lost !== undefined && <Failure error={read.lost} />}
      <Words title="stdout" text={read.stdout} />
      <Words title="stderr" text={read.stderr === "" ? (report?.stderrTail ?? "") : read.stderr} />
      <Outputs place={place} read={read} blocks={blocks} />
    </>
  );
}

function Words({ title, text }: { readonly title: string; readonly text: string }) {
  if (text === "") return null;
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <pre class="stranger" tabIndex={0}>{text}</pre>
    </section>
  );
}

function Outputs({ place, read, blocks }: { readonly place: Place; readonly read: Read; readonly blocks: Blocks }) {
  const [error, setError] = useState<unknown>();
  const [saved, setSaved] = useState("");
  const [sheet, setSheet] = useState<{ readonly path: string; readonly bytes: Uint8Array }>();
  const { root } = read;
  if (root === undefined) return <p class="soft">It left no files.</p>;
  const limits = outputLimits(place.terms);
  const run = async (name: string, parts: AsyncIterable<BlobPart>): Promise<void> => {
    try {
      const held: BlobPart[] = [];
      for await (const part of parts) held.push(part);
      save(held, name);
      setSaved(`saved ${name}`);
      setError(undefined);
    } catch (why) {
      setError(why);
    }
  };
  const show = async ({ path, cid }: Found): Promise<void> => {
    try {
      const parts: Uint8Array[] = [];
      for await (const part of readFile(cid, blocks.source, limits)) parts.push(part);
      setSheet({ path, bytes: concat(parts) });
      setError(undefined);
    } catch (why) {
      setError(why);
    }
  };
  const files = read.files.filter((one) => one.kind === "file");
  return (
    <>
      <Table
        caption={`${counted(files.length, "file")} of ${String(root)}`}
        columns={[
          { head: "file", cell: (one: Found) => <Stranger text={one.path} most={500} /> },
          { head: "bytes", cell: (one) => String(one.size), number: true },
          {
            head: "",
            cell: (one) => (
              <span class="row">
                <button type="button" onClick={() => void run(lastOf(one.path), readFile(one.cid, blocks.source, limits))}>
                  Save <Stranger text={lastOf(one.path)} most={40} />
                </button>
                {isOutputTable(one.path, one.size) && (
                  <button type="button" onClick={() => void show(one)}>
                    Show <Stranger text={lastOf(one.path)} most={40} /> as a table
                  </button>
                )}
              </span>
            ),
          },
        ]}
        rows={files}
        keyOf={(one) => one.path}
        none="It left no files."
      />
      <p class="row">
        <button
          type="button"
          onClick={() => void run(`${String(root)}.car`, writeCar([root], blocksOf(root, blocks.source, limits)))}
        >
          Keep all of it: save as CAR
        </button>
        <span role="status">{saved}</span>
      </p>
      {error !== undefined && <Failure error={error} />}
      {sheet !== undefined && <ShownTable key={sheet.path} path={sheet.path} bytes={sheet.bytes} />}
    </>
  );
}

const lastOf = (path: string): string => path.split("/").at(-1) ?? path;
