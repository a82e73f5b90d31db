// What providers' answers mean: values that were looked at whole, or RPC_LIES. Mirrors hearth/chain/answers.py.

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";

// In the year 6325.
const MAX_SECOND = 2 ** 37;

export interface Block {
  readonly number: number;
  readonly hash: Hex;
  readonly parent: Hex;
  readonly time: number;
}

export function lies(what: string): HearthError {
  return new HearthError("RPC_LIES", `an RPC answers what cannot be: ${what}`, "name another RPC");
}

export function hexOf(value: unknown, what: string, bytes?: number): Hex {
  if (typeof value !== "string" || !/^0x(?:[0-9a-fA-F]{2})*$/.test(value)) throw lies(`${what} is no hex`);
  if (bytes !== undefined && value.length !== 2 + 2 * bytes) throw lies(`${what} has another length`);
  return value.toLowerCase() as Hex;
}

// A number of blocks, seconds or logs: at most 2^53.
export function quantity(value: unknown, what: string): number {
  const found = amount(value, what);
  if (found > BigInt(Number.MAX_SAFE_INTEGER)) throw lies(`${what} is beyond reason`);
  return Number(found);
}

// A number of at most 256 bits.
export function amount(value: unknown, what: string): bigint {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) throw lies(`${what} is no number`);
  return BigInt(value);
}

export function block(value: unknown): Block {
  const raw = record(value, "a block");
  return {
    number: quantity(raw["number"], "a block's number"),
    hash: hexOf(raw["hash"], "a block's hash", 32),
    parent: hexOf(raw["parentHash"], "a block's parent", 32),
    time: second(raw["timestamp"]),
  };
}

// A block's Unix time in seconds: there are chains that count milliseconds, and no contract of the market does.
function second(value: unknown): number {
  const found = quantity(value, "a block's time");
  if (found >= MAX_SECOND) throw lies("a block's time that is in milliseconds, or beyond reason");
  return found;
}

// What a mined transaction came to: its block, its logs, the gas that it used, and the fee in wei with what a rollup took
// beside gas; undefined where the provider says no price.
export interface Receipt {
  readonly from: Hex;
  readonly blockHash: Hex;
  readonly logs: readonly Log[];
  readonly gas: bigint;
  readonly fee: bigint | undefined;
}

// Read a receipt; undefined where there is none, or no block has its transaction yet: many give one from the pool on.
export function receipt(value: unknown, hash: Hex): Receipt | undefined {
  if (value === null) return undefined;
  const raw = record(value, "a receipt");
  if (isFromPool(raw)) return undefined;
  if (hexOf(raw["transactionHash"], "a transaction", 32) !== hash) throw lies("the receipt of another transaction");
  quantity(raw["blockNumber"], "a receipt's block");
  const blockHash = hexOf(raw["blockHash"], "a block", 32);
  const logs = logsOf(raw["logs"]);
  if (logs.some((log) => log.txHash !== hash || log.blockHash !== blockHash)) throw lies("a receipt with another's logs");
  const gas = amount(raw["gasUsed"], "gas");
  // There are providers that write 0 for what they do not know.
  const price = said(raw, "effectiveGasPrice") ?? 0n;
  const beside = besideGas(raw, gas);
  const fee = price === 0n ? undefined : gas * price + beside;
  return { from: hexOf(raw["from"], "a sender", 20), blockHash, logs, gas, fee };
}

// Whether a receipt is of a transaction that no block has yet.
export const isFromPool = (raw: Record<string, unknown>): boolean => (raw["blockNumber"] ?? null) === null;

// What a rollup took beside gas, 0 where the receipt says nothing of it. Mirrors hearth/chain/rollup.py `fee_in`.
function besideGas(raw: Record<string, unknown>, gas: bigint): bigint {
  return (said(raw, "l1Fee") ?? 0n) + (said(raw, "operatorFee") ?? operatorFee(raw, gas));
}

// An operator's fee by the numbers that it is made of.
function operatorFee(raw: Record<string, unknown>, gas: bigint): bigint {
  const scaled = gas * (said(raw, "operatorFeeScalar") ?? 0n);
  // Only receipts since Jovian have this field, whatever it says.
  const isJovian = (raw["daFootprintGasScalar"] ?? null) !== null;
  return (isJovian ? scaled * 100n : scaled / 1_000_000n) + (said(raw, "operatorFeeConstant") ?? 0n);
}

// An amount of a receipt, undefined where it has none.
const said = (raw: Record<string, unknown>, name: string): bigint | undefined => ((raw[name] ?? null) === null ? undefined : amount(raw[name], name));

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null) throw lies(`${what} is no object`);
  return value as Record<string, unknown>;
}
