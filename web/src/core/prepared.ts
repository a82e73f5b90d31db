// A call of an owner that a machine has prepared (`--print-tx`) and a wallet signs: a stranger's document, whose own word for what it
// does is not taken. Mirrors hearth/client/prepared.py and send_prepared of hearth/client/workers.py.

import type { Abi } from "viem";
import { decodeFunctionData, encodeFunctionData } from "viem/utils";

import { ESCROW_ABI, NODE_REGISTRY_ABI } from "../generated/abi";
import { OWNED, TAKES } from "../generated/owners";
import { fromHex, type Hex, sha256, toHex } from "./bytes";
import { HearthError } from "./errors";
import type { Network } from "./network";

// What it calls, with its arguments by their names; `takes` is what it moves out of the account, in base units.
export interface Prepared {
  readonly sender: Hex;
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly label: string;
  readonly name: string;
  readonly takes: bigint;
  readonly args: ReadonlyMap<string, unknown>;
}

const MOST = 2 ** 20;
const ADDRESS = /^0x[0-9a-f]{40}$/;
const ACTION = /^[a-z][a-z_. ]{0,31}$/;
const DATA = /^0x(?:[0-9a-fA-F]{2})*$/;
const WHOLE = /^[0-9]{1,80}$/;

// Return the call of a document. Throws BAD_TX for what is none, or pays otherwise than its call says, WRONG_MARKET for another market's.
export async function preparedOf(text: string, network: Network): Promise<Prepared> {
  const raw = fieldsIn(text);
  const [to, sender] = [lower(raw["to"]), lower(raw["from"])];
  const [chain, value, approve] = [whole(raw["chain_id"]), whole(raw["value"]), whole(raw["approve"])];
  const data = String(raw["data"]);
  if (chain === undefined || value === undefined || approve === undefined || !DATA.test(data)) {
    throw bad("it lacks something, or a field is of another kind");
  }
  if (!ADDRESS.test(to) || !ADDRESS.test(sender) || !ACTION.test(String(raw["action"]))) {
    throw bad("its from, to or action is of no form that --print-tx writes");
  }
  const { NodeRegistry, Escrow, JobRegistry } = network.contracts;
  if (chain === network.chainId && to === JobRegistry) throw bad("it calls JobRegistry, as posting a job does: it is posted on the page Submit");
  if (chain !== network.chainId || (to !== NodeRegistry && to !== Escrow)) {
    throw new HearthError("WRONG_MARKET", `it is for contract ${to} on chain ${chain}, not for ${network.name}`, "open the page of that market");
  }
  const [abi, short] = to === NodeRegistry ? [NODE_REGISTRY_ABI as Abi, "nodes"] : [ESCROW_ABI as Abi, "escrow"];
  const { name, args } = decoded(abi, data as Hex);
  await requireNoMore(abi, name, data as Hex, args);
  const takes = (args.get((TAKES as Readonly<Record<string, string>>)[name] ?? "") ?? 0n) as bigint;
  const due = network.asset.address === null ? [takes, 0n] : [0n, takes];
  if (value !== due[0] || approve !== due[1]) {
    throw bad(`it pays ${value} and approves ${approve}, and ${name} takes ${due[0]} and ${due[1]}`);
  }
  if (name === "withdraw" && lower(args.get("to")) !== sender) {
    throw bad(`it withdraws to ${lower(args.get("to"))}, and a withdrawal pays its owner, ${sender}`);
  }
  return { sender: sender as Hex, to: to as Hex, data: data.toLowerCase() as Hex, value, label: `${short}.${name}`, name, takes, args };
}

function fieldsIn(text: string): Record<string, unknown> {
  if (text.length > MOST) throw bad(`it has ${text.length} characters, and ${MOST} are read`);
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw bad("it is no JSON");
  }
  // A report of --print-tx holds the document, or is it.
  if (isObject(raw) && Object.hasOwn(raw, "prepared")) raw = raw["prepared"];
  if (!isObject(raw)) throw bad("it is no JSON object");
  return raw;
}

function decoded(abi: Abi, data: Hex): { readonly name: string; readonly args: ReadonlyMap<string, unknown> } {
  try {
    const { functionName: name, args = [] } = decodeFunctionData({ abi, data });
    const inputs = abi.flatMap((one) => (one.type === "function" && one.name === name ? [one.inputs] : []))[0] ?? [];
    const found = new Map(inputs.map((input, place) => [input.name ?? "", args[place]] as const));
    if ((OWNED as readonly string[]).includes(name)) return { name, args: found };
  } catch {
    // It is refused below, with all else that no owner calls.
  }
  throw bad("its data calls nothing that an owner calls");
}

// No contract looks at what stands behind a call's arguments, and whoever signs is not shown it: only the document that its manifest
// is the digest of may.
async function requireNoMore(abi: Abi, functionName: string, data: Hex, args: ReadonlyMap<string, unknown>): Promise<void> {
  const call = encodeFunctionData({ abi, functionName, args: [...args.values()] });
  const whole = data.toLowerCase();
  if (whole === call) return;
  const digest = whole.startsWith(call) ? toHex(await sha256(fromHex(whole.slice(call.length)))) : "";
  if (digest !== args.get("manifest")) {
    throw bad("there is something else behind its arguments than the manifest that they name");
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

const lower = (value: unknown): string => String(value).toLowerCase();

function whole(value: unknown): bigint | undefined {
  const digits = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  return typeof digits === "string" && WHOLE.test(digits) ? BigInt(digits) : undefined;
}

const bad = (why: string): HearthError =>
  new HearthError("BAD_TX", `this is no prepared transaction: ${why}`, "on the worker's machine: hearth worker register --print-tx > register.json");
