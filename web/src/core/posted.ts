// Jobs as their logs posted them, and the events of a market among logs. Mirrors events_in and posted_of of
// hearth/market/reads.py and misplaced of hearth/client/reading.py: an id is recomputed from the terms and never
// trusted, and what no contract of the market writes is stepped over and counted, so that no log stops a reader.

import { SENTINEL } from "../generated/bounds";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { decodeOf, type EventNamed, isUnitEvent, type MarketEvent } from "./events";
import type { Log, Strays } from "./logs";
import type { Contract, Network } from "./network";
import { parentsHash, unpackParents } from "./parents";
import { jobIdOfWords } from "./terms";
import { leasesOf, type Terms } from "./types";
import { type TermsWords, unpackTerms } from "./words";

// As much of a network as its events are read by.
export type Market = Pick<Network, "contracts" | "jobChainId">;

// A job as its log posted it, its id recomputed, and the list of its parents found to be the one of its terms.
export interface Posted {
  readonly jobId: Hex;
  readonly terms: Terms;
  readonly packed: TermsWords;
  readonly parents: readonly Hex[];
  readonly log: Log;
}

// Return the job that an event posts. Throws RPC_LIES for terms of another job, BAD_WORD or BAD_PARENTS for none.
export function postedOf(event: EventNamed<"JobPosted">, market: Market): Posted {
  const { jobId, terms: packed, parents, submitter, log } = event;
  const lies = (how: string): HearthError =>
    new HearthError("RPC_LIES", `the RPC serves a job ${jobId} ${how}`, "hearth doctor");
  if (jobIdOfWords(market.jobChainId, market.contracts.JobRegistry, packed) !== jobId) {
    throw lies("whose terms have another id");
  }
  const terms = unpackTerms(packed);
  if (parentsHash(parents) !== terms.parentsHash) throw lies("that waits for other jobs than it was posted for");
  unpackParents(parents);
  if (terms.submitter !== submitter) throw lies("under another submitter than its own");
  return { jobId, terms, packed, parents, log };
}

// Yield the events of the market's contracts among logs, in their order. Logs of others are left out; one under a
// contract's address that it never writes is stepped over too, and counted in `strays`.
export function* eventsIn(logs: Iterable<Log>, market: Market, strays: Strays): Generator<MarketEvent> {
  const names = new Map(Object.entries(market.contracts).map(([name, address]) => [address, name as Contract]));
  for (const log of logs) {
    const name = names.get(log.address);
    const event = name === undefined ? null : eventIn(log, name, market, strays);
    if (event !== null) yield event;
  }
}

// Return why an event of a unit is none of the job's, "" for any other event; undefined is for a job not posted.
export function misplaced(event: MarketEvent, posted: Posted | undefined): string {
  if (!isUnitEvent(event)) return "";
  const job = event.jobId.slice(0, 14);
  if (posted === undefined) return `job ${job} was not posted`;
  const leases = leasesOf(posted.terms);
  if (event.index < BigInt(leases) || (event.index === SENTINEL && leases > 1)) return "";
  return `job ${job} has no unit ${event.index === SENTINEL ? "all" : event.index}`;
}

function eventIn(log: Log, contract: Contract, market: Market, strays: Strays): MarketEvent | null {
  try {
    const event = decodeOf(log, contract);
    if (event.name === "JobPosted") postedOf(event, market);
    return event;
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    strays.note(log, error.message);
    return null;
  }
}
