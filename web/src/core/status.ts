// What a node is at a moment: its status, its stake's standing, its ask in force. Mirrors these parts of the section
// "matching" of hearth/protocol/formulas.py. Amounts are base units, times chain seconds.

import { ZERO_ADDRESS } from "../generated/bounds";
import { NODE_FLAG, STATUS } from "../generated/states";
import { floorDiv, maxBig, minBig } from "./numbers";
import type { Node, Status } from "./types";

// Return the node's rate: the pending ask once its notice is over, else the offer's.
export const askInForce = (node: Node, now: number): bigint =>
  node.offer.pending && now >= node.nextAskAt ? node.nextAsk : node.offer.ask;

// Return a node's status at `now`.
export function statusOf(node: Node, now: number, deadAfter: number, minimumStake: bigint): Status {
  if (node.operator === ZERO_ADDRESS) return STATUS.EXITED;
  if (node.exitAt !== 0) return STATUS.EXITING;
  if (node.state.status & NODE_FLAG.SLASHED && now < node.state.quarantine) return STATUS.SLASHED;
  if (node.state.beat === 0 || stakeShort(node, minimumStake) > 0n) return STATUS.PENDING;
  return now < node.state.beat + deadAfter ? STATUS.ACTIVE : STATUS.INACTIVE;
}

// Return the stake that a node has to keep to be ACTIVE: half of what registering takes.
export const activeStake = (minimumStake: bigint): bigint => floorDiv(minimumStake + 1n, 2n);

// Return how much stake a node lacks before it can be ACTIVE.
export const stakeShort = (node: Node, minimumStake: bigint): bigint =>
  maxBig(0n, activeStake(minimumStake) - node.stake);

// Return what recording a node's silence pays out of its free stake, where the market's fee is `fee`.
export const livenessFee = (node: Node, fee: bigint): bigint =>
  node.state.busy > 0 ? minBig(fee, node.stake - node.state.bond) : 0n;

// Return the end of a node's quarantine, null where it is in none.
export const quarantinedUntil = (node: Node, now: number): number | null =>
  now < node.state.quarantine ? node.state.quarantine : null;
