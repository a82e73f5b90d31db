// Jobs as they are stored: what stands first of each, and the touched units of arrays.

import type { Hex } from "../core/bytes";
import type { UnitStatus } from "../core/replay";
import type { Posted } from "../core/posted";
import { jobOf, resumedFrom, type StoredUnit, storedLease } from "../core/stored";
import type { Header } from "../core/types";
import { type Block, lies } from "./answers";
import { PAGE, type Status } from "./lens";
import type { Market } from "./market";

// Pages of Lens that one request carries.
const AT_ONCE = 4;

export interface ArrayJob {
  readonly job: Hex;
  readonly header: Header;
}

// A unit with the checkpoints that its attempt was resumed from, whose words stand newest first.
export const statusOf = (view: StoredUnit, kept: readonly bigint[]): UnitStatus => ({
  view,
  kept: resumedFrom(view.unit.resume, kept),
});

// A job with its word and those of its first unit.
export interface Row {
  readonly posted: Posted;
  readonly status: Status;
  // An array's header, null for a one-lease job.
  readonly header: Header | null;
}

// Read jobs page by page, each of one request. Throws RPC_LIES for a job that the chain lacks.
export async function* readRows(market: Market, posted: readonly Posted[], at: Block): AsyncGenerator<Row[]> {
  for (let start = 0; start < posted.length; start += PAGE) {
    const some = posted.slice(start, start + PAGE);
    const [page] = await market.read(at, market.status(some.map((one) => ({ job: one.jobId, index: 0 }))));
    yield some.map((one, place) => {
      const status = page[place];
      if (status === undefined || status.job === 0n) throw lies(`a log posts job ${one.jobId}, which is not on chain`);
      return { posted: one, status, header: jobOf(status.job).header };
    });
  }
}

// The arrays among jobs.
export const arraysOf = (rows: readonly Row[]): ArrayJob[] =>
  rows.flatMap(({ posted: { jobId: job }, header }) => (header === null ? [] : [{ job, header }]));

// Read the touched units of several arrays, by job, their lapses not applied: few requests for many small ones.
export async function readLeases(market: Market, arrays: readonly ArrayJob[], at: Block): Promise<Map<Hex, UnitStatus[]>> {
  const found = new Map<Hex, UnitStatus[]>(arrays.map(({ job }) => [job, []]));
  const places = arrays.flatMap(({ job, header }) =>
    Array.from({ length: header.touched }, (_, index) => ({ job, index, header })),
  );
  for (let start = 0; start < places.length; start += AT_ONCE * PAGE) {
    const pages = Array.from({ length: AT_ONCE }, (_, page) => places.slice(start + page * PAGE, start + (page + 1) * PAGE));
    const some = pages.filter((page) => page.length > 0);
    const read = await market.read(at, ...some.map((page) => market.status(page)));
    some.flat().forEach(({ job, index, header }, place) => {
      const one = read[Math.floor(place / PAGE)]?.[place % PAGE];
      if (one === undefined) return;
      found.get(job)?.push(statusOf(storedLease(header, index, one.word, one.second, one.accused), one.kept));
    });
  }
  return found;
}
