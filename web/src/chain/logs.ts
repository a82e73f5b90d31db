// Logs of a range of blocks in pieces that halve as providers refuse, and grow again; newest first or oldest first.
//
// Public nodes serve ranges of 10,000 blocks, some of 5, and say so in their own words: any refusal of a range of more
// than one block is taken for "too wide", and so is an answer that is longer than is read. Mirrors hearth/chain/rpc.py `logs`.

import { type Hex, hexNumber } from "../core/bytes";
import { HearthError } from "../core/errors";
import { inOrder, type Log, logsOf } from "../core/logs";
import { type Block, block, lies } from "./answers";
import type { Ask, Said } from "./endpoint";
import { type Rpc, TooMuch } from "./rpc";

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

export interface Range {
  readonly from: number;
  readonly to: number;
  // The newest piece first.
  readonly backwards: boolean;
}

// A block by which a reader says of which chain its logs are.
export type Mark = Pick<Block, "number" | "hash">;

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
// order; with a piece of blocks up to `mark`, if one is given, comes the hash that this block had at the time, undefined
// where the provider does not say: it is asked for in the same request. Throws RPC_UNAVAILABLE, RPC_ERROR where a single block is refused, RPC_LIES for logs that were not asked for.
export async function* pieces(
  rpc: Rpc,
  filter: Filter,
  range: Range,
  span: Span = new Span(),
  mark?: number,
): AsyncGenerator<Piece & { readonly marked: Hex | undefined }> {
  let { from, to } = range;
  while (from <= to) {
    const width = Math.min(span.width, to - from + 1);
    const piece = range.backwards ? { from: to - width + 1, to } : { from, to: from + width - 1 };
    const logs = { method: "eth_getLogs", params: [asked(filter, piece)] };
    const [said, beside] = await answered(rpc, mark === undefined || piece.from > mark ? [logs] : [logs, blockAsk(mark)], width > 1);
    if (said === undefined || !said.ok) {
      if (width === 1) throw new HearthError("RPC_ERROR", `the RPC refuses logs: ${said?.message ?? ""}`, "name another RPC");
      span.refused(width);
      continue;
    }
    span.served();
    const marked = mark === undefined ? undefined : blockOf(beside, mark)?.hash;
    yield { ...piece, logs: checked(logsOf(said.value), filter, piece), marked };
    if (range.backwards) to = piece.from - 1;
    else from = piece.to + 1;
  }
}

// What was said to a request; nothing where the answer was too much, and less can be asked for.
async function answered(rpc: Rpc, asks: readonly Ask[], wide: boolean): Promise<readonly Said[]> {
  try {
    return await rpc.ask(asks);
  } catch (error) {
    if (wide && error instanceof TooMuch) return [];
    throw error;
  }
}

export const blockAsk = (number: number): Ask => ({ method: "eth_getBlockByNumber", params: [hexNumber(number), false] });

// The block that was asked for by its number; undefined where the provider has none there, or says anything else.
export function blockOf(said: Said | undefined, number: number): Block | undefined {
  try {
    const found = said?.ok === true ? block(said.value) : undefined;
    return found?.number === number ? found : undefined;
  } catch {
    return undefined;
  }
}

// Say whether a filter asks for a log.
export function fits(log: Log, filter: Filter): boolean {
  return (
    filter.addresses.includes(log.address) &&
    filter.topics.every((wanted, at) => {
      const topic = log.topics[at];
      return wanted === null || (topic !== undefined && (typeof wanted === "string" ? topic === wanted : wanted.includes(topic)));
    })
  );
}

// What eth_getLogs is asked with.
export function asked(filter: Filter, piece: { from: number; to: number }): Record<string, unknown> {
  return {
    address: filter.addresses,
    topics: filter.topics,
    fromBlock: hexNumber(piece.from),
    toBlock: hexNumber(piece.to),
  };
}

// Return logs in chain order. Throws RPC_LIES for one that is beyond filter and range, and for one that is there twice.
export function checked(found: readonly Log[], filter: Filter, piece: { from: number; to: number }): Log[] {
  const seen = new Set<string>();
  for (const one of found) {
    const place = `${one.blockHash} ${one.txHash} ${one.logIndex}`;
    if (!fits(one, filter) || one.blockNumber < piece.from || one.blockNumber > piece.to) throw lies("a log that was not asked for");
    if (seen.has(place)) throw lies("a log twice");
    seen.add(place);
  }
  return inOrder(found);
}
