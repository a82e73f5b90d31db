// Jobs of a market: the newest first by jumping from post to post, one by its id, and how each stands at a block.

import { type MarketEvent, topicOf } from "../core/events";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { Strays } from "../core/logs";
import { small } from "../core/numbers";
import { endedBy, unpackParents } from "../core/parents";
import { eventsIn, misplaced, type Posted, postedOf } from "../core/posted";
import { stateLabel, type StateLabel } from "../core/state-labels";
import { asWritten, type StoredUnit, storedUnit } from "../core/stored";
import { type Header, isTerminal, leasesOf, type Terms } from "../core/types";
import { type JobView, stateOf, labelOf, type Verdict, verdictOf, viewOf } from "../core/view";
import { isJob, type ParentView } from "../core/parent-progress";
import { unpackPosted } from "../core/words";
import { STATE } from "../generated/states";
import type { Block } from "./answers";
import { lies } from "./answers";
import { arraysOf, readLeases, readRows, type Row } from "./leases";
import { Span } from "./logs";
import type { Overview } from "./lens";
import type { Market } from "./market";

// Touched units of an array that has not ended, beyond which a list goes by its header.
const LISTED = 1_024;
// Blocks before a job's post in which the posts of its parents are looked for.
const FAR = 50_000;

// A job as it stands.
export interface Standing {
  readonly posted: Posted;
  // An array's header, null for a one-lease job.
  readonly header: Header | null;
  // The touched units of an array were not read: `view` has none.
  readonly partial: boolean;
  readonly view: JobView;
}

// Where a walk through the list of all jobs goes on: the number of the next one, and the block of its post, or one after it
// where contracts do not see the chain's own numbers of blocks (`numbered`).
export interface Next {
  readonly number: number;
  readonly block: number;
  readonly numbered: boolean;
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
  // The terms of jobs that others wait for, null where their posts are too far back.
  readonly #terms = new Map<Hex, Terms | null>();
  // The units of arrays that have ended: they change no more.
  readonly #ended = new Map<Hex, readonly StoredUnit[]>();

  constructor(readonly market: Market) {}

  // Where the list of all jobs ends at the block of an overview; undefined while there is none.
  end(overview: Overview, at: Pick<Block, "number">): Next | undefined {
    const { count, block } = asWritten(() => unpackPosted(overview.posted));
    if (count === 0n) return undefined;
    const numbered = overview.number === at.number;
    return { number: small(count), block: numbered ? small(block) : at.number, numbered };
  }

  // Read about `count` jobs, newest first, from where a walk is on. Only blocks around posts are asked for: each post
  // names the block of the one before, so that a gap of any length costs nothing. Where contracts see other numbers than
  // those of the chain's own blocks, as on Arbitrum, all blocks are searched instead. Throws RPC_LIES where the logs do
  // not lead from each job to the one before it. Mirrors `newest` of hearth/market/reads.py.
  page(next: Next | undefined, count: number): Promise<Page> {
    return this.market.sure(() => this.#page(next, count));
  }

  async #page(next: Next | undefined, count: number): Promise<Page> {
    const found: Posted[] = [];
    let at = next;
    while (at !== undefined && found.length < count) {
      const before: Next = at;
      // As many blocks as the provider was found to serve, and however few these are: the last of them holds a post.
      const piece = await this.#before(at.block);
      const here = new Map(piece.posts.map((one) => [one.number, one]));
      for (let one = here.get(at.number); one !== undefined; one = at === undefined ? undefined : here.get(at.number)) {
        found.push(one.posted);
        const { numbered } = before;
        const block = numbered ? one.previous : one.posted.log.blockNumber;
        at = one.number === 1 ? undefined : { number: one.number - 1, block, numbered };
        // The one before lies further back: the next piece begins there.
        if (at !== undefined && at.block < piece.from) break;
        if (found.length >= count) break;
      }
      if (at !== before) continue;
      if (before.numbered || piece.from <= this.market.network.deployBlock) {
        throw lies(`no log of the market's job ${before.number} up to block ${before.block}`);
      }
      at = { ...before, block: piece.from - 1 };
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
      for await (const { posts } of this.#posts(range.from, range.to, [id])) {
        for (const one of posts) return one.posted;
      }
    }
    const [[word]] = await this.market.read(head, this.market.jobs([id]));
    if (word !== undefined && word !== 0n) throw lies(`job ${id} is on chain, and no log posts it`);
    throw new HearthError("NOT_FOUND", `there is no job ${id} on ${this.market.network.name}`, "look at the list of jobs");
  }

  // Read how jobs stand at a block, every lapse applied. An array of many units that has not ended is `partial`. Throws
  // RPC_LIES for a job that the chain lacks.
  async standing(posted: readonly Posted[], at: Block, most = LISTED): Promise<Standing[]> {
    const found: Standing[] = [];
    for await (const rows of readRows(this.market, posted, at)) {
      const leases = await this.#leases(rows, at, most);
      for (const { posted: one, status, header } of rows) {
        const units = header === null ? [storedUnit(status.word, status.second, status.accused)] : leases.get(one.jobId);
        const view = viewOf(one.terms, header, units ?? [], at.time);
        found.push({ posted: one, header, partial: units === undefined, view });
      }
    }
    return found;
  }

  // Read a job with all of its touched units at a block, every lapse applied. Throws as `standing` does.
  async whole(posted: Posted, at: Block): Promise<Standing> {
    const [standing] = await this.standing([posted], at, Infinity);
    return standing as Standing;
  }

