// The jobs around one: its parents and theirs by their terms, and what waits for it by the newest posts of the market.

import type { Hex } from "../core/bytes";
import { type Graph, graphOf, labelOfWord, UNKNOWN } from "../core/graph";
import { type Parent, unpackParents } from "../core/parents";
import type { Posted } from "../core/posted";
import type { StateLabel } from "../core/state-labels";
import { asWritten } from "../core/stored";
import { isJob } from "../core/parent-progress";
import type { Block } from "./answers";
import { type Jobs, labelOfStanding } from "./jobs";

// Posts after a job in which its children are looked for, and how many are read at once.
const MOST_POSTS = 500;
const AT_ONCE = 100;

// `all` says that every post since the job's own was looked at; `looked` how many were.
export interface Around extends Graph {
  readonly states: ReadonlyMap<Hex, StateLabel>;
  readonly looked: number;
  readonly all: boolean;
}

// Read the jobs around one at a block. Throws as `Jobs.page` does.
export async function readAround(reader: Jobs, center: Posted, at: Block): Promise<Around> {
  const parents = new Map<Hex, readonly Parent[]>();
  const posts = new Map<Hex, Posted>();
  const learn = (one: Posted): void => {
    posts.set(one.jobId, one);
    parents.set(one.jobId, unpackParents(one.parents));
  };
  learn(center);
  const above = unpackParents(center.parents).map(({ job }) => job);
  for (const one of (await reader.posts(above, center.log.blockNumber)).values()) learn(one);
  const [overview] = await reader.market.read(at, reader.market.overview());
  let next = reader.end(overview, at);
  let looked = 0;
  let met = false;
  while (!met && next !== undefined && looked < MOST_POSTS) {
    const page = await reader.page(next, Math.min(AT_ONCE, MOST_POSTS - looked));
    next = page.next;
    for (const one of page.jobs) {
      met ||= one.jobId === center.jobId;
      if (met) break;
      looked += 1;
      learn(one);
    }
  }
  const graph = graphOf(center.jobId, parents);
  const states = await readStates(reader, graph.jobs.map(({ job }) => job), posts, at);
  return { ...graph, states, looked, all: met || next === undefined };
}

// Read how jobs stand at a block: in the words of the list where their posts are known, else by the job's own word. Where that
// does not tell, the post is looked for. Throws as `Jobs.standing` does.
export async function readStates(reader: Jobs, jobs: readonly Hex[], known: ReadonlyMap<Hex, Posted>, at: Block): Promise<ReadonlyMap<Hex, StateLabel>> {
  const [words] = await reader.market.read(at, reader.market.jobs(jobs));
  const byWord = jobs.map((job, place) => ({ job, word: words[place] ?? 0n, told: asWritten(() => labelOfWord(words[place] ?? 0n)) }));
  const untold = byWord.filter(({ job, word, told }) => !known.has(job) && isJob(word) && told.word === UNKNOWN);
  const found = await reader.posts(untold.map(({ job }) => job), at.number);
  const standings = await reader.standing(jobs.flatMap((job) => known.get(job) ?? found.get(job) ?? []), at);
  return new Map([
    ...byWord.map(({ job, told }) => [job, told] as const),
    ...standings.map((one) => [one.posted.jobId, labelOfStanding(one)] as const),
  ]);
}
