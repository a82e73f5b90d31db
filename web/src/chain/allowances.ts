// What an account lets the market's contracts take of its tokens. Only those that ask a token for money are asked about.

import { TOKEN_READS } from "../generated/reads/token";
import type { Hex } from "../core/bytes";
import type { Block } from "./answers";
import type { Market } from "./market";
import { type View, viewOf } from "./view";

export interface Allowance {
  readonly contract: "JobRegistry" | "NodeRegistry" | "Escrow";
  readonly spender: Hex;
  readonly amount: bigint;
}

const SPENDERS = ["JobRegistry", "NodeRegistry", "Escrow"] as const;

// Read them at a block; none in a market of the native coin, which needs none. Throws as `Market.read` does.
export async function readAllowances(market: Market, at: Block, account: Hex): Promise<Allowance[]> {
  const { contracts, asset } = market.network;
  const token = asset.address;
  if (token === null) return [];
  const view = (spender: Hex): View<bigint> => viewOf(token, TOKEN_READS, "token", "allowance", [account, spender], (raw) => raw as bigint);
  const amounts = await market.read(at, ...SPENDERS.map((contract) => view(contracts[contract])));
  return SPENDERS.map((contract, place) => ({ contract, spender: contracts[contract], amount: amounts[place] ?? 0n }));
}
