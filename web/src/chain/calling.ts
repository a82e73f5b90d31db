// What is asked about a call before a wallet sends it and after: what gas costs, what its account has, what the chain says to it,
// and what became of it.

import { type Hex, hexNumber } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Fees, type Purse, usualTip } from "../core/posting";
import { refusalIn } from "../core/revert";
import { ESCROW_READS } from "../generated/reads/escrow";
import { TOKEN_READS } from "../generated/reads/token";
import { amount, type Block, hexOf, isFromPool, quantity } from "./answers";
import type { Market } from "./market";
import { resultOf } from "./rpc";
import { type View, viewOf } from "./view";

// A call as eth_call takes it.
export interface Asked {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly label: string;
}

// Read what gas costs at a block; where headers have no base fee, the provider's price of gas is it. Mirrors `fees` of
// hearth/chain/rpc.py.
export async function readFees({ rpc }: Market, at: Block): Promise<Fees> {
  const [block, tip] = await rpc.ask([
    { method: "eth_getBlockByHash", params: [at.hash, false] },
    { method: "eth_maxPriorityFeePerGas", params: [] },
  ]);
  const raw = resultOf(block, "a block") as Record<string, unknown> | null;
  if (raw === null) throw new HearthError("RPC_ERROR", `the RPC does not have ${at.hash} now`, "look again");
  const base = amount(raw["baseFeePerGas"] ?? (await rpc.one("eth_gasPrice", [])), "a base fee");
  return { base, tip: tip?.ok === true ? amount(tip.value, "a tip") : usualTip(base) };
}

// Read what an account has at a block, and what a contract may take of its tokens.
export async function readPurse(
  market: Market,
  at: Block,
  account: Hex,
  spender: Hex = market.network.contracts.JobRegistry,
): Promise<Purse> {
  const { network, rpc } = market;
  const { address } = network.asset;
  const { Escrow } = network.contracts;
  const credit = viewOf(Escrow, ESCROW_READS, "escrow", "credit", [account], (raw) => raw as bigint);
  const of = (name: string, args: readonly unknown[]): View<bigint> =>
    viewOf(address as Hex, TOKEN_READS, "token", name, args, (raw) => raw as bigint);
  const token = address === null ? [] : [of("balanceOf", [account]), of("allowance", [account, spender])];
  const [held, [owned, balance, allowance]] = await Promise.all([
    rpc.one("eth_getBalance", [account, { blockHash: at.hash }]),
    market.read(at, credit, ...token) as Promise<bigint[]>,
  ]);
  const coin = amount(held, "a balance");
  return { coin, asset: balance ?? coin, credit: owned ?? 0n, allowance: allowance ?? 0n };
}

// Try a call at the newest block, its value with it, as an account. Throws REFUSED with the contract's reason as a sentence, and
// RPC_ERROR where the provider cannot run it.
export async function dryRun(market: Market, call: Asked, from: Hex): Promise<void> {
  const at = await market.head();
  const { to, data, value } = call;
  const asked = { from, to, data, value: hexNumber(value) };
  const [said] = await market.rpc.ask([{ method: "eth_call", params: [asked, { blockHash: at.hash }] }]);
  if (said?.ok === false) throw refusalIn(said, call.label) ?? new HearthError("RPC_ERROR", `the RPC cannot try ${call.label}: ${said.message}`);
  hexOf(resultOf(said, call.label), "an answer");
}

// What became of a transaction: undefined while no block has it.
export async function mined({ rpc }: Market, hash: Hex): Promise<{ readonly ok: boolean; readonly block: number } | undefined> {
  const raw = (await rpc.one("eth_getTransactionReceipt", [hash])) as Record<string, unknown> | null;
  if (raw === null || isFromPool(raw)) return undefined;
  return { ok: quantity(raw["status"], "a status") === 1, block: quantity(raw["blockNumber"], "a block") };
}

// How many transactions of an account are in blocks, and how many it has sent in all; undefined where the provider does not say.
export async function sentBy({ rpc }: Market, account: Hex): Promise<{ readonly mined: number; readonly sent: number } | undefined> {
  const said = await rpc.ask(["latest", "pending"].map((at) => ({ method: "eth_getTransactionCount", params: [account, at] })));
  const [mined, sent] = said.map((one) => (one.ok ? quantity(one.value, "a count") : undefined));
  return mined === undefined || sent === undefined ? undefined : { mined, sent: Math.max(mined, sent) };
}

// Count the transactions of an account that no block has yet, 0 where the provider does not say.
export async function underway(market: Market, account: Hex): Promise<number> {
  const { mined, sent } = (await sentBy(market, account)) ?? { mined: 0, sent: 0 };
  return sent - mined;
}
