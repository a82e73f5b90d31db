// The past of a market: its logs and the seconds of its blocks, from its providers, or from what an earlier visit kept of
// what they said (cache.ts). Readers ask the past and need not know which.

import type { Hex } from "../core/bytes";
import type { Block } from "./answers";
import { type Filter, type Mark, type Piece, pieces, type Range, type Span } from "./logs";
import type { Rpc } from "./rpc";

export interface LogHistory {
  // Yield every piece of a range, as `pieces` does; a piece may be wider than any provider serves.
  logs(filter: Filter, range: Range, span: Span): AsyncGenerator<Piece>;
  // The seconds of those blocks that are known; `keepTimes` makes more of them known.
  times(blocks: readonly Hex[]): Promise<ReadonlyMap<Hex, number>>;
  keepTimes(times: ReadonlyMap<Hex, number>): void;
  // Hear of the newest block, and whether the chain has dropped any that was heard of before.
  moved(head: Block, reorged: boolean): void;
  // Keep what was not read here but compared with the chain, up to a block that it holds; return how many blocks are kept of it.
  take(filter: Filter, found: readonly Piece[], mark: Mark): Promise<number>;
  // Forget what was kept of this market; say whether anything that was read came from there.
  forget(): Promise<boolean>;
}

// The past as providers tell it, of which nothing is kept.
export function logsOfProviders(rpc: Rpc): LogHistory {
  return {
    logs: (filter, range, span) => pieces(rpc, filter, range, span),
    times: async () => new Map<Hex, number>(),
    keepTimes: () => undefined,
    moved: () => undefined,
    take: async () => 0,
    forget: async () => false,
  };
}
