// Logs of a range of blocks in pieces that halve as providers refuse, and grow again; newest first or oldest first.
//
// Public nodes serve ranges of 10,000 blocks, some of 5, and say so in their own words: any refusal of a range of more
// than one block is taken for "too wide". Mirrors hearth/chain/rpc.py `logs`.

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";
import { lies } from "./answers";
import type { Rpc } from "./rpc";

export interface Filter {
  readonly addresses: readonly Hex[];
  // As eth_getLogs takes them: null for any, several for any of them.
  readonly topics: readonly (Hex | readonly Hex[] | null)[];
}

export interface Piece {
  readonly from: number;
  readonly to: number;
  readonly logs: readonly Log[];
}

export const MAX_SPAN = 10_000;
const GROW_AFTER = 8;

// The width of pieces that a provider was found to serve, kept from one range to the next.
export class Span {
  width = MAX_SPAN;
  #smooth = 0;

  refused(width: number): void {
    this.width = Math.max(1, Math.floor(width / 2));
    this.#smooth = 0;
  }

  served(): void {
    this.#smooth += 1;
    if (this.#smooth < GROW_AFTER) return;
    this.width = Math.min(MAX_SPAN, 2 * this.width);
    this.#smooth = 0;
  }
}

// Yield every piece of from..to, both included: the newest first where `backwards`. Within a piece logs are in chain
// order. Throws RPC_UNAVAILABLE, RPC_ERROR where a single block is refused, RPC_LIES for logs that were not asked for.
export async function* pieces(
  rpc: Rpc,
  filter: Filter,
  range: { readonly from: number; readonly to: number; readonly backwards: boolean },
  span: Span = new Span(),
): AsyncGenerator<Piece> {
  let { from, to } = range;
  while (from <= to) {
    const width = Math.min(span.width, to - from + 1);
    const piece = range.backwards ? { from: to - width + 1, to } : { from, to: from + width - 1 };
    const [said] = await rpc.ask([{ method: "eth_getLogs", params: [asked(filter, piece)] }]);
    if (said === undefined || !said.ok) {
      if (width === 1) throw new HearthError("RPC_ERROR", `the RPC refuses logs: ${said?.message ?? ""}`, "name another RPC");
      span.refused(width);
      continue;
    }
    yield { ...piece, logs: checked(logsOf(said.value), filter, piece) };
    span.served();
    if (range.backwards) to = piece.from - 1;
    else from = piece.to + 1;
  }
}

function asked(filter: Filter, piece: { from: number; to: number }): Record<string, unknown> {
  return {
    address: filter.addresses,
    topics: filter.topics,
    fromBlock: `0x${piece.from.toString(16)}`,
    toBlock: `0x${piece.to.toString(16)}`,
  };
}

function checked(found: readonly Log[], filter: Filter, piece: { from: number; to: number }): Log[] {
  const seen = new Set<string>();
  for (const one of found) {
    const place = `${one.blockHash} ${one.logIndex}`;
    const fits = filter.topics.every((wanted, at) => {
      const topic = one.topics[at];
      return wanted === null || (topic !== undefined && (typeof wanted === "string" ? topic === wanted : wanted.includes(topic)));
    });
    if (!filter.addresses.includes(one.address) || !fits || one.blockNumber < piece.from || one.blockNumber > piece.to) {
      throw lies("a log that was not asked for");
    }
    if (seen.has(place)) throw lies("a log twice");
    seen.add(place);
  }
  return [...found].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex);
}
