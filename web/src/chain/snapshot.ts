// What a stranger's file tells of a market, compared with the market before any of it is kept.
//
// The books are replayed from the file's logs and, after its last block, from the provider's, up to the newest block: there
// every node has the state, while that of the file's own last block only archives have. So each job must be on chain, each
// unit end as storage says, each lock and credit be what Escrow holds, and the jobs be as many as were posted: what was left
// out and holds money shows as a difference. What happened in between and left nothing behind is looked at by sample.

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";
import type { Last, Part, Snapshot } from "../core/snapshot";
import { unpackPosted } from "../core/words";
import type { Block } from "./answers";
import { DEPTH } from "./cache";
import { blockAsk, blockOf, checked, type Filter, fits, type Piece, pieces, type Range, type Span } from "./logs";
import { Market } from "./market";
import { type Past, toldAnew } from "./past";
import type { Rpc } from "./rpc";
import { type Verdict, verify } from "./verify";

// Blocks that are drawn by chance, and of which the provider is asked for all logs.
export const SAMPLE = 64;

export interface Compared {
  readonly verdict: Verdict;
  // Blocks of the file with logs; how many of them were drawn; of how many the provider said that they hold the same.
  readonly blocks: number;
  readonly drawn: number;
  readonly same: number;
}

// Compare a file with the chain up to its newest block. Throws NOT_FINAL while the file's last block is not deep enough,
// SNAPSHOT_DIFFERS with what differs, and what reading throws.
export async function compareSnapshot(
  market: Market,
  snapshot: Snapshot,
  tell: (block: number) => void,
  draw: (below: number) => number = drawn,
): Promise<Compared> {
  const at = await market.head();
  await requireHeld(market, snapshot.last, at);
  const sample = await compareSample(market, snapshot.parts, draw);
  const own = new Market(market.network, market.rpc, pastOf(snapshot.parts, market.rpc));
  const verdict = await replayed(own, at, tell);
  const [overview] = await market.read(at, market.overview());
  requireAgreement(verdict, unpackPosted(overview.posted).count);
  return { verdict, ...sample };
}

// Refuse what the replay found: any difference, any log without a place, another number of jobs than were posted. Throws
// SNAPSHOT_DIFFERS.
export function requireAgreement({ faults, strays, jobs }: Pick<Verdict, "faults" | "strays" | "jobs">, posted: bigint): void {
  if (faults.length > 0) throw differs(`${faults.slice(0, 3).join("; ")} (${faults.length} in all)`);
  if (strays !== "") throw differs(strays);
  if (posted !== BigInt(jobs)) throw differs(`it tells of ${jobs} jobs, and ${posted} were posted`);
}

// The past of a market as a file tells it, and where it tells nothing, as providers do.
export function pastOf(parts: readonly Part[], rpc: Rpc): Past {
  return {
    ...toldAnew(rpc),
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

// Ask for all logs of some blocks, in one request; a provider that refuses that, or does not know it, compares nothing.
async function compareSample(market: Market, parts: readonly Part[], draw: (below: number) => number): Promise<Omit<Compared, "verdict">> {
  const byBlock = new Map<Hex, Log[]>();
  for (const log of parts.flatMap((part) => part.logs)) {
    const held = byBlock.get(log.blockHash);
    if (held === undefined) byBlock.set(log.blockHash, [log]);
    else held.push(log);
  }
  const all = [...byBlock];
  const some = Array.from({ length: Math.min(SAMPLE, all.length) }, () => all.splice(draw(all.length), 1)).flat();
  if (some.length === 0) return { blocks: 0, drawn: 0, same: 0 };
  const filter = { addresses: Object.values(market.network.contracts), topics: [] };
  const said = await market.rpc.ask(
    some.map(([blockHash]) => ({ method: "eth_getLogs", params: [{ address: filter.addresses, blockHash }] })),
  );
  let same = 0;
  for (const [place, [blockHash, logs]] of some.entries()) {
    const answer = said[place];
    if (answer?.ok !== true) continue;
    const block = logs[0]?.blockNumber ?? 0;
    const there = checked(logsOf(answer.value), filter, { from: block, to: block });
    if (JSON.stringify(there) !== JSON.stringify(logs)) throw differs(`block ${block} (${blockHash}) holds other logs`);
    same += 1;
  }
  return { blocks: byBlock.size, drawn: some.length, same };
}

// A number below another, by chance.
function drawn(below: number): number {
  const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
  return word % below;
}

const differs = (how: string): HearthError =>
  new HearthError("SNAPSHOT_DIFFERS", `the file is not what the chain says: ${how}`, "nothing of it was taken; get it elsewhere");
