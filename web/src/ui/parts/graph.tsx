// The jobs around one, as a picture and as a list: what it waits for to the left, what waits for it to the right.

import { useState } from "preact/hooks";

import { type Around, readAround } from "../../chain/graph";
import type { Block } from "../../chain/answers";
import type { Jobs } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { counted } from "../../core/counted";
import { BOX, laidOut, UNKNOWN } from "../../core/graph";
import type { Posted } from "../../core/posted";
import type { StateLabel } from "../../core/state-labels";
import { useLoad } from "../load";
import { hrefOf } from "../router";
import { Failure } from "./failure";
import { iconOf, State, Whole } from "./values";

interface Props {
  readonly reader: Jobs;
  readonly posted: Posted;
  readonly head: Block;
  readonly changed: Hex;
}

// What waits for a job is found in the posts after it, which are read at the reader's word alone.
export function Family({ reader, posted, head, changed }: Props) {
  const [asked, setAsked] = useState(false);
  const { value, error } = useLoad(asked ? () => readAround(reader, posted, head) : undefined, posted.jobId, [asked, reader, changed]);
  return (
    <section aria-labelledby="family">
      <h2 id="family">Jobs around it</h2>
      {!asked && (
        <p>
          <button type="button" onClick={() => setAsked(true)}>
            Show what it waits for, and what waits for it
          </button>
        </p>
      )}
      {asked && value === undefined && error === undefined && <p role="status">reading the posts after it…</p>}
      {error !== undefined && <Failure error={error} />}
      {value !== undefined && <Shown around={value} center={posted.jobId} />}
    </section>
  );
}

function Shown({ around, center }: { readonly around: Around; readonly center: Hex }) {
  const { jobs, edges, leftOut, looked, all } = around;
  return (
    <>
      {jobs.length === 1 ? <p>It waits for no job, and none of the posts that were read waits for it.</p> : <Drawn around={around} center={center} />}
      {leftOut > 0 && <p>{counted(leftOut, "more job is", "more jobs are")} left out.</p>}
      {!all && <p>{counted(looked, "post was", "posts were")} read, the newest, for what waits for it; there are more.</p>}
      <ul id="around">
        {edges.map(({ parent, child, asked }) => (
          <li key={`${parent}${child}`}>
            <Linked job={child} around={around} center={center} /> waits for <Linked job={parent} around={around} center={center} />: {asked}
          </li>
        ))}
      </ul>
    </>
  );
}

function Linked({ job, around, center }: { readonly job: Hex; readonly around: Around; readonly center: Hex }) {
  const state = <State {...toldIn(around, job)} />;
  if (job === center) return <>this job ({state})</>;
  return <><a href={hrefOf(["job", job])}><Whole hex={job} /></a> ({state})</>;
}

const toldIn = ({ states }: Around, job: Hex): StateLabel => states.get(job) ?? { word: UNKNOWN, text: UNKNOWN };

// The list below says the same: what cannot be seen is left to it.
function Drawn({ around, center }: { readonly around: Around; readonly center: Hex }) {
  const { places, width, height } = laidOut(around);
  const at = new Map(places.map((place) => [place.job, place]));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Jobs around it, as a picture; the list below says the same">
      <svg width={width + 2} height={height + 2} viewBox={`-1 -1 ${width + 2} ${height + 2}`} aria-hidden="true">
        {around.edges.map(({ parent, child }) => {
          const [from, to] = [at.get(parent), at.get(child)];
          if (from === undefined || to === undefined) return null;
          const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
          return (
            <g key={`${parent}${child}`} stroke="currentColor" fill="none">
              <path d={`M${x1} ${y1} C${x1 + 20} ${y1} ${x2 - 20} ${y2} ${x2} ${y2}`} />
              <path d={`M${x2 - 6} ${y2 - 4} L${x2} ${y2} L${x2 - 6} ${y2 + 4}`} />
            </g>
          );
        })}
        {places.map(({ job, x, y }) => {
          const { word, text } = toldIn(around, job);
          return (
            <a key={job} href={hrefOf(["job", job])} tabindex={-1}>
              <rect x={x} y={y} width={BOX.width} height={BOX.height} rx={4} fill="none" stroke="currentColor" stroke-width={job === center ? 3 : 1} />
              <text x={x + 8} y={y + 16} font-size={12} fill="currentColor">{job.slice(0, 14)}</text>
              <text x={x + 8} y={y + 32} font-size={12} fill="currentColor">{`${iconOf(word)} ${text}`}</text>
            </a>
          );
        })}
      </svg>
    </div>
  );
}
