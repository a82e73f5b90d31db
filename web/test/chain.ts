// A provider in memory whose chain is the one of the vectors `books`: real logs of real contracts, and what storage
// says in the end. A test makes it lie by changing what it answers.

import { readFileSync } from "node:fs";

import { decodeFunctionData, encodeFunctionResult, keccak256 } from "viem/utils";

import type { Fetch } from "../src/chain/endpoint";
import { Market } from "../src/chain/market";
import { rpcOf } from "../src/chain/rpc";
import { fromHex, type Hex, hexNumber } from "../src/core/bytes";
import type { Network, NodeParameter } from "../src/core/network";
import { jobIdOfWords } from "../src/core/terms";
import { pack, type TermsWords } from "../src/core/words";
import { JOB_REGISTRY_READS } from "../src/generated/reads/job-registry";
import { LENS_READS } from "../src/generated/reads/lens";
import { NODE_REGISTRY_READS } from "../src/generated/reads/node-registry";
import { CODES, CONTRACTS, NODE_PARAMETERS } from "../src/generated/contracts";
import { WORDS } from "../src/generated/words";
import { type Brief, hashOf, type Life, livesOf, txOf } from "./lives";

export { hashOf, txOf };

export interface Told extends Life {
  readonly jobs: readonly {
    readonly job: Hex;
    readonly header: string | null;
    readonly units: readonly { readonly words: readonly [string, string, string] }[];
    readonly facts: {
      readonly state: string;
      readonly verdict: string;
      readonly tally: Readonly<Record<string, number>>;
    };
  }[];
}

export const told = livesOf<Told>()["native"] as Told;
const POSTED = "0x6bbbad1f5b";

export type Params = readonly unknown[];
// Changes an answer: the method, its parameters, what is true.
export type Lie = (method: string, params: Params, result: unknown) => unknown;

export const HEAD = Math.max(...told.logs.map(([, , , block]) => block)) + 3;
// The code of a real contract, and immutables behind it.
const codeOf = (address: unknown): Hex => {
  const name = CONTRACTS.find((one) => told.contracts[one] === address) as (typeof CONTRACTS)[number];
  const file = new URL(`../../hearth/market/artifacts/${name}.json`, import.meta.url);
  const { bytecode } = JSON.parse(readFileSync(file, "utf8")) as { bytecode: string };
  // Behind the code that runs stands the compiler's metadata; its last two bytes say how long that is.
  const end = bytecode.length - 2 * Number.parseInt(bytecode.slice(-4), 16);
  return `0x${bytecode.slice(end - 2 * CODES[name].bytes, end)}${String(address).slice(2)}`;
};

const PARAMETERS = Object.fromEntries(NODE_PARAMETERS.map((name, at) => [name, 10n + BigInt(at)])) as Network["nodeParameters"];

// A token of 6 decimals.
export const TOKEN: Hex = `0x${"70".repeat(20)}`;

export const network: Network = {
  name: "test",
  chainId: BigInt(told.jobChainId),
  jobChainId: BigInt(told.jobChainId),
  genesisHash: hashOf(0),
  contracts: told.contracts,
  asset: { symbol: "ETH", decimals: 18, address: null },
  policy: 0n,
  deployBlock: 0,
  nodeParameters: PARAMETERS,
  codeHashes: new Map(CONTRACTS.map((name) => [name, keccak256(fromHex(codeOf(told.contracts[name])))])),
  rpc: ["http://127.0.0.1:1"],
  gateways: [],
  explorer: null,
  local: true,
};

export interface Chain {
  readonly market: Market;
  // What was asked: methods with their parameters, in order.
  readonly asked: [string, Params][];
  lie: Lie;
}

// A market over this provider, by the network file that `file` is; each answer passes through `lie`. What is true is that the
// market pays in `paid`.
export function chainOf(lie: Lie = (_, __, result) => result, file: Network = network, paid = file.asset): Chain {
  const asked: [string, Params][] = [];
  const market = new Market(file, rpcOf(network.rpc, (url, init) => fetched(url, init)));
  const made: Chain = { market, asked, lie };
  const fetched: Fetch = async (_, init) => {
    const body = JSON.parse(String(init.body)) as Asked | Asked[];
    const one = ({ id, method, params }: Asked): unknown => {
      asked.push([method, params]);
      const said = made.lie(method, params, answer(method, params, { ...network, asset: paid }));
      return said instanceof Error ? { id, error: { code: -32005, message: said.message } } : { id, result: said };
    };
    return new Response(JSON.stringify(Array.isArray(body) ? body.map(one) : one(body)));
  };
  return made;
}

interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: Params;
}

// Change the results of one method alone.
export const only =
  (name: string, change: (params: Params, result: never) => unknown): Lie =>
  (method, params, result) =>
    method === name ? change(params, result as never) : result;

// The blocks that an eth_getLogs asks for.
export function rangeOf(params: Params): readonly [number, number] {
  const filter = params[0] as Readonly<Record<string, string>>;
  return [Number(filter["fromBlock"]), Number(filter["toBlock"])];
}

export const isPost = (log: RawLog): boolean => (log.topics[0] as string).startsWith(POSTED);

export type RawLog = ReturnType<typeof rawLog>;

function rawLog([contract, topics, data, block, logIndex]: Brief) {
  return {
    address: Object.values(told.contracts)[contract] as Hex,
    topics,
    data,
    blockNumber: hexNumber(block),
    blockHash: hashOf(block),
    transactionHash: txOf(block),
    logIndex: hexNumber(logIndex),
  };
}

