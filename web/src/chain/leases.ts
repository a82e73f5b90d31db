// The touched units of an array as they are stored.

import type { Posted } from "../core/posted";
import { type StoredUnit, storedLease } from "../core/stored";
import type { Header } from "../core/types";
import type { Block } from "./answers";
import { type Market, PAGE } from "./market";

// Read them in pages of Lens, their lapses not applied.
export async function readLeases(market: Market, posted: Posted, header: Header, at: Block): Promise<StoredUnit[]> {
  const stored: StoredUnit[] = [];
  for (let start = 0; start < header.touched; start += PAGE) {
    const count = Math.min(PAGE, header.touched - start);
    const places = Array.from({ length: count }, (_, place) => ({ job: posted.jobId, index: start + place }));
    const [page] = await market.read(at, market.status(places));
    page.forEach((one, place) => stored.push(storedLease(header, start + place, one.word, one.second, one.accused)));
  }
  return stored;
}
