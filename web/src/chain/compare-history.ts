// What a stranger's file tells of a market, compared with the market before any of it is kept.
//
// The books are replayed from the file's logs and, after its last block, from the provider's, up to the newest block: there
// every node has the state, while that of the file's own last block only archives have. So each job must be on chain, each
// unit end as storage says, each lock and credit be what Escrow holds, and the jobs be as many as were posted: what was left
// out and holds money shows as a difference. What happened in between and left nothing behind is looked at by sample: some
// blocks of the file with logs, and some stretches of the chain wherever they lie, where the file may have left logs out. Of
// contracts that nobody replays nothing is taken.

import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";
import type { Network } from "../core/network";
import type { Last, Part, HistoryFile } from "../core/history-file";
import { unpackPosted } from "../core/words";
import type { Block } from "./answers";
import { DEPTH } from "./cache";
import { asked, blockAsk, blockOf, checked, type Filter, fits, type Piece, pieces, type Range, Span } from "./logs";
import { Market } from "./market";
import { type LogHistory, logsOfProviders } from "./log-history";
import type { Rpc } from "./rpc";
import { type Verdict, verify } from "./verify";

// Blocks with logs that are drawn by chance, and of which the provider must have the same logs.
export const SAMPLE = 64;
// Stretches of blocks that are drawn by chance, each as wide as the provider serves: logs that were left out are in one of
// them as likely as those that are there.
const STRETCHES = 8;

export interface Compared {
  readonly verdict: Verdict;
  // What may be kept: all parts, with the logs of the contracts that were replayed alone.
  readonly parts: readonly Part[];
  // Blocks of these parts with logs, and how many of them were drawn.
  readonly blocks: number;
  readonly drawn: number;
  // All blocks of these parts, and how many lie in the stretches that were drawn.
  readonly range: number;
  readonly stretched: number;
}

// The logs that a replay proves, as far as it does: those of the contracts whose books it keeps.
export function provedBy({ contracts: { Escrow, JobRegistry } }: Network): Filter {
  return { addresses: [Escrow, JobRegistry], topics: [] };
}

// Compare a file with the chain up to its newest block. Throws NOT_FINAL while the file's last block is not deep enough,
// SNAPSHOT_DIFFERS with what differs, RPC_ERROR where the provider does not say, and what reading throws.
export async function compareHistory(
  market: Market,
  history: HistoryFile,
  tell: (block: number) => void,
  draw: (below: number) => number = drawn,
): Promise<Compared> {
  const at = await market.head();
  await requireHeld(market, history.last, at);
  const filter = provedBy(market.network);
  const parts = history.parts.map(({ from, to, logs }) => ({ from, to, logs: logs.filter((log) => fits(log, filter)) }));
  const sample = { ...(await compareBlocks(market, parts, draw)), ...(await compareStretches(market, parts, draw)) };
  const own = new Market(market.network, market.rpc, pastOf(parts, market.rpc));
  const verdict = await replayed(own, at, tell);
  const [overview] = await market.read(at, market.overview());
  requireAgreement(verdict, unpackPosted(overview.posted).count);
  return { verdict, parts, ...sample };
}

// Refuse what the replay found: any difference, any log without a place, another number of jobs than were posted. Throws
// SNAPSHOT_DIFFERS.
export function requireAgreement({ faults, strays, jobs }: Pick<Verdict, "faults" | "strays" | "jobs">, posted: bigint): void {
  if (faults.length > 0) throw differs(`${faults.slice(0, 3).join("; ")} (${faults.length} in all)`);
  if (strays !== "") throw differs(strays);
  if (posted !== BigInt(jobs)) throw differs(`it tells of ${jobs} jobs, and ${posted} were posted`);
}

// The past of a market as a file tells it, and where it tells nothing, as providers do.
export function pastOf(parts: readonly Part[], rpc: Rpc): LogHistory {
  return {
    ...logsOfProviders(rpc),
    async *logs(filter: Filter, range: Range, span: Span): AsyncGenerator<Piece> {
      const steps = [...stepsOf(parts, range)];
      for (const { part, ...step } of range.backwards ? steps.reverse() : steps) {
        if (part === undefined) yield* pieces(rpc, filter, { ...range, ...step }, span);
        else yield { ...step, logs: part.logs.filter((log) => fits(log, filter) && log.blockNumber >= step.from && log.blockNumber <= step.to) };
      }
    },
  };
}

// ---- inside ----

function* stepsOf(parts: readonly Part[], { from, to }: Range): Generator<{ from: number; to: number; part: Part | undefined }> {
  let at = from;
  for (const part of parts) {
    if (part.to < at || part.from > to) continue;
    if (part.from > at) yield { from: at, to: part.from - 1, part: undefined };
    const begin = Math.max(at, part.from);
    const end = Math.min(to, part.to);
    yield { from: begin, to: end, part };
    at = end + 1;
  }
  if (at <= to) yield { from: at, to, part: undefined };
}

async function requireHeld(market: Market, last: Last, at: Block): Promise<void> {
  if (last.number > at.number - DEPTH) {
    const why = `the file goes up to block ${last.number}, and the chain is at ${at.number}: a block is final under ${DEPTH} others`;
    throw new HearthError("NOT_FINAL", why, "take it again later");
  }
  const [said] = await market.rpc.ask([blockAsk(last.number)]);
  const found = blockOf(said, last.number);
  if (found === undefined) throw new HearthError("RPC_ERROR", `the RPC does not say what block ${last.number} is`, "name another RPC");
  if (found.hash !== last.hash) throw differs(`its last block ${last.number} is not the one of this chain`);
}