  // The touched units of arrays, by job; none of those that have more than `most` and go on.
  async #leases(rows: readonly Row[], at: Block, most: number): Promise<ReadonlyMap<Hex, readonly StoredUnit[]>> {
    const wanted = arraysOf(rows).filter(({ header }) => hasEnded(header) || header.touched <= most);
    const read = await readLeases(this.market, wanted.filter(({ job }) => !this.#ended.has(job)), at);
    for (const { job, header } of wanted) {
      const units = read.get(job);
      if (units !== undefined && hasEnded(header)) this.#ended.set(job, units.map(({ view }) => view));
    }
    return new Map(wanted.map(({ job }) => [job, read.get(job)?.map(({ view }) => view) ?? this.#ended.get(job) ?? []]));
  }

  // Read at a block how far the jobs have come that a job waits for. Their ids are a stranger's word: one may name no job.
  async parents(posted: Posted, at: Block): Promise<ParentView[]> {
    const parents = unpackParents(posted.parents);
    if (parents.length === 0) return [];
    const [words] = await this.market.read(at, this.market.jobs(parents.map(({ job }) => job)));
    const jobs = parents.filter((_, place) => asWritten(() => isJob(words[place] ?? 0n))).map(({ job }) => job);
    await this.#learn(jobs, posted.log.blockNumber);
    return parents.map((parent, place) => {
      const word = words[place] ?? 0n;
      asWritten(() => endedBy(word));
      return { parent, word, terms: this.#terms.get(parent.job) ?? null };
    });
  }

  // The terms of those jobs whose posts are found, up to a block and no further back than it is worth.
  async terms(jobs: readonly Hex[], before: number): Promise<ReadonlyMap<Hex, Terms>> {
    await this.#learn(jobs, before);
    return new Map(jobs.flatMap((job) => {
      const terms = this.#terms.get(job);
      return terms === undefined || terms === null ? [] : [[job, terms] as const];
    }));
  }

  // Look for the terms of jobs that were posted before a block, no further back than it is worth.
  async #learn(jobs: readonly Hex[], before: number): Promise<void> {
    const missing = jobs.filter((job) => !this.#terms.has(job));
    const found = await this.posts(missing, before);
    for (const job of missing) this.#terms.set(job, found.get(job)?.terms ?? null);
  }

  // Find the posts of some jobs that were posted before a block; those that are further back than it is worth are left out.
  async posts(jobs: readonly Hex[], before: number): Promise<ReadonlyMap<Hex, Posted>> {
    const found = new Map<Hex, Posted>();
    const missing = new Set(jobs);
    if (missing.size === 0) return found;
    const from = Math.max(this.market.network.deployBlock, before - FAR);
    for await (const { posts } of this.#posts(from, before, [...missing])) {
      for (const { posted } of posts) {
        found.set(posted.jobId, posted);
        missing.delete(posted.jobId);
      }
      if (missing.size === 0) break;
    }
    return found;
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

  // Posts of the newest blocks up to one, as many as are served at once, and the first of these blocks.
  async #before(to: number): Promise<{ readonly from: number; readonly posts: readonly Post[] }> {
    for await (const piece of this.#posts(this.market.network.deployBlock, to)) return piece;
    return { from: to, posts: [] };
  }

  // Posts of a range, newest first, by its pieces; all, or those of some ids.
  async *#posts(
    from: number,
    to: number,
    ids?: readonly Hex[],
  ): AsyncGenerator<{ readonly from: number; readonly posts: readonly Post[] }> {
    const { network, past } = this.market;
    const topics = ids === undefined ? [topicOf("JobPosted")] : [topicOf("JobPosted"), ids];
    const filter = { addresses: [network.contracts.JobRegistry], topics };
    for await (const piece of past.logs(filter, { from, to, backwards: true }, this.#span)) {
      const posts: Post[] = [];
      for (const event of eventsIn(piece.logs, network, this.strays)) {
        if (event.name !== "JobPosted") continue;
        posts.push({ posted: postedOf(event, network), number: small(event.number), previous: small(event.previous) });
      }
      yield { from: piece.from, posts: posts.reverse() };
    }
  }
}

// Return a job as it stands at a later second, if nothing has happened to it since.
export const standingAt = (one: Standing, now: number): Standing => ({
  ...one,
  view: viewOf(one.posted.terms, one.header, one.view.stored, now),
});

// Return how a job stands, as `hearth jobs` says it.
export function labelOfStanding({ partial, header, view }: Standing): StateLabel {
  if (!partial) return labelOf(view);
  const word = stateLabel(header?.waiting === true ? STATE.BLOCKED : STATE.RUNNING);
  return { word, text: word };
}

// Name a job's state, as the JSON of `hearth jobs` does.
export const stateOfStanding = ({ partial, header, view }: Standing): string =>
  partial ? (header?.waiting === true ? "blocked" : "running") : stateOf(view);

// Say what a job came to; an array of many units that has not ended is pending.
export const verdictOfStanding = ({ partial, view }: Standing): Verdict => (partial ? "pending" : verdictOf(view));

const hasEnded = (header: Header): boolean =>
  header.done + header.failed === (header.closed ? header.touched : header.leases);

// How many leases of a job have ended, of how many; those of a closed array that nobody took have.
export function progressOf({ posted, header, view }: Standing): { readonly ended: number; readonly of: number } {
  const of = leasesOf(posted.terms);
  if (header !== null) return { ended: header.done + header.failed + (header.closed ? of - header.touched : 0), of };
  return { ended: view.units[0] !== undefined && isTerminal(view.units[0].state) ? 1 : 0, of };
}
