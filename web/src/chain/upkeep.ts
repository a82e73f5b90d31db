// The jobs of a market that have not ended, as stored at a block, for whoever looks for work in them.

import type { Hex } from "../core/bytes";
import { unpackParents } from "../core/parents";
import type { Posted } from "../core/posted";
import type { Work } from "../core/upkeep";
import { isBlocked, isFinished } from "../core/view";
import type { Block } from "./answers";
import { Jobs, type Standing } from "./jobs";
import { PAGE } from "./lens";
import type { Market } from "./market";

// Jobs that are looked at, the newest ones, and touched units of one of them.
const MOST_JOBS = 5_000;
const MOST_UNITS = 4_096;

export interface Unended {
  readonly at: Block;
  readonly works: readonly Work[];
  // Jobs of the market, and those that were not looked at: older ones, and arrays of too many touched units.
  readonly jobs: number;
  readonly leftOut: number;
}

export class UnendedReader {
  readonly #jobs: Jobs;
  // The newest job that is known, by its number; jobs that may not have ended.
  #known = 0;
  #open: readonly Posted[] = [];
  #older = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(readonly market: Market) {
    this.#jobs = new Jobs(market);
  }

  get strays(): Jobs["strays"] {
    return this.#jobs.strays;
  }

  // Read the jobs that have not ended; one reading at a time. Throws RPC_LIES and what reading throws.
  read(at: Block): Promise<Unended> {
    const turn = this.#turn.then(() => this.#read(at));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #read(at: Block): Promise<Unended> {
    const [overview] = await this.market.read(at, this.market.overview());
    const end = this.#jobs.end(overview, at);
    const count = end?.number ?? 0;
    if (count > this.#known) {
      const { jobs } = await this.#jobs.page(end, Math.min(MOST_JOBS, count - this.#known));
      if (count - this.#known > jobs.length) this.#older += count - this.#known - jobs.length;
      this.#open = [...jobs, ...this.#open];
      this.#known = count;
    }
    const standings = await this.#jobs.standing(this.#open, at, MOST_UNITS);
    const whole = standings.filter(({ partial }) => !partial);
    const unended = whole.filter(({ view }) => !isFinished(view));
    const ended = new Set(whole.filter(({ view }) => isFinished(view)).map(({ posted }) => posted.jobId));
    this.#open = this.#open.filter(({ jobId }) => !ended.has(jobId));
    const parents = await this.#parents(unended, at);
    const works = unended.map(({ posted, header, view }): Work => ({ posted, header, policy: view.policy, stored: view.stored, parents }));
    return { at, works, jobs: count, leftOut: this.#older + standings.length - whole.length };
  }

  // The words of the jobs that blocked ones wait for.
  async #parents(standings: readonly Standing[], at: Block): Promise<ReadonlyMap<Hex, bigint>> {
    const ids = new Set(standings.filter(({ view }) => isBlocked(view)).flatMap(({ posted }) => unpackParents(posted.parents).map(({ job }) => job)));
    const found = new Map<Hex, bigint>();
    const all = [...ids];
    for (let start = 0; start < all.length; start += PAGE) {
      const some = all.slice(start, start + PAGE);
      const [words] = await this.market.read(at, this.market.jobs(some));
      some.forEach((job, place) => found.set(job, words[place] ?? 0n));
    }
    return found;
  }
}
