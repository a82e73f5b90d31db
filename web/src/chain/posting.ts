// What posting reads of a market: who could take a job, what an account has, how far jobs have come, and what the chain says to
// a call before a wallet is asked to send it.

import { ESCROW_ABI, LENS_ABI, TOKEN_ABI } from "../generated/abi";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { type Fleet, fleetOf } from "../core/fleet";
import { type Ask, askOf, type Immutables, nodeGate } from "../core/gates";
import type { Network } from "../core/network";
import { type Fees, type Purse, usualTip } from "../core/posting";
import type { Node, Policy, Terms } from "../core/types";
import { packNeeds } from "../core/words";
import { refusalIn } from "../core/revert";
import { amount, type Block, hexOf, lies, quantity } from "./answers";
import { type Market, type Overview, PAGE, type View, viewOf } from "./market";
import { readFleet } from "./nodes";
import { resultOf } from "./rpc";

// A market at one block, as far as a post goes by it.
export interface Ground {
  readonly at: Block;
  readonly overview: Overview;
  readonly nodes: readonly Node[];
  readonly fleet: Fleet;
  readonly fees: Fees;
}

// A call as eth_call takes it.
export interface Asked {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly label: string;
}

export const immutablesOf = ({ nodeParameters }: Network): Immutables => ({
  deadAfter: Number(nodeParameters.dead_after),
  minimumStake: nodeParameters.minimum_stake,
});

// Read the market, its nodes and what gas costs at a block. Throws as `Market.read` does.
export async function readGround(market: Market, at: Block): Promise<Ground> {
  const [{ overview, nodes }, fees] = await Promise.all([readFleet(market, at), readFees(market, at)]);
  return { at, overview, nodes, fleet: fleetOf(nodes, at.time, immutablesOf(market.network)), fees };
}

// Read what gas costs at a block.
export async function readFees({ rpc }: Market, at: Block): Promise<Fees> {
  const [block, tip] = await rpc.ask([
    { method: "eth_getBlockByHash", params: [at.hash, false] },
    { method: "eth_maxPriorityFeePerGas", params: [] },
  ]);
  const raw = resultOf(block, "a block") as Record<string, unknown> | null;
  const base = amount(raw?.["baseFeePerGas"] ?? "0x0", "a base fee");
  return { base, tip: tip?.ok === true ? amount(tip.value, "a tip") : usualTip(base) };
}

// Hold the page's own count of gates against Lens.gates at the same block. Throws RPC_LIES where they differ for a node.
export async function requireGates(market: Market, { at, overview, nodes }: Ground, terms: Terms, policy: Policy): Promise<void> {
  const { network } = market;
  const ask = askOf(terms, policy);
  const immutables = immutablesOf(network);
  for (let start = 0; start < nodes.length; start += PAGE) {
    const some = nodes.slice(start, start + PAGE);
    const first = some[0]?.id ?? 1;
    const [gates] = await market.read(at, gatesView(network, ask, first, some.length));
    some.forEach((node, place) => {
      if (gates[place] === BigInt(nodeGate(node, ask, overview.time, immutables))) return;
      throw lies(`Lens.gates says another gate of node ${node.id} than its words do`);
    });
  }
}

function gatesView(network: Network, ask: Ask, first: number, count: number): View<readonly bigint[]> {
  const packed = { needs: packNeeds(ask.needs), ceiling: ask.ceiling, bond: ask.bond, probation: ask.probation };
  const args = [packed, BigInt(first), BigInt(count)];
  return viewOf(network.contracts.Lens, LENS_ABI, "lens", "gates", args, (raw) => {
    if (!Array.isArray(raw) || raw.length !== count) throw lies("another number of gates than was asked for");
    return raw as bigint[];
  });
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
  const credit = viewOf(Escrow, ESCROW_ABI, "escrow", "credit", [account], (raw) => raw as bigint);
  const of = (name: string, args: readonly unknown[]): View<bigint> =>
    viewOf(address as Hex, TOKEN_ABI, "token", name, args, (raw) => raw as bigint);
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
  const asked = { from, to, data, value: `0x${value.toString(16)}` };
  const [said] = await market.rpc.ask([{ method: "eth_call", params: [asked, { blockHash: at.hash }] }]);
  if (said?.ok === false) throw refusalIn(said, call.label) ?? new HearthError("RPC_ERROR", `the RPC cannot try ${call.label}: ${said.message}`);
  hexOf(resultOf(said, call.label), "an answer");
}

// What became of a transaction: undefined while no block has it.
export async function mined({ rpc }: Market, hash: Hex): Promise<{ readonly ok: boolean; readonly block: number } | undefined> {
  const raw = (await rpc.one("eth_getTransactionReceipt", [hash])) as Record<string, unknown> | null;
  if (raw === null) return undefined;
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
