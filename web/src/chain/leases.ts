// The touched units of arrays as they are stored.

import type { Hex } from "../core/bytes";
import type { UnitStatus } from "../core/history";
import { resumedFrom, type StoredUnit, storedLease } from "../core/stored";
import type { Header } from "../core/types";
import type { Block } from "./answers";
import { type Market, PAGE } from "./market";

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
