// What providers' answers mean: values that were looked at whole, or RPC_LIES. Mirrors hearth/chain/answers.py.

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Log, logsOf } from "../core/logs";

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
    time: quantity(raw["timestamp"], "a block's time"),
  };
}

// What a mined transaction came to: its block, its logs, the gas that it used, and the fee in wei.
export interface Receipt {
  readonly from: Hex;
  readonly blockHash: Hex;
  readonly logs: readonly Log[];
  readonly gas: bigint;
  readonly fee: bigint;
}

export function receipt(value: unknown, hash: Hex): Receipt {
  const raw = record(value, "a receipt");
  if (hexOf(raw["transactionHash"], "a transaction", 32) !== hash) throw lies("the receipt of another transaction");
  const blockHash = hexOf(raw["blockHash"], "a block", 32);
  const logs = logsOf(raw["logs"]);
  if (logs.some((log) => log.txHash !== hash || log.blockHash !== blockHash)) throw lies("a receipt with another's logs");
  const gas = amount(raw["gasUsed"], "gas");
  const fee = gas * amount(raw["effectiveGasPrice"] ?? "0x0", "a price");
  return { from: hexOf(raw["from"], "a sender", 20), blockHash, logs, gas, fee };
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null) throw lies(`${what} is no object`);
  return value as Record<string, unknown>;
}
