// Every node of a market at one block, in pages of Lens.

import type { Node } from "../core/types";
import { unpack } from "../core/words";
import { WORDS } from "../generated/words";
import type { Block } from "./answers";
import { type Overview, PAGE } from "./lens";
import type { Market } from "./market";

// Pages of Lens that one request carries.
const AT_ONCE = 4;

export interface Fleet {
  readonly at: Block;
  readonly overview: Overview;
  readonly nodes: readonly Node[];
}

// Read the market as a whole and all of its nodes. Throws as `Market.read` does.
export async function readFleet(market: Market, at: Block): Promise<Fleet> {
  // Most markets have one page of nodes: it is asked for with the rest.
  const [overview, first] = await market.read(at, market.overview(), market.nodes(1, PAGE));
  const last = unpack(WORDS.totals, overview.totals).nextId - 1;
  const nodes = [...first];
  for (let start = PAGE + 1; start <= last; start += AT_ONCE * PAGE) {
    const starts = Array.from({ length: AT_ONCE }, (_, page) => start + page * PAGE).filter((one) => one <= last);
    const pages = await market.read(at, ...starts.map((one) => market.nodes(one, PAGE)));
    nodes.push(...pages.flat());
  }
  return { at, overview, nodes };
}
