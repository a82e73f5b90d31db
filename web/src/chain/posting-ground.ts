// What a post goes by: a market at one block, and who of its nodes could take a job.

import { type Fleet, fleetOf } from "../core/fleet";
import { type Ask, askOf, type Immutables, nodeGate } from "../core/gates";
import type { Network } from "../core/network";
import type { Fees } from "../core/posting";
import type { Node, Policy, Terms } from "../core/types";
import { packNeeds } from "../core/words";
import { LENS_READS } from "../generated/reads/lens";
import { type Block, lies } from "./answers";
import { readFees } from "./calling";
import { type Overview, PAGE } from "./lens";
import type { Market } from "./market";
import { readFleet } from "./nodes";
import { type View, viewOf } from "./view";

// A market at one block, as far as a post goes by it.
export interface PostingGround {
  readonly at: Block;
  readonly overview: Overview;
  readonly nodes: readonly Node[];
  readonly fleet: Fleet;
  readonly fees: Fees;
}

export const immutablesOf = ({ nodeParameters }: Network): Immutables => ({
  deadAfter: Number(nodeParameters.dead_after),
  minimumStake: nodeParameters.minimum_stake,
});

// Read the market, its nodes and what gas costs at a block. Throws as `Market.read` does.
export async function readGround(market: Market, at: Block): Promise<PostingGround> {
  const [{ overview, nodes }, fees] = await Promise.all([readFleet(market, at), readFees(market, at)]);
  return { at, overview, nodes, fleet: fleetOf(nodes, at.time, immutablesOf(market.network)), fees };
}

// Hold the page's own count of gates against Lens.gates at the same block. Throws RPC_LIES where they differ for a node.
export async function requireGates(market: Market, { at, overview, nodes }: PostingGround, terms: Terms, policy: Policy): Promise<void> {
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
  return viewOf(network.contracts.Lens, LENS_READS, "lens", "gates", args, (raw) => {
    if (!Array.isArray(raw) || raw.length !== count) throw lies("another number of gates than was asked for");
    return raw as bigint[];
  });
}
