// The jobs around one: its parents and theirs by their terms, and what waits for it by the newest posts of the market.

import type { Hex } from "../core/bytes";
import { type Graph, graphOf, stateOfWord } from "../core/graph";
import { type Parent, unpackParents } from "../core/parents";
import type { Posted } from "../core/posted";
import { asWritten } from "../core/stored";
import type { Block } from "./answers";
import type { Jobs } from "./jobs";

// Posts after a job in which its children are looked for, and how many are read at once.
const MOST_POSTS = 500;
const AT_ONCE = 100;

// `all` says that every post since the job's own was looked at; `looked` how many were.
export interface Around extends Graph {
  readonly states: ReadonlyMap<Hex, string>;
  readonly looked: number;
  readonly all: boolean;
}

// Read the jobs around one at a block. Throws as `Jobs.page` does.
export async function readAround(reader: Jobs, center: Posted, at: Block): Promise<Around> {
  const parents = new Map<Hex, readonly Parent[]>();
  const learn = (one: Posted): unknown => parents.set(one.jobId, unpackParents(one.parents));
  learn(center);
  const above = unpackParents(center.parents).map(({ job }) => job);
  for (const one of (await reader.posts(above, center.log.blockNumber)).values()) learn(one);
  const [overview] = await reader.market.read(at, reader.market.overview());
  let next = reader.end(overview);
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
  const [words] = await reader.market.read(at, reader.market.jobs(graph.jobs.map(({ job }) => job)));
  const states = new Map(graph.jobs.map(({ job }, place) => [job, asWritten(() => stateOfWord(words[place] ?? 0n))]));
  return { ...graph, states, looked, all: met || next === undefined };
}
