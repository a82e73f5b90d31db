// Which jobs a job waits for, and which wait for it, as a picture: the job in the middle, two steps each way. Parents are those of
// terms, whose hash holds their list; children are known by their posts alone.

import { CONDITION, ENDED } from "../generated/parents";
import { DONE, STATE } from "../generated/states";
import type { Hex } from "./bytes";
import { endedBy, type Parent } from "./parents";
import { stateLabel, type StateLabel, unitLabel } from "./state-labels";
import { nameOf } from "./types";
import { isJob } from "./parent-progress";
import { isHeader, unpackHeader, unpackUnit } from "./words";

// Steps each way, and jobs in one picture.
export const STEPS = 2;
export const MOST_JOBS = 40;

// A job in the picture: `level` is below 0 for what is waited for, above 0 for what waits.
export interface GraphJob {
  readonly job: Hex;
  readonly level: number;
}

// One job that waits for another, to end as asked.
export interface GraphEdge {
  readonly parent: Hex;
  readonly child: Hex;
  readonly asked: string;
}

export interface Graph {
  readonly jobs: readonly GraphJob[];
  readonly edges: readonly GraphEdge[];
  readonly leftOut: number;
}

// Draw up the picture around a job, of the jobs whose parents are known. Each job stands in it once, at its fewest steps; beyond
// `most` the farther ones are left out.
export function graphOf(center: Hex, parents: ReadonlyMap<Hex, readonly Parent[]>, most = MOST_JOBS): Graph {
  const children = new Map<Hex, Hex[]>();
  for (const [child, list] of parents) for (const { job } of list) children.set(job, [...(children.get(job) ?? []), child]);
  const levels = new Map<Hex, number>([[center, 0]]);
  const spread = (from: readonly Hex[], level: number, next: (job: Hex) => readonly Hex[]): Hex[] => {
    const found = [...new Set(from.flatMap(next))].filter((job) => !levels.has(job));
    for (const job of found) levels.set(job, level);
    return found;
  };
  let [up, down]: [readonly Hex[], readonly Hex[]] = [[center], [center]];
  for (let step = 1; step <= STEPS; step += 1) {
    up = spread(up, -step, (job) => (parents.get(job) ?? []).map((one) => one.job));
    down = spread(down, step, (job) => children.get(job) ?? []);
  }
  const all = [...levels].map(([job, level]) => ({ job, level }));
  const jobs = all.sort((a, b) => Math.abs(a.level) - Math.abs(b.level)).slice(0, most);
  const shown = new Set(jobs.map(({ job }) => job));
  const edges = jobs.flatMap(({ job: child }) =>
    (parents.get(child) ?? []).filter(({ job }) => shown.has(job)).map(({ job: parent, condition }) => ({ parent, child, asked: nameOf(CONDITION, condition) })),
  );
  return { jobs, edges, leftOut: all.length - jobs.length };
}

export const UNKNOWN = "unknown";

// Say how a job stands by its own word, as `Lens.jobs` returns it. UNKNOWN is one of no job of this market, and an array that has
// ended with units that are not done: their words say how (state-labels.ts `arrayLabel`). Throws BAD_WORD.
export function labelOfWord(word: bigint): StateLabel {
  const told = (text: string): StateLabel => ({ word: text, text });
  if (!isJob(word)) return told(UNKNOWN);
  if (!isHeader(word)) return told(unitLabel(unpackUnit(word)));
  const header = unpackHeader(word);
  const ended = endedBy(word);
  if (ended === ENDED.WELL) return told(DONE);
  if (ended === ENDED.OTHERWISE) {
    if (header.touched === 0) return told(stateLabel(STATE.CANCELLED));
    return { word: header.failed === 0 ? stateLabel(STATE.REFUNDED) : UNKNOWN, text: `${header.done} of ${header.leases} units ${DONE}` };
  }
  return told(stateLabel(header.waiting ? STATE.BLOCKED : header.touched > 0 ? STATE.RUNNING : STATE.OPEN));
}

// Where each job of a picture stands: a column for each level, from what is waited for to what waits.
export interface Place extends GraphJob {
  readonly x: number;
  readonly y: number;
}

export interface Picture {
  readonly places: readonly Place[];
  readonly width: number;
  readonly height: number;
}

export const BOX = { width: 136, height: 40, right: 40, below: 12 } as const;

// Lay a picture out: columns from left to right, each from its top.
export function laidOut({ jobs }: Graph): Picture {
  const columns = [...new Set(jobs.map(({ level }) => level))].sort((a, b) => a - b);
  const filled = new Map<number, number>();
  const places = jobs.map(({ job, level }) => {
    const row = filled.get(level) ?? 0;
    filled.set(level, row + 1);
    return { job, level, x: columns.indexOf(level) * (BOX.width + BOX.right), y: row * (BOX.height + BOX.below) };
  });
  const rows = Math.max(1, ...filled.values());
  return { places, width: columns.length * (BOX.width + BOX.right) - BOX.right, height: rows * (BOX.height + BOX.below) - BOX.below };
}
