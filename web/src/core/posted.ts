// A job as its log posted it: its id recomputed, its parents found to be those of its terms. Mirrors `posted_of` and
// `misplaced` of hearth/market/reads.py and hearth/client/reading.py.

import { SENTINEL } from "../generated/bounds";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { type EventNamed, isUnitEvent, type MarketEvent } from "./events";
import type { Log } from "./logs";
import { type Parent, parentsHash, unpackParents } from "./parents";
import { jobIdOfWords } from "./terms";
import { leasesOf, type Terms } from "./types";
import { type TermsWords, unpackTerms } from "./words";

export interface Posted {
  readonly job: Hex;
  readonly terms: Terms;
  readonly packed: TermsWords;
  readonly parents: readonly Parent[];
  // From 1: which job of the market it is, and the block of the one before, 0 for the first.
  readonly number: bigint;
  readonly previous: bigint;
  readonly log: Log;
}

// Return the job that an event posts; `chainId` is that at deployment. Throws RPC_LIES for terms of another job, of
// other parents or of another submitter, BAD_WORD for words that no contract writes.
export function postedOf(event: EventNamed<"JobPosted">, chainId: bigint, registry: Hex): Posted {
  if (jobIdOfWords(chainId, registry, event.terms) !== event.jobId) throw lies(event.jobId, "terms have another id");
  const terms = unpackTerms(event.terms);
  if (parentsHash(event.parents) !== terms.parentsHash) throw lies(event.jobId, "parents are not those of its terms");
  if (terms.submitter !== event.submitter) throw lies(event.jobId, "submitter is not that of its terms");
  const { jobId: job, number, previous, log } = event;
  return { job, terms, packed: event.terms, parents: unpackParents(event.parents), number, previous, log };
}

// Return why an event of a unit is none of the job's, "" for any other event.
export function misplaced(event: MarketEvent, posted: Posted): string {
  if (!isUnitEvent(event)) return "";
  const leases = leasesOf(posted.terms);
  const whole = event.index === SENTINEL;
  if (event.index < BigInt(leases) || (whole && leases > 1)) return "";
  return `job ${event.jobId.slice(0, 14)} has no unit ${whole ? "all" : event.index}`;
}

function lies(job: Hex, what: string): HearthError {
  return new HearthError("RPC_LIES", `the RPC serves a job ${job} whose ${what}`, "name another RPC");
}
