// What keeps a node from work, and the command that mends it, from what the chain says of it. Mirrors hearth/client/nodes/obstacles.py.

import { STATUS } from "../generated/states";
import { START } from "../generated/owners";
import type { Network } from "./network";
import { activeStake, stakeShort, statusOf } from "./status";
import type { Node } from "./types";
import { type Asset, formatAmount, formatDuration } from "./units";

export interface Wait {
  readonly reason: string;
  readonly text: string;
  readonly next: string;
}

// Return all that keeps a node from leases, or from more than one, at chain second `now`; first what is worst.
export function waitsOf(node: Node, now: number, parameters: Network["nodeParameters"], asset: Asset): Wait[] {
  const { state } = node;
  const deadAfter = Number(parameters.dead_after);
  const least = parameters.minimum_stake;
  const status = statusOf(node, now, deadAfter, least);
  if (status === STATUS.EXITED) return [{ reason: "exited", text: "it has left the market", next: "hearth worker register" }];
  if (status === STATUS.EXITING) {
    const text = `it leaves the market, its stake is free in ${formatDuration(Math.max(0, node.exitAt - now))}`;
    return [{ reason: "exiting", text, next: "hearth worker exit --finish after that; hearth worker exit --cancel" }];
  }
  const waits: Wait[] = [];
  const short = stakeShort(node, least);
  if (short > 0n) {
    const text = `stake ${formatAmount(short, asset)} short of half the minimum of ${formatAmount(least, asset)}`;
    waits.push({ reason: "stake", text, next: `hearth worker stake ${formatAmount(stakeMissing(short, least), asset, { symbol: false })}` });
  }
  if (state.beat === 0) waits.push({ reason: "beat", text: "it has not beaten yet", next: START });
  else if (now >= state.beat + deadAfter) {
    waits.push({ reason: "silent", text: `it last beat ${formatDuration(now - state.beat)} ago`, next: START });
  }
  if (now < state.quarantine) {
    const text = `quarantined for ${formatDuration(state.quarantine - now)} more, after failures`;
    waits.push({ reason: "quarantine", text, next: "hearth worker earnings" });
  }
  if (!state.seasoned) {
    const text =
      "on probation until it was paid about five times the probation price: what its leases reserve together is " +
      "bounded, and a result is paid after a delay";
    waits.push({ reason: "probation", text, next: "hearth net params" });
  }
  return waits;
}

// Return what a node that lacks `short` of being active takes to have the minimum, twice what it needs.
const stakeMissing = (short: bigint, minimum: bigint): bigint => minimum - activeStake(minimum) + short;
