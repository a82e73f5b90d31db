// A file of a market's history, as `hearth net snapshot` writes it (hearth/client/audit/history_file.py): its first line says whose logs
// follow, each other one holds those of a range of blocks. Whoever wrote it is a stranger: nothing here believes it.

import { CONTRACTS } from "../generated/contracts";
import { type Hex, hexNumber } from "./bytes";
import { HearthError } from "./errors";
import { type Log, logsOf } from "./logs";
import type { Network } from "./network";

export const FORM = "hearth.history/1";

// Lines that a file has at most: each may become an entry of what the browser keeps. A writer's are longer than this needs.
export const MAX_LINES = 4_096;

// The last block whose logs are in the file.
export interface Last {
  readonly number: number;
  readonly hash: Hex;
}

// The logs of all blocks from one to another.
export interface Part {
  readonly from: number;
  readonly to: number;
  readonly logs: readonly Log[];
}

// What a file holds: its parts in the order of the chain, and how many of its lines are none.
export interface HistoryFile {
  readonly last: Last;
  readonly parts: readonly Part[];
  readonly malformed: number;
}

type Fields = Readonly<Record<string, unknown>>;

const HINT = "hearth net snapshot writes one of this market";

// Read a file by its lines. Throws BAD_SNAPSHOT for another form and for too many lines, WRONG_MARKET for the file of another market or chain.
export async function readHistoryFile(lines: AsyncIterable<string>, network: Network): Promise<HistoryFile> {
  let last: Last | undefined;
  let malformed = 0;
  const parts: Part[] = [];
  for await (const line of lines) {
    if (last === undefined) {
      last = lastOf(line, network);
      continue;
    }
    if (parts.length + malformed >= MAX_LINES) throw new HearthError("BAD_SNAPSHOT", `the file has more than ${MAX_LINES} parts`, HINT);
    const part = partOf(line, network, last);
    // Each block is in one part: what is there again, or before what was there, has no place.
    if (part === undefined || part.from <= (parts.at(-1)?.to ?? -1)) malformed += 1;
    else parts.push(part);
  }
  if (last === undefined) throw new HearthError("BAD_SNAPSHOT", "the file is empty", HINT);
  return { last, parts, malformed };
}

function lastOf(line: string, network: Network): Last {
  const head = fields(parsed(line));
  if (head["schema"] !== FORM) throw new HearthError("BAD_SNAPSHOT", `the file is not of the form ${FORM}`, HINT);
  const contracts = fields(head["contracts"]);
  const own =
    head["chain_id"] === Number(network.chainId) &&
    head["genesis_hash"] === network.genesisHash &&
    head["deploy_block"] === network.deployBlock &&
    Object.keys(contracts).length === CONTRACTS.length &&
    CONTRACTS.every((name) => lower(contracts[name]) === network.contracts[name]);
  if (!own) throw new HearthError("WRONG_MARKET", `the file is of another market or chain than ${network.name}`, HINT);
  const { block, block_hash: hash } = head;
  if (!isCount(block) || block < network.deployBlock || !isHash(hash)) {
    throw new HearthError("BAD_SNAPSHOT", "the file names no block as its last", HINT);
  }
  return { number: block, hash };
}

// One line as a range with its logs; undefined for what is malformed in any place.
function partOf(line: string, network: Network, last: Last): Part | undefined {
  const { from, to, blocks } = fields(parsed(line));
  if (!isCount(from) || !isCount(to) || !Array.isArray(blocks)) return undefined;
  if (from < network.deployBlock || from > to || to > last.number) return undefined;
  const raw: unknown[] = [];
  let before = from - 1;
  for (const block of blocks as readonly unknown[]) {
    const [number, hash, logs] = list(block);
    if (!isCount(number) || !isHash(hash) || !Array.isArray(logs)) return undefined;
    if (number <= before || number > to || (number === last.number && hash !== last.hash)) return undefined;
    before = number;
    const turns = turnsOf(logs);
    if (turns === undefined) return undefined;
    for (const [place, log] of (logs as readonly unknown[]).entries()) {
      const [at, txHash, name, topics, data] = list(log);
      const contract = CONTRACTS.find((one) => one === name);
      if (!isCount(at) || contract === undefined) return undefined;
      const where = { blockNumber: hexNumber(number), blockHash: hash, transactionHash: txHash, transactionIndex: turns[place], logIndex: hexNumber(at) };
      raw.push({ address: network.contracts[contract], topics, data, ...where });
    }
  }
  try {
    return { from, to, logs: logsOf(raw) };
  } catch {
    return undefined;
  }
}

// The turns of the transactions of one block's logs, one for each log and none where log indexes alone tell the order: there are
// chains that count them in each transaction. Undefined for logs that are in no chain's order.
function turnsOf(logs: readonly unknown[]): readonly string[] | undefined {
  const seen = new Set<string>();
  const turns: string[] = [];
  let [tx, index, startsAnew]: [string | undefined, number, boolean] = [undefined, -1, false];
  for (const log of logs) {
    const [at, hash] = list(log);
    const own = lower(hash);
    if (!isCount(at) || (own === tx ? at <= index : seen.has(own))) return undefined;
    startsAnew ||= at <= index;
    seen.add(own);
    turns.push(hexNumber(seen.size - 1));
    [tx, index] = [own, at];
  }
  return startsAnew ? turns : [];
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const fields = (value: unknown): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const lower = (value: unknown): string => (typeof value === "string" ? value.toLowerCase() : "");
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isHash = (value: unknown): value is Hex => typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
