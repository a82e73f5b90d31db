// The network file, read as hearth/market/network.py reads it: which contracts on which chain make a market.
//
// The file may come from a stranger. What it says is checked for its form here, and against the chain by whoever asks
// the chain; its URLs are kept only where a browser can ask them.

import { LOCAL_CHAIN_ID } from "../generated/bounds";
import { CONTRACTS, NODE_PARAMETERS, PROTOCOL_VERSION } from "../generated/contracts";
import { fromHex, type Hex, toHex } from "./bytes";
import { HearthError } from "./errors";
import { shownLine } from "./text";
import { MAX_DECIMALS, NATIVE } from "./units";

export type Contract = (typeof CONTRACTS)[number];
export type NodeParameter = (typeof NODE_PARAMETERS)[number];

// What the market pays in: `address` is the token's, null for the chain's own coin.
export interface Asset {
  readonly symbol: string;
  readonly decimals: number;
  readonly address: Hex | null;
}

export interface Network {
  readonly name: string;
  readonly chainId: bigint;
  // The chain's id at deployment: ids of jobs are made with it.
  readonly jobChainId: bigint;
  readonly genesisHash: Hex;
  readonly contracts: Readonly<Record<Contract, Hex>>;
  readonly asset: Asset;
  readonly policy: bigint;
  readonly deployBlock: number;
  readonly nodeParameters: Readonly<Record<NodeParameter, bigint>>;
  readonly codeHashes: ReadonlyMap<string, Hex>;
  readonly rpc: readonly string[];
  readonly gateways: readonly string[];
  readonly explorer: string | null;
  readonly local: boolean;
}

type Raw = Readonly<Record<string, unknown>>;

const MAX_TEXT = 2_048;
const MAX_URLS = 64;
// Characters of a name and of a symbol that are shown.
const MAX_NAME = 64;
const MAX_SYMBOL = 16;

// Read a network file. Throws BAD_NETWORK for another form, WRONG_VERSION for another protocol.
export function networkOf(value: unknown): Network {
  const raw = object(value, "the file");
  const version = Number(whole(raw["protocol_version"], "protocol_version"));
  const contracts = object(raw["contracts"], "contracts");
  const asset = object(raw["asset"], "asset");
  const parameters = object(raw["node_parameters"], "node_parameters");
  const chainId = whole(raw["chain_id"], "chain_id");
  const deployed = raw["deployed_chain_id"] ?? null;
  const network: Network = {
    name: shownLine(text(raw["name"], "name"), MAX_NAME),
    chainId,
    jobChainId: deployed === null ? chainId : whole(deployed, "deployed_chain_id"),
    genesisHash: hash(raw["genesis_hash"], "genesis_hash"),
    contracts: record(CONTRACTS, (name) => address(contracts[name], `contracts.${name}`)),
    asset: {
      // It stands beside every amount, so that it must move nothing there.
      symbol: shownLine(text(asset["symbol"], "asset.symbol"), MAX_SYMBOL),
      decimals: Number(whole(asset["decimals"], "asset.decimals", BigInt(MAX_DECIMALS))),
      address: asset["address"] === null ? null : address(asset["address"], "asset.address"),
    },
    policy: word(raw["policy"], "policy"),
    deployBlock: Number(whole(raw["deploy_block"], "deploy_block", BigInt(Number.MAX_SAFE_INTEGER))),
    nodeParameters: record(NODE_PARAMETERS, (name) => whole(parameters[name], `node_parameters.${name}`)),
    codeHashes: new Map(
      Object.entries(object(raw["code_hashes"] ?? {}, "code_hashes")).map(([name, one]) => [
        name,
        hash(one, `code_hashes.${name}`),
      ]),
    ),
    rpc: urls(raw["rpc"] ?? [], "rpc"),
    gateways: urls(raw["gateways"] ?? [], "gateways"),
    explorer: (raw["explorer"] ?? null) === null ? null : text(raw["explorer"], "explorer"),
    local: chainId === BigInt(LOCAL_CHAIN_ID),
  };
  if (network.asset.address === null && network.asset.decimals !== NATIVE.decimals) {
    throw bad("asset.decimals", `is ${network.asset.decimals}, and a chain's own coin has ${NATIVE.decimals}`);
  }
  if (version !== PROTOCOL_VERSION) {
    throw new HearthError(
      "WRONG_VERSION",
      `the network file is for protocol version ${version}; this page speaks ${PROTOCOL_VERSION}`,
      "open the page of that version",
    );
  }
  return network;
}

// What a market is, whatever its file says beside: a chain, and contracts there.
export const marketId = ({ chainId, genesisHash, contracts }: Network): string =>
  [chainId, genesisHash, ...CONTRACTS.map((name) => contracts[name])].join(" ");

// Whether two network files name the same contracts on the same chain.
export const isSameMarket = (one: Network, other: Network): boolean => marketId(one) === marketId(other);

// A URL that a browser can ask, or undefined: of http or https, without user and password, of readable length.
export function askable(url: string): URL | undefined {
  if (url.length > MAX_TEXT) return undefined;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const web = parsed?.protocol === "http:" || parsed?.protocol === "https:";
  return web && parsed.username === "" && parsed.password === "" ? parsed : undefined;
}

function record<K extends string, V>(names: readonly K[], value: (name: K) => V): Readonly<Record<K, V>> {
  return Object.fromEntries(names.map((name) => [name, value(name)])) as Record<K, V>;
}

function object(value: unknown, where: string): Raw {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw bad(where, "is no object");
  return value as Raw;
}

function text(value: unknown, where: string): string {
  if (typeof value !== "string" || value.length > MAX_TEXT) throw bad(where, "is no text");
  return value;
}

function urls(value: unknown, where: string): string[] {
  if (!Array.isArray(value) || value.length > MAX_URLS) throw bad(where, "is no list of URLs");
  return value.map((one) => text(one, where)).filter((one) => askable(one) !== undefined);
}

// A whole number, as JSON's own or as decimal digits: amounts are written so, because they pass 2^53.
function whole(value: unknown, where: string, most = (1n << 256n) - 1n): bigint {
  const digits = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof digits !== "string" || !/^[0-9]{1,80}$/.test(digits)) throw bad(where, "is no whole number");
  const number = BigInt(digits);
  if (number > most) throw bad(where, "is too large");
  return number;
}

function word(value: unknown, where: string): bigint {
  if (typeof value !== "string" || !/^(0x)?[0-9a-fA-F]{1,64}$/.test(value)) throw bad(where, "is no word in hex");
  return BigInt(value.startsWith("0x") ? value : `0x${value}`);
}

function hash(value: unknown, where: string): Hex {
  return fixed(value, where, 32);
}

function address(value: unknown, where: string): Hex {
  const found = fixed(value, where, 20);
  if (/^0x0+$/.test(found)) throw bad(where, "is zero");
  return found;
}

function fixed(value: unknown, where: string, size: number): Hex {
  const found = typeof value === "string" && value.length <= 2 * size + 2 ? hexOrNone(value) : undefined;
  if (found === undefined || found.length !== size) throw bad(where, `is not ${size} bytes of hex`);
  return toHex(found);
}

function hexOrNone(value: string): Uint8Array | undefined {
  try {
    return fromHex(value);
  } catch {
    return undefined;
  }
}

function bad(where: string, why: string): HearthError {
  return new HearthError("BAD_NETWORK", `the network file: ${where} ${why}`, "use another network file");
}
