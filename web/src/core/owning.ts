// What an owner's call is refused for before a wallet opens, in the words of the command line. Mirrors the refusals of
// hearth/client/nodes/workers.py and worker/manage.py. Amounts are base units, `now` is the second of the block that was read.

import { MAX_STAKE } from "../generated/owners";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { moment } from "./moments";
import type { Network } from "./network";
import type { Node } from "./types";
import { amountAtLeast, formatDuration, parseAmount, showAmount } from "./units";

// The market as far as a registration goes by it: the owner's nodes with the keys that they are offered to.
export interface Ground {
  readonly minimumStake: bigint;
  readonly pausedUntil: number;
  readonly now: number;
  readonly owned: readonly { readonly node: Node; readonly offered: Hex }[];
}

// Return the stake that a text names, the market's minimum for none. Throws BAD_AMOUNT, STAKE_SHORT, TOO_LARGE.
export function stakeOf(text: string, minimum: bigint, asset: Network["asset"]): bigint {
  const stake = text.trim() === "" ? minimum : parseAmount(text, asset);
  requireMinimum(stake, minimum, asset);
  requireStake(stake, asset);
  return stake;
}

// Refuse a stake that registers no node. Throws STAKE_SHORT.
export function requireMinimum(stake: bigint, minimum: bigint, asset: Network["asset"]): void {
  if (stake >= minimum) return;
  throw new HearthError(
    "STAKE_SHORT",
    `a stake of ${showAmount(stake, asset)} is below this market's minimum of ${showAmount(minimum, asset)}`,
    `stake ${amountAtLeast(minimum, asset)}`,
  );
}

// Return the stake that a text adds to a node's. Throws BAD_AMOUNT, TOO_LARGE.
export function addedOf(text: string, node: Node, asset: Network["asset"]): bigint {
  const added = parseAmount(text, asset);
  if (added === 0n) throw new HearthError("BAD_AMOUNT", "a stake of nothing adds nothing", "write how much");
  requireStake(node.stake + added, asset);
  return added;
}

// Refuse a registration while they are paused, and of a key that works for a node of the same owner already. Throws PAUSED, REGISTERED.
export function requireRegistrable(network: Pick<Network, "name">, ground: Ground, operator: Hex): void {
  if (ground.now < ground.pausedUntil) {
    throw new HearthError("PAUSED", `new registrations on ${network.name} are paused until ${moment(ground.pausedUntil)}`, "come back after that");
  }
  const found = ground.owned.find(({ node, offered }) => node.operator === operator || offered === operator);
  if (found !== undefined) {
    throw new HearthError(
      "REGISTERED",
      `the key ${operator} operates node ${found.node.id} already, or is offered it`,
      "name another key, or change that node",
    );
  }
}

// Refuse another ask while one waits. Throws ASK_PENDING.
export function requireNoAsk(node: Node, now: number): void {
  if (!node.offer.pending || now >= node.nextAskAt) return;
  const left = formatDuration(node.nextAskAt - now);
  throw new HearthError("ASK_PENDING", `an ask waits for its notice, ${left} more, and one may wait at a time`, "come back after that");
}

// Refuse another offer while leases run. Throws BUSY.
export function requireIdle({ id, state: { busy } }: Node): void {
  if (busy === 0) return;
  const leases = busy === 1 ? "a lease" : `${busy} leases`;
  throw new HearthError("BUSY", `node ${id} runs ${leases}, and an offer changes only while none runs`, "hearth worker drain, on its machine");
}

// Refuse to finish an exit too early. Throws UNBONDING, BOND_LEFT.
export function requireUnbonded(node: Node, now: number): void {
  if (now < node.exitAt) {
    const left = formatDuration(node.exitAt - now);
    throw new HearthError("UNBONDING", `node ${node.id} unbonds until ${moment(node.exitAt)}, ${left} more, and its stake is free only then`, "finish it after that, or stay");
  }
  if (node.state.bond > 0n) throw new HearthError("BOND_LEFT", `node ${node.id} has leases whose results are not settled`, "wait until they are");
}

function requireStake(stake: bigint, asset: Network["asset"]): void {
  if (stake > MAX_STAKE) throw new HearthError("TOO_LARGE", `no node holds more than ${showAmount(MAX_STAKE, asset)}`, "write less");
}
