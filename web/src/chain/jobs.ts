// Jobs of a market: the newest first by jumping from post to post, one by its id, and how each stands at a block.

import { type MarketEvent, topicOf } from "../core/events";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { Strays } from "../core/logs";
import { small } from "../core/numbers";
import { eventsIn, misplaced, type Posted, postedOf } from "../core/posted";
import { asWritten, jobOf, storedUnit } from "../core/stored";
import { type Header, isTerminal, leasesOf } from "../core/types";
import { type JobView, viewOf } from "../core/view";
import { unpackPosted } from "../core/words";
import type { Block } from "./answers";
import { lies } from "./answers";
import { readLeases } from "./leases";
import { Span } from "./logs";
import { type Market, type Overview, PAGE } from "./market";

// A job as it stands; `view` has its touched units only where they were read.
export interface Standing {
  readonly posted: Posted;
  // An array's header, null for a one-lease job.
  readonly header: Header | null;
  readonly view: JobView;
}

// Where a walk through the list of all jobs goes on: the number of the next one, and the block of its post.
export interface Next {
  readonly number: number;
  readonly block: number;
}

// A job and its place in that list.
interface Post {
  readonly posted: Posted;
  readonly number: number;
  readonly previous: number;
}

export interface Page {
  readonly jobs: readonly Posted[];
  // Undefined once the first job of the market was reached.
  readonly next: Next | undefined;
}

// Reads the jobs of one market; `strays` are the logs that it stepped over.
export class Jobs {
  readonly strays = new Strays();
  readonly #span = new Span();

  constructor(readonly market: Market) {}

  // Where the list of all jobs ends at a block; undefined while there is none.
  end(overview: Overview): Next | undefined {
    const { count, block } = asWritten(() => unpackPosted(overview.posted));
    return count === 0n ? undefined : { number: small(count), block: small(block) };
  }

  // Read about `count` jobs, newest first, from where a walk is on. Only blocks around posts are asked for: each post
  // names the block of the one before, so that a gap of any length costs nothing. Throws RPC_LIES where the logs do not
  // lead from each job to the one before it.
  page(next: Next | undefined, count: number): Promise<Page> {
    return this.market.sure(() => this.#page(next, count));
  }

  async #page(next: Next | undefined, count: number): Promise<Page> {
    const found: Posted[] = [];
    let at = next;
    while (at !== undefined && found.length < count) {
      const before: Next = at;
      const from = Math.max(this.market.network.deployBlock, at.block - this.#span.width + 1);
      for await (const posts of this.#posts(from, at.block)) {
        const here = new Map(posts.map((one) => [one.number, one]));
        for (let one = here.get(at.number); one !== undefined; one = here.get(at.number)) {
          found.push(one.posted);
          at = one.number === 1 ? undefined : { number: one.number - 1, block: one.previous };
          if (at === undefined || found.length >= count) return { jobs: found, next: at };
        }
        // The one before lies further back: the next window begins there.
        if (at.block < from) break;
      }
      if (at === before) throw lies(`no log of the market's job ${before.number} up to block ${before.block}`);
    }
    return { jobs: found, next: at };
  }

  // Find a job by its id. Throws NOT_FOUND; RPC_LIES where the chain knows the job and no log posts it. `hint` is the
  // block of its post, as links carry it.
  find(id: Hex, head: Block, hint?: number): Promise<Posted> {
    return this.market.sure(() => this.#find(id, head, hint));
  }

  async #find(id: Hex, head: Block, hint?: number): Promise<Posted> {
    const near = hint === undefined ? [] : [{ from: Math.max(this.market.network.deployBlock, hint), to: Math.min(hint, head.number) }];
    for (const range of [...near, { from: this.market.network.deployBlock, to: head.number }]) {
      for await (const posts of this.#posts(range.from, range.to, id)) for (const one of posts) return one.posted;
    }
    const [[word]] = await this.market.read(head, this.market.jobs([id]));
    if (word !== undefined && word !== 0n) throw lies(`job ${id} is on chain, and no log posts it`);
    throw new HearthError("NOT_FOUND", `there is no job ${id} on ${this.market.network.name}`, "look at the list of jobs");
  }

  // Read how many jobs stand at a block, without the units of arrays. Throws RPC_LIES for one that the chain lacks.
  async standing(posted: readonly Posted[], at: Block): Promise<Standing[]> {
    const found: Standing[] = [];
    for (let start = 0; start < posted.length; start += PAGE) {
      const some = posted.slice(start, start + PAGE);
      const [page] = await this.market.read(at, this.market.status(some.map((one) => ({ job: one.jobId, index: 0 }))));
      some.forEach((one, place) => {
        const status = page[place];
        if (status === undefined || status.job === 0n) throw lies(`a log posts job ${one.jobId}, which is not on chain`);
        const { header } = jobOf(status.job);
        const stored = header === null ? [storedUnit(status.word, status.second, status.accused)] : [];
        found.push({ posted: one, header, view: viewOf(one.terms, header, stored, at.time) });
      });
    }
    return found;
  }

  // Read a job with its touched units at a block, every lapse applied.
  async whole(posted: Posted, at: Block): Promise<Standing> {
    const [standing] = await this.standing([posted], at);
    if (standing === undefined || standing.header === null) return standing as Standing;
    const { header } = standing;
    const stored = await readLeases(this.market, posted, header, at);
    return { posted, header, view: viewOf(posted.terms, header, stored, at.time) };
  }

  // Read a job's events from its post up to a block, oldest first; those that fit no unit of it are strays.
  async events(posted: Posted, head: Block): Promise<MarketEvent[]> {
    const filter = { addresses: [this.market.network.contracts.JobRegistry], topics: [null, posted.jobId] };
    const range = { from: posted.log.blockNumber, to: head.number, backwards: false };
    const found: MarketEvent[] = [];
    for await (const piece of this.market.past.logs(filter, range, this.#span)) {
      for (const event of eventsIn(piece.logs, this.market.network, this.strays)) {
        const why = misplaced(event, posted);
        if (why === "") found.push(event);
        else this.strays.note(event.log, why);
      }
    }
    return found;
  }

  // Posts of a range, newest first; all, or those of one id. What is not read on is not asked for.
  async *#posts(from: number, to: number, id?: Hex): AsyncGenerator<Post[]> {
    const { network, past } = this.market;
    const topics = id === undefined ? [topicOf("JobPosted")] : [topicOf("JobPosted"), id];
    const filter = { addresses: [network.contracts.JobRegistry], topics };
    for await (const piece of past.logs(filter, { from, to, backwards: true }, this.#span)) {
      const here: Post[] = [];
      for (const event of eventsIn(piece.logs, network, this.strays)) {
        if (event.name !== "JobPosted") continue;
        here.push({ posted: postedOf(event, network), number: small(event.number), previous: small(event.previous) });
      }
      yield here.reverse();
    }
  }
}

// How many leases of a job have ended, of how many.
export function progressOf({ posted, header, view }: Standing): { readonly ended: number; readonly of: number } {
  const of = leasesOf(posted.terms);
  if (header !== null) return { ended: header.done + header.failed, of };
  return { ended: view.units[0] !== undefined && isTerminal(view.units[0].state) ? 1 : 0, of };
}
