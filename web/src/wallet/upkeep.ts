// The calls by which a wallet does a keeper's work: one for one task, or Lens.performUpkeep for several, which does what is still
// due of them. Mirrors `Calls` of hearth/market/calls.py; the payee is the account that signs.

import { encodeFunctionData } from "viem/utils";

import type { Hex } from "../core/bytes";
import type { Network } from "../core/network";
import { NO_TERMS } from "../core/terms";
import type { Task } from "../core/upkeep";
import { JOB_REGISTRY_CALLS } from "../generated/calls/job-registry";
import { LENS_CALLS } from "../generated/calls/lens";
import { NODE_REGISTRY_CALLS } from "../generated/calls/node-registry";
import { UPKEEP } from "../generated/upkeep";
import { type Call, structOf } from "./calls";

// Kinds of work that `performUpkeep` does, by its numbers; it unlocks nothing.
const OPS = {
  settle: UPKEEP.SETTLE,
  close: UPKEEP.CLOSE,
  reclaim: UPKEEP.RECLAIM,
  expire: UPKEEP.EXPIRE,
  check_liveness: UPKEEP.LIVENESS,
} as const;

// Say whether a task may be one of several.
export const canBatch = ({ does }: Task): boolean => does in OPS;

// Do one task; its pay is credited to `payee`.
export function taskCall(network: Network, task: Task, payee: Hex): Call {
  const { does, posted, index, node } = task;
  if (does === "check_liveness" || posted === undefined) {
    const data = encodeFunctionData({ abi: NODE_REGISTRY_CALLS, functionName: "check_liveness", args: [[BigInt(node)], payee] });
    return { to: network.contracts.NodeRegistry, data, value: 0n, label: "nodes.check_liveness" };
  }
  const terms = structOf(posted.packed);
  const data =
    does === "unlock"
      ? encodeFunctionData({ abi: JOB_REGISTRY_CALLS, functionName: "unlock", args: [terms, [...posted.parents], payee] })
      : encodeFunctionData({ abi: JOB_REGISTRY_CALLS, functionName: does, args: [terms, index, payee] });
  return { to: network.contracts.JobRegistry, data, value: 0n, label: `jobs.${does}` };
}

// Do what is still due of several tasks at once.
export function batchCall(network: Network, tasks: readonly Task[], payee: Hex): Call {
  const candidates = tasks.flatMap(({ does, posted, index, node }) => {
    if (does === "unlock") return [];
    const of = does === "check_liveness" ? { index: BigInt(node), count: 1n } : { index, count: 0n };
    return [{ op: BigInt(OPS[does]), terms: structOf(posted?.packed ?? NO_TERMS), ...of }];
  });
  const data = encodeFunctionData({ abi: LENS_CALLS, functionName: "performUpkeep", args: [candidates, payee] });
  return { to: network.contracts.Lens, data, value: 0n, label: "lens.performUpkeep" };
}