function blockOf(number: number) {
  const time = new Map(told.times).get(number) ?? told.now;
  const parentHash = hashOf(Math.max(0, number - 1));
  return { number: hexNumber(number), hash: hashOf(number), parentHash, timestamp: hexNumber(time) };
}

function answer(method: string, params: Params, of: Network): unknown {
  if (method === "eth_gasPrice") return "0x9";
  if (method === "eth_maxPriorityFeePerGas") return "0x1";
  if (method === "eth_chainId") return hexNumber(told.jobChainId);
  if (method === "eth_getCode") return codeOf(params[0]);
  if (method === "eth_getBlockByNumber") return blockOf(params[0] === "latest" ? HEAD : Number(params[0]));
  if (method === "eth_getBlockByHash") return blockOf(Number.parseInt(String(params[0]).slice(4), 16));
  if (method === "eth_getLogs") return logs(params[0] as Filter);
  if (method === "eth_getTransactionReceipt") return receiptOf(String(params[0]) as Hex);
  if (method === "eth_call") return called(params[0] as { to: Hex; data: Hex }, of);
  throw new Error(`nobody answers ${method}`);
}

interface Filter {
  readonly address: readonly string[];
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
  readonly fromBlock: string;
  readonly toBlock: string;
}

function logs({ address, topics = [], fromBlock, toBlock }: Filter): RawLog[] {
  const last = toBlock === "latest" ? HEAD : Number(toBlock);
  return told.logs.map(rawLog).filter((log) => {
    const block = Number(log.blockNumber);
    const fits = topics.every((one, at) => one === null || [one].flat().includes(log.topics[at] as Hex));
    return fits && address.includes(log.address) && block >= Number(fromBlock) && block <= last;
  });
}

function receiptOf(hash: Hex): unknown {
  const block = Number.parseInt(hash.slice(4), 16);
  const mined = told.logs.map(rawLog).filter((log) => log.transactionHash === hash);
  const used = { gasUsed: "0x5208", effectiveGasPrice: "0x7" };
  return { transactionHash: hash, blockNumber: hexNumber(block), blockHash: hashOf(block), from: `0x${"9".repeat(40)}`, logs: mined, ...used };
}

interface Called {
  readonly functionName: string;
  readonly args: readonly unknown[];
}

const addressWord = (address: string): Hex => `0x${address.slice(2).padStart(64, "0")}`;

function called({ to, data }: { to: Hex; data: Hex }, { asset }: Network): Hex {
  if (to === TOKEN) return `0x${"6".padStart(64, "0")}`;
  if (to === told.contracts.NodeRegistry) {
    const { functionName } = decodeFunctionData({ abi: NODE_REGISTRY_READS, data }) as Called;
    if (functionName === "ESCROW") return addressWord(told.contracts.Escrow);
    if (functionName === "JOBS") return addressWord(told.contracts.JobRegistry);
    return `0x${PARAMETERS[functionName.toLowerCase() as NodeParameter].toString(16).padStart(64, "0")}`;
  }
  if (to === told.contracts.JobRegistry) {
    const { functionName, args } = decodeFunctionData({ abi: JOB_REGISTRY_READS, data }) as Called;
    const said = (result: Hex): Hex => encodeFunctionResult({ abi: JOB_REGISTRY_READS, functionName, result } as never);
    if (functionName === "ESCROW") return said(told.contracts.Escrow);
    if (functionName === "NODES") return said(told.contracts.NodeRegistry);
    if (functionName === "RULES") return said(told.contracts.Rules);
    if (functionName === "ASSET") return said(asset.address ?? `0x${"0".repeat(40)}`);
    const [terms] = args as [Record<string, unknown>];
    const names = ["submitter", "spec", "needs", "money", "limits", "judge_data", "judge", "policy", "parents_hash"];
    return said(jobIdOfWords(network.jobChainId, to, names.map((name) => terms[name]) as unknown as TermsWords));
  }
  const { functionName, args } = decodeFunctionData({ abi: LENS_READS, data }) as Called;
  return encodeFunctionResult({ abi: LENS_READS, functionName, result: viewed(functionName, args) } as never);
}

const wordOf = (job: string): bigint => {
  const found = told.jobs.find((one) => one.job === job);
  return found === undefined ? 0n : BigInt(found.header ?? (found.units[0]?.words[0] as string));
};

const NOTHING = [
  ...["chain_id", "number", "time", "held", "tracked", "totals", "policy", "previous_policy", "previous_until"],
  ...["posts_paused_until", "registrations_paused_until", "minimum_stake"],
];

function viewed(name: string, args: readonly unknown[]): unknown {
  if (name === "jobs") return (args[0] as Hex[]).map(wordOf);
  if (name === "status") {
    return (args[0] as { job_id: Hex; index: bigint }[]).map(({ job_id: job, index }) => {
      const words = told.jobs.find((one) => one.job === job)?.units[Number(index)]?.words ?? ["0", "0", "0"];
      const [word, second, accused] = words.map(BigInt);
      return { job: wordOf(job), word, second, accused, kept: [] };
    });
  }
  const last = told.logs.filter(([, topics]) => (topics[0] as string).startsWith(POSTED)).at(-1) as Brief;
  return {
    ...Object.fromEntries(NOTHING.map((one) => [one, 0n])),
    number: BigInt(HEAD),
    asset: `0x${"0".repeat(40)}`,
    posted: pack(WORDS.posted, { count: BigInt(told.jobs.length), block: BigInt(last[3]) } as never),
  };
}
