// One market over the providers of a chain: what it is checked for, and what is read of it. Mirrors
// hearth/market/reads.py.
//
// Every view names its block by hash, so that what one screen shows is of one block. What no contract writes is
// RPC_LIES, whoever sent it.

import type { Abi } from "viem";
import { decodeFunctionResult, encodeFunctionData, keccak256 } from "viem/utils";

import { fromHex, type Hex, hexNumber } from "../core/bytes";
import { HearthError } from "../core/errors";
import { CONTRACTS } from "../generated/contracts";
import { JOB_REGISTRY_READS } from "../generated/reads/job-registry";
import { LENS_READS } from "../generated/reads/lens";
import { ZERO_HASH } from "../generated/bounds";
import type { Network } from "../core/network";
import { refusalIn } from "../core/revert";
import { jobIdOfWords } from "../core/terms";
import type { Node } from "../core/types";
import { type TermsWords, unpackNodeState, unpackOffer } from "../core/words";
import { type Log, logsOf } from "../core/logs";
import { small } from "../core/numbers";
import { amount, type Block, block, hexOf, lies, type Receipt, receipt } from "./answers";
import type { Ask, Said } from "./endpoint";
import { type Past, toldAnew } from "./past";
import { resultOf, type Rpc } from "./rpc";

// Entries that Lens answers in one call.
export const PAGE = 256;

// A call of a view: to which contract, its data, and how its answer reads.
export interface View<T> {
  readonly to: Hex;
  readonly data: Hex;
  readonly label: string;
  read(data: Hex): T;
}

export interface Overview {
  readonly chainId: bigint;
  readonly number: number;
  readonly time: number;
  readonly asset: Hex;
  readonly held: bigint;
  readonly tracked: bigint;
  readonly posted: bigint;
  readonly totals: bigint;
  readonly policy: bigint;
  readonly previousPolicy: bigint;
  readonly previousUntil: number;
  readonly postsPausedUntil: number;
  readonly registrationsPausedUntil: number;
  readonly minimumStake: bigint;
}

// A unit as stored: its job's own word, its word, its auxiliary slot, its last decline, the checkpoints it resumed from.
export interface Status {
  readonly job: bigint;
  readonly word: bigint;
  readonly second: bigint;
  readonly accused: bigint;
  readonly kept: readonly bigint[];
}

// What came since a block: the newest block, whether a contract of the market may have logged anything meanwhile, and
// whether the chain has lost the block before.
export interface Since {
  readonly head: Block;
  readonly changed: boolean;
  readonly reorged: boolean;
}

// Terms without any, whose id tells with which chain id ids are made.
const NO_TERMS: TermsWords = [0n, ZERO_HASH, 0n, 0n, 0n, 0n, 0n, 0n, ZERO_HASH];

const BY_HASH = "eth_getBlockByHash";
const RECEIPT = "eth_getTransactionReceipt";
// Blocks and receipts that one request asks for.
const AT_ONCE = 100;

export class Market {
  readonly #times = new Map<Hex, number>();
  readonly #receipts = new Map<Hex, Receipt>();

  constructor(
    readonly network: Network,
    readonly rpc: Rpc,
    readonly past: Past = toldAnew(rpc),
  ) {}

