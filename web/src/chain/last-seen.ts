// What the page showed last of a market's jobs, for a visit to which no provider answers: the logs that posted them, and the
// words of storage at one block. It was looked at when it was read, and is again when it is shown: an id by its terms, a word
// by what contracts write. What it cannot say is what the chain is now.

import { type Hex, hexNumber } from "../core/bytes";
import { type Log, logsOf, Strays } from "../core/logs";
import type { Network } from "../core/network";
import { eventsIn, type Posted, postedOf } from "../core/posted";
import { storedUnit } from "../core/stored";
import { leasesOf } from "../core/types";
import { viewOf } from "../core/view";
import { packAccused, packHeader, packUnit, unpackHeader } from "../core/words";
import type { Block } from "./answers";
import { asSent } from "./cache";
import type { Standing } from "./jobs";
import { fits } from "./logs";
import type { Head, VisitStore } from "./visit-store";

// Under which names it is kept: the list, and each job whose page was open.
export type Kind = "last/jobs" | `last/job/${Hex}`;

// Jobs as they stood at a block, and what happened to a job that was kept alone. `seen` is when the page was synced to that
// block, in milliseconds since the epoch.
export interface LastSeen {
  readonly at: Pick<Block, "number" | "hash" | "time">;
  readonly seen: number;
  readonly jobs: readonly Standing[];
  readonly events: readonly Log[];
}

// Characters of what is kept under one name.
const MOST = 2 ** 20;
// Jobs that are kept alone, those that were looked at last.
export const MOST_ALONE = 32;

export class LastSeenJobs {
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly network: Network,
    private readonly market: Hex,
    private readonly shelf: VisitStore,
  ) {}

  // Keep what is shown, in the place of what was kept under that name; resolves once it is kept, or is not.
  keep(kind: Kind, last: LastSeen): Promise<unknown> {
    // Of a long list the newest jobs are kept, and of a job all or nothing.
    const jobs = [...last.jobs];
    let text = textOf({ ...last, jobs });
    while (text.length > MOST && jobs.length > 1) {
      jobs.length = Math.floor(jobs.length / 2);
      text = textOf({ ...last, jobs });
    }
    if (text.length > MOST || jobs.length === 0) return this.#queue;
    return this.#next(async () => {
      const heads = (await this.shelf.heads(this.market)) ?? [];
      const { number, hash } = last.at;
      const draft = { market: this.market, kind, from: number, to: number, mark: { number, hash } };
      await this.shelf.put(draft, text, heads.filter((head) => head.kind === kind));
      const alone = heads.filter((head) => isAlone(head) && head.kind !== kind).sort((a, b) => b.used - a.used);
      await this.shelf.drop(alone.slice(MOST_ALONE - 1));
    });
  }

  // What was kept under a name; undefined where there is nothing, or anything else than what this page keeps, which is dropped.
  async read(kind: Kind): Promise<LastSeen | undefined> {
    const heads = ((await this.shelf.heads(this.market)) ?? []).filter((head) => head.kind === kind);
    // Other tabs keep theirs beside it.
    for (const head of heads.sort((a, b) => b.mark.number - a.mark.number)) {
      const text = head.size > MOST ? undefined : await this.shelf.text(head);
      const found = text === undefined ? undefined : lastOf(text, head, this.network);
      if (found !== undefined) return found;
      await this.shelf.drop([head]);
    }
    return undefined;
  }

  #next(task: () => Promise<void>): Promise<unknown> {
    this.#queue = this.#queue.then(task).catch(() => undefined);
    return this.#queue;
  }
}

const isAlone = ({ kind }: Head): boolean => kind.startsWith("last/job/");

function textOf({ at, seen, jobs, events }: LastSeen): string {
  const kept = jobs.map(({ posted, header, partial, view }) => ({
    log: asSent(posted.log),
    header: header === null ? null : hexNumber(packHeader(header)),
    partial,
    units: view.stored.map(({ unit, second, accused }) => [packUnit(unit), second, packAccused(accused)].map(hexNumber)),
  }));
  return JSON.stringify({ time: at.time, seen, jobs: kept, events: events.map(asSent) });
}

// The same as it was kept; undefined for anything else.
function lastOf(text: string, { mark }: Head, network: Network): LastSeen | undefined {
  try {
    const { time, seen, jobs, events } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (!isCount(time) || !isCount(seen) || !Array.isArray(jobs)) return undefined;
    const at = { ...mark, time };
    const found = jobs.map((job) => standingOf(job as Readonly<Record<string, unknown>>, at, network));
    const logs = logsOf(events);
    const own = found.length === 1 ? [null, found[0]?.posted.jobId as Hex] : [];
    const mine = { addresses: [network.contracts.JobRegistry], topics: own };
    if (logs.length > 0 && own.length === 0) return undefined;
    if (new Set(found.map(({ posted }) => posted.jobId)).size < found.length) return undefined;
    return logs.every((log) => isUpTo(mark.number)(log) && fits(log, mine)) ? { at, seen, jobs: found, events: logs } : undefined;
  } catch {
    // Whatever it is, a reader does without.
    return undefined;
  }
}

function standingOf(raw: Readonly<Record<string, unknown>>, at: LastSeen["at"], network: Network): Standing {
  const posted = postOf(raw["log"], at.number, network);
  const header = raw["header"] === null ? null : unpackHeader(wordOf(raw["header"]));
  const partial = raw["partial"] === true;
  const units = raw["units"];
  if (!Array.isArray(units) || units.length > leasesOf(posted.terms)) throw new Error("other units than its terms have");
  if (header === null ? units.length !== 1 || partial : units.length !== (partial ? 0 : header.touched)) throw new Error("units without a job");
  const stored = units.map((words: unknown) => {
    const [unit, second, accused] = (words as unknown[]).map(wordOf);
    return storedUnit(unit as bigint, second as bigint, accused as bigint);
  });
  return { posted, header, partial, view: viewOf(posted.terms, header, stored, at.time) };
}

function postOf(raw: unknown, upTo: number, network: Network): Posted {
  const logs = logsOf([raw]);
  for (const event of eventsIn(logs, network, new Strays())) {
    if (event.name === "JobPosted" && logs.every(isUpTo(upTo))) return postedOf(event, network);
  }
  throw new Error("no post of a job");
}

const isUpTo = (number: number) => (log: Log): boolean => log.blockNumber <= number;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function wordOf(value: unknown): bigint {
  if (typeof value !== "string" || !/^0x[0-9a-f]{1,64}$/.test(value)) throw new Error("no word");
  return BigInt(value);
}