async function replayed(market: Market, at: Block, tell: (block: number) => void): Promise<Verdict> {
  try {
    return await verify(market, at, tell);
  } catch (error) {
    // The file's logs and the provider's answers contradict each other; whose fault it is cannot be told.
    if (error instanceof HearthError && error.code === "RPC_LIES") throw differs(error.message);
    throw error;
  }
}

// Ask for all logs of some blocks with logs, by number: the hash that a file gives to a block is as made up as all else may be.
async function compareBlocks(
  market: Market,
  parts: readonly Part[],
  draw: (below: number) => number,
): Promise<Pick<Compared, "blocks" | "drawn">> {
  const filter = provedBy(market.network);
  const byBlock = new Map<number, Log[]>();
  for (const { logs } of parts) {
    for (const log of logs) {
      const held = byBlock.get(log.blockNumber);
      if (held === undefined) byBlock.set(log.blockNumber, [log]);
      else held.push(log);
    }
  }
  const all = [...byBlock.keys()];
  const blocks = all.length;
  const some = Array.from({ length: Math.min(SAMPLE, blocks) }, () => takeOut(all, draw(all.length)));
  if (some.length === 0) return { blocks, drawn: 0 };
  const said = await market.rpc.ask(some.map((number) => ({ method: "eth_getLogs", params: [asked(filter, { from: number, to: number })] })));
  for (const [place, number] of some.entries()) {
    const answer = said[place];
    if (answer?.ok !== true) {
      const why = `the RPC does not say what block ${number} of the file holds: ${answer?.message ?? "no answer"}`;
      throw new HearthError("RPC_ERROR", why, "nothing of it was taken; name another RPC");
    }
    requireSame(checked(logsOf(answer.value), filter, { from: number, to: number }), byBlock.get(number) ?? []);
  }
  return { blocks, drawn: some.length };
}

// Ask for all logs of some stretches from any block of the file, with logs or without: in turn onwards and backwards, so that the
// first and the last blocks are met too.
async function compareStretches(
  market: Market,
  parts: readonly Part[],
  draw: (below: number) => number,
): Promise<Pick<Compared, "range" | "stretched">> {
  const filter = provedBy(market.network);
  const range = parts.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  const span = new Span();
  const seen: { from: number; to: number }[] = [];
  for (let count = 0; count < STRETCHES && range > 0; count += 1) {
    const at = blockAt(parts, draw(range));
    if (seen.some((one) => one.from <= at && at <= one.to)) continue;
    const backwards = count % 2 === 1;
    const first = Math.max(parts[0]?.from ?? at, ...seen.filter((one) => one.to < at).map((one) => one.to + 1));
    const last = Math.min(parts.at(-1)?.to ?? at, ...seen.filter((one) => one.from > at).map((one) => one.from - 1));
    const free = backwards ? { from: first, to: at } : { from: at, to: last };
    for await (const { marked: _, ...piece } of pieces(market.rpc, filter, { ...free, backwards }, span)) {
      // Between parts the file tells nothing.
      const inside = (one: Pick<Part, "from" | "to">): boolean => one.from <= piece.to && one.to >= piece.from;
      const covering = parts.filter(inside);
      const there = piece.logs.filter((log) => covering.some((one) => one.from <= log.blockNumber && log.blockNumber <= one.to));
      const told = covering.flatMap((one) => one.logs.filter((log) => log.blockNumber >= piece.from && log.blockNumber <= piece.to));
      requireSame(there, told);
      seen.push({ from: piece.from, to: piece.to });
      break;
    }
  }
  const overlap = (one: { from: number; to: number }): number =>
    parts.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to, one.to) - Math.max(from, one.from) + 1), 0);
  return { range, stretched: seen.reduce((sum, one) => sum + overlap(one), 0) };
}

// The block of the file that so many others come before.
function blockAt(parts: readonly Part[], place: number): number {
  let before = place;
  for (const { from, to } of parts) {
    if (before <= to - from) return from + before;
    before -= to - from + 1;
  }
  return parts[0]?.from ?? 0;
}

// Logs of the same blocks in their order, as the provider and as the file have them, hashes of their blocks and all; a file does
// not hold its transactions' places. Throws SNAPSHOT_DIFFERS.
function requireSame(there: readonly Log[], told: readonly Log[]): void {
  const textOf = (log: Log | undefined): string => JSON.stringify({ ...log, txIndex: undefined });
  for (let place = 0; place < Math.max(there.length, told.length); place += 1) {
    const [real, claimed] = [there[place], told[place]];
    if (textOf(real) === textOf(claimed)) continue;
    const block = Math.min(...[real, claimed].flatMap((log) => (log === undefined ? [] : [log.blockNumber])));
    throw differs(`block ${block} holds other logs`);
  }
}

// Take one item out of a list, in a time that does not hang on how long it is.
function takeOut(items: number[], place: number): number {
  const found = items[place] as number;
  items[place] = items.at(-1) as number;
  items.pop();
  return found;
}

// A number below another, by chance.
function drawn(below: number): number {
  const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
  return word % below;
}

const differs = (how: string): HearthError =>
  new HearthError("SNAPSHOT_DIFFERS", `the file is not what the chain says: ${how}`, "nothing of it was taken; get it elsewhere");