  // Refuse a wrong chain, other code than the network file names, and contracts that make ids otherwise than it says.
  // One round trip, which brings the newest block along. Throws WRONG_CHAIN, WRONG_CONTRACTS, RPC_UNAVAILABLE.
  async check(): Promise<Block> {
    const { network } = this;
    const ids = jobIdView(network);
    const rules = rulesView(network);
    const said = await this.rpc.ask([
      { method: "eth_chainId", params: [] },
      { method: "eth_getBlockByNumber", params: ["0x0", false] },
      askOf(ids, "latest"),
      askOf(rules, "latest"),
      { method: "eth_getBlockByNumber", params: ["latest", false] },
      ...CONTRACTS.map((name) => ({ method: "eth_getCode", params: [network.contracts[name], "latest"] })),
    ]);
    const served = amount(resultOf(said[0], "eth_chainId"), "a chain id");
    if (served !== network.chainId || block(resultOf(said[1], "block 0")).hash !== network.genesisHash) {
      throw new HearthError(
        "WRONG_CHAIN",
        `the RPC serves chain ${served} with another genesis or id than network ${network.name} (${network.chainId})`,
        "name another RPC",
      );
    }
    CONTRACTS.forEach((name, at) => {
      const code = hexOf(resultOf(said[5 + at], "eth_getCode"), "code");
      const wanted = network.codeHashes.get(name);
      if (code === "0x" || (wanted !== undefined && keccak256(fromHex(code)) !== wanted)) {
        throw wrong(`${name} at ${network.contracts[name]} holds other code than network ${network.name} names`);
      }
    });
    if (answerOf(ids, said[2]) !== jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, NO_TERMS)) {
      throw wrong(`JobRegistry of network ${network.name} makes ids with another chain id than ${network.jobChainId}`);
    }
    if (answerOf(rules, said[3]) !== network.contracts.Rules) {
      throw wrong(`JobRegistry of network ${network.name} goes by other Rules than the network file names`);
    }
    return block(resultOf(said[4], "the newest block"));
  }

  // The newest block.
  async head(): Promise<Block> {
    return block(await this.rpc.one("eth_getBlockByNumber", ["latest", false]));
  }

  // Look what came since a block, in one round trip. What cannot be known counts as a change, and where `withLogs` is
  // false, since it may be much, nobody asks.
  async since(before: Block, withLogs = true): Promise<Since> {
    const filter = { address: Object.values(this.network.contracts), fromBlock: hexNumber(before.number + 1), toBlock: "latest" };
    const said = await this.rpc.ask([
      { method: "eth_getBlockByNumber", params: ["latest", false] },
      { method: "eth_getBlockByNumber", params: [hexNumber(before.number), false] },
      ...(withLogs ? [{ method: "eth_getLogs", params: [filter] }] : []),
    ]);
    const head = block(resultOf(said[0], "the newest block"));
    const kept = said[1]?.ok === true && said[1].value !== null && block(said[1].value).hash === before.hash;
    const reorged = !kept || head.number < before.number;
    if (head.hash === before.hash) return { head, changed: false, reorged: false };
    const quiet = said[2]?.ok === true && logsOf(said[2].value).length === 0;
    return { head, changed: reorged || !quiet, reorged };
  }

  // Run a reading that finds out by itself whether logs are missing or wrong: before it accuses anybody over what was kept
  // of an earlier visit, that is forgotten, and it is run again.
  async sure<T>(read: () => Promise<T>, accuses: (found: T) => boolean = () => false): Promise<T> {
    try {
      const found = await read();
      if (!accuses(found) || !(await this.#forget())) return found;
    } catch (error) {
      if (!(error instanceof HearthError) || error.code !== "RPC_LIES" || !(await this.#forget())) throw error;
    }
    return read();
  }

  #forget(): Promise<boolean> {
    this.#times.clear();
    return this.past.forget();
  }

  // Return the second of each block, and what each log's transaction came to; both are kept. A transaction that a reorg
  // has put into another block is asked for again. Throws RPC_ERROR where the provider has one of them no more.
  async about(
    blocks: readonly Hex[],
    logs: readonly Log[],
  ): Promise<{ readonly times: ReadonlyMap<Hex, number>; readonly receipts: ReadonlyMap<Hex, Receipt> }> {
    const places = new Map(logs.map((log) => [log.txHash, log.blockHash]));
    const untold = [...new Set(blocks)].filter((one) => !this.#times.has(one));
    if (untold.length > 0) for (const [hash, time] of await this.past.times(untold)) this.#times.set(hash, time);
    const asks = [
      ...untold.filter((one) => !this.#times.has(one)).map((hash) => [BY_HASH, hash] as const),
      ...[...places]
        .filter(([hash, place]) => this.#receipts.get(hash)?.blockHash !== place)
        .map(([hash]) => [RECEIPT, hash] as const),
    ];
    for (let start = 0; start < asks.length; start += AT_ONCE) {
      const some = asks.slice(start, start + AT_ONCE);
      const said = await this.rpc.ask(
        some.map(([method, hash]) => ({ method, params: method === BY_HASH ? [hash, false] : [hash] })),
      );
      some.forEach(([method, hash], place) => {
        const value = resultOf(said[place], method);
        if (value === null) throw new HearthError("RPC_ERROR", `the RPC does not have ${hash} any more`, "look again");
        if (method === RECEIPT) this.#receipts.set(hash, receipt(value, hash));
        else this.#times.set(hash, named(block(value), hash).time);
      });
    }
    this.past.keepTimes(new Map(untold.map((hash) => [hash, this.#times.get(hash) as number])));
    return { times: this.#times, receipts: this.#receipts };
  }

  // Read several views of one block in one round trip.
  async read<T extends readonly View<unknown>[]>(
    at: Block,
    ...views: T
  ): Promise<{ -readonly [K in keyof T]: T[K] extends View<infer V> ? V : never }> {
    const said = await this.rpc.ask(views.map((view) => askOf(view, { blockHash: at.hash })));
    return views.map((view, place) => answerOf(view, said[place])) as never;
  }

  overview(): View<Overview> {
    return this.#lens("overview", [], (raw) => {
      const of = fields(raw);
      return {
        chainId: big(of["chain_id"]),
        number: small(big(of["number"])),
        time: small(big(of["time"])),
        asset: hexOf(of["asset"], "an asset", 20),
        held: big(of["held"]),
        tracked: big(of["tracked"]),
        posted: big(of["posted"]),
        totals: big(of["totals"]),
        policy: big(of["policy"]),
        previousPolicy: big(of["previous_policy"]),
        previousUntil: small(big(of["previous_until"])),
        postsPausedUntil: small(big(of["posts_paused_until"])),
        registrationsPausedUntil: small(big(of["registrations_paused_until"])),
        minimumStake: big(of["minimum_stake"]),
      };
    });
  }

  // The nodes first .. first + count - 1, fewer where ids end; 256 at most.
  nodes(first: number, count: number): View<Node[]> {
    return this.#lens("nodes", [BigInt(first), BigInt(count)], (raw) => {
      const page = list(raw);
      if (page.length > count) throw lies("more nodes than were asked for");
      return page.map((one, at) => nodeOf(first + at, fields(one)));
    });
  }

  // Each job's own word, 0 for an unknown one; 256 ids at most.
  jobs(ids: readonly Hex[]): View<bigint[]> {
    return this.#lens("jobs", [ids], (raw) => numbers(raw, ids.length));
  }

  // The unit at each place, a job's id and an index; 256 places at most.
  status(places: readonly { readonly job: Hex; readonly index: number }[]): View<Status[]> {
    const asked = places.map(({ job, index }) => ({ job_id: job, index: BigInt(index) }));
    return this.#lens("status", [asked], (raw) => {
      const page = list(raw);
      if (page.length !== places.length) throw lies("another number of units than was asked for");
      return page.map((one) => {
        const of = fields(one);
        const kept = list(of["kept"]).map(big);
        return { job: big(of["job"]), word: big(of["word"]), second: big(of["second"]), accused: big(of["accused"]), kept };
      });
    });
  }

  // What Escrow holds of a controller's under each key, and what each account may withdraw, in base units.
  locks(controller: Hex, keys: readonly Hex[]): View<bigint[]> {
    return this.#lens("locks", [controller, keys], (raw) => numbers(raw, keys.length));
  }

  credits(accounts: readonly Hex[]): View<bigint[]> {
    return this.#lens("credits", [accounts], (raw) => numbers(raw, accounts.length));
  }

  #lens<T>(name: string, args: readonly unknown[], read: (raw: unknown) => T): View<T> {
    return viewOf(this.network.contracts.Lens, LENS_READS, "lens", name, args, read);
  }
}

// A view by its ABI. Whatever its answer holds that `read` cannot take is the provider's doing.
export function viewOf<T>(
  to: Hex,
  abi: Abi,
  contract: string,
  name: string,
  args: readonly unknown[],
  read: (raw: unknown) => T,
): View<T> {
  return {
    to,
    label: `${contract}.${name}`,
    data: encodeFunctionData({ abi, functionName: name, args }),
    read: (data) => read(decodeFunctionResult({ abi, functionName: name, data })),
  };
}

export function askOf(view: View<unknown>, at: unknown): Ask {
  return { method: "eth_call", params: [{ to: view.to, data: view.data }, at] };
}

// The value of a view's answer. Throws REFUSED with the contract's reason, RPC_ERROR, RPC_LIES.
export function answerOf<T>(view: View<T>, said: Said | undefined): T {
  if (said !== undefined && !said.ok) {
    const refusal = refusalIn(said, view.label);
    if (refusal !== null) throw refusal;
  }
  const data = hexOf(resultOf(said, view.label), `the answer of ${view.label}`);
  try {
    return view.read(data);
  } catch (error) {
    if (error instanceof HearthError && error.code === "RPC_LIES") throw error;
    throw lies(`the answer of ${view.label} is none that it gives`);
  }
}

function jobIdView(network: Network): View<Hex> {
  const [submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash] = NO_TERMS;
  const terms = { submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash };
  const to = network.contracts.JobRegistry;
  return viewOf(to, JOB_REGISTRY_READS, "jobs", "job_id_of", [terms], (raw) => hexOf(raw, "a job's id", 32));
}

function rulesView(network: Network): View<Hex> {
  const to = network.contracts.JobRegistry;
  return viewOf(to, JOB_REGISTRY_READS, "jobs", "RULES", [], (raw) => hexOf(raw, "an address", 20));
}

function named(found: Block, hash: Hex): Block {
  if (found.hash !== hash) throw lies("another block than was asked for");
  return found;
}

const ASK_BITS = 80n;

function nodeOf(id: number, of: Record<string, unknown>): Node {
  const next = big(of["next_ask"]);
  return {
    id,
    owner: hexOf(of["owner"], "an owner", 20),
    operator: hexOf(of["operator"], "an operator", 20),
    stake: big(of["stake"]),
    offer: unpackOffer(big(of["offer"])),
    state: unpackNodeState(big(of["hot"])),
    nextAsk: next & ((1n << ASK_BITS) - 1n),
    nextAskAt: small(next >> ASK_BITS),
    exitAt: small(big(of["exit_at"])),
  };
}

function numbers(raw: unknown, count: number): bigint[] {
  const found = list(raw).map(big);
  if (found.length !== count) throw lies("another number of answers than was asked for");
  return found;
}

function list(raw: unknown): readonly unknown[] {
  if (!Array.isArray(raw)) throw lies("an answer that is no list");
  return raw;
}

function fields(raw: unknown): Record<string, unknown> {
  if (typeof raw !== "object" || raw === null) throw lies("an answer without fields");
  return raw as Record<string, unknown>;
}

function big(raw: unknown): bigint {
  if (typeof raw !== "bigint") throw lies("an answer that is no number");
  return raw;
}

function wrong(what: string): HearthError {
  return new HearthError("WRONG_CONTRACTS", what, "use another network file, or name another RPC");
}
