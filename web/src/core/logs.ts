// Logs as a provider sends them, and those that were stepped over. Mirrors `logs` of hearth/chain/answers.py and
// hearth/market/strays.py. A provider is a stranger: what is no log is refused here, before anything reads it.

import { type Hex } from "./bytes";
import { HearthError } from "./errors";

// One log: addresses and hashes in lower case, each topic 32 bytes, its place in the chain.
export interface Log {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly txHash: Hex;
  // The transaction's place among those of its block, where it is told.
  readonly txIndex?: number;
  readonly logIndex: number;
}

const NAMED = 5; // strays that are named
const ADDRESS = /^0x[0-9a-f]{40}$/;
const HASH = /^0x[0-9a-f]{64}$/;
const QUANTITY = /^0x[0-9a-f]{1,14}$/;
const MOST_TOPICS = 4;

// Return what eth_getLogs answered, those that are marked as removed left out. Throws RPC_BROKEN for anything else.
export function logsOf(answer: unknown): Log[] {
  if (!Array.isArray(answer)) throw broken("no list of logs");
  return answer.filter((one) => !isRemoved(one)).map(logOf);
}

function logOf(raw: unknown): Log {
  if (typeof raw !== "object" || raw === null) throw broken("no log");
  const { address, topics, data, blockNumber, blockHash, transactionHash, transactionIndex, logIndex } = raw as Record<string, unknown>;
  if (!Array.isArray(topics) || topics.length > MOST_TOPICS) throw broken("topics that no log has");
  return {
    address: matching(ADDRESS, address, "an address"),
    topics: topics.map((topic) => matching(HASH, topic, "a topic")),
    data: bytes(data),
    blockNumber: quantity(blockNumber),
    blockHash: matching(HASH, blockHash, "a hash"),
    txHash: matching(HASH, transactionHash, "a hash"),
    ...((transactionIndex ?? null) === null ? {} : { txIndex: quantity(transactionIndex) }),
    logIndex: quantity(logIndex),
  };
}

// Logs in the chain's order. There are chains whose log indexes count in each transaction: its own place counts before them, in
// blocks of which every log tells it. A file's logs mostly do not, and may stand beside a provider's.
export function inOrder(logs: readonly Log[]): Log[] {
  const untold = new Set(logs.filter(({ txIndex }) => txIndex === undefined).map(({ blockNumber }) => blockNumber));
  const turn = ({ blockNumber, txIndex = 0 }: Log): number => (untold.has(blockNumber) ? 0 : txIndex);
  return [...logs].sort((a, b) => a.blockNumber - b.blockNumber || turn(a) - turn(b) || a.logIndex - b.logIndex);
}

// What a reader has stepped over: each log once, however often it was read.
export class Strays {
  readonly #first: string[] = [];
  readonly #places = new Set<string>();

  // Where the first of them stand, and why each is a stray.
  get first(): readonly string[] {
    return [...this.#first];
  }

  get count(): number {
    return this.#places.size;
  }

  // Count a log that is stepped over.
  note(log: Log, why: string): void {
    const place = `${log.blockHash}:${log.txHash}:${log.logIndex}`;
    if (this.#places.has(place)) return;
    if (this.count < NAMED) this.#first.push(`log ${log.logIndex} of block ${log.blockNumber}: ${why}`);
    this.#places.add(place);
  }

  // Return what people are told, "" where nothing was stepped over.
  inWords(): string {
    if (this.count === 0) return "";
    const where = "under the market's addresses";
    const many = this.count === 1 ? `a log ${where} is` : `${this.count} logs ${where} are`;
    return `${many} none that its contracts write, and stepped over: ${this.#first.join("; ")}`;
  }
}

function isRemoved(raw: unknown): boolean {
  const removed = typeof raw === "object" && raw !== null ? ((raw as { removed?: unknown }).removed ?? false) : false;
  if (typeof removed !== "boolean") throw broken("a log that may be removed");
  return removed;
}

function matching(form: RegExp, value: unknown, what: string): Hex {
  const text = typeof value === "string" ? value.toLowerCase() : "";
  if (!form.test(text)) throw broken(`no such thing as ${what}`);
  return text as Hex;
}

function bytes(value: unknown): Hex {
  const text = typeof value === "string" ? value.toLowerCase() : "";
  if (text.length % 2 !== 0 || !text.startsWith("0x") || /[^0-9a-f]/.test(text.slice(2))) throw broken("no bytes");
  return text as Hex;
}

function quantity(value: unknown): number {
  const number = typeof value === "string" && QUANTITY.test(value.toLowerCase()) ? Number.parseInt(value, 16) : -1;
  if (!Number.isSafeInteger(number) || number < 0) throw broken("a number beyond reason");
  return number;
}

function broken(what: string): HearthError {
  return new HearthError("RPC_BROKEN", `the RPC serves logs that are none: ${what}`, "hearth doctor");
}
