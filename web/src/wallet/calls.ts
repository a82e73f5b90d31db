// The calls that a submitter signs, by the generated ABI. Mirrors `Calls` of hearth/market/calls.py. Amounts are base units;
// of a market in a token the value is zero, and the token's approval is exact.

import { encodeFunctionData } from "viem/utils";

import type { Hex } from "../core/bytes";
import { escrowAtPost } from "../core/money";
import type { Network } from "../core/network";
import type { Terms } from "../core/types";
import { packTerms, type TermsWords } from "../core/words";
import { ESCROW_CALLS } from "../generated/calls/escrow";
import { JOB_REGISTRY_CALLS } from "../generated/calls/job-registry";
import { TOKEN_CALLS } from "../generated/calls/token";

// One call: `value` is wei that goes with it, `label` names it for people as the library does.
export interface Call {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly label: string;
}

// Post a job; the value funds it exactly.
export function postCall(network: Network, terms: Terms, parents: readonly Hex[]): Call {
  const data = encodeFunctionData({
    abi: JOB_REGISTRY_CALLS,
    functionName: "post",
    args: [structOf(packTerms(terms)), [...parents]],
  });
  const value = network.asset.address === null ? escrowAtPost(terms) : 0n;
  return { to: network.contracts.JobRegistry, data, value, label: "jobs.post" };
}

// Let a contract of the market take exactly so much of a token.
export function approveOf(token: Hex, spender: Hex, amount: bigint): Call {
  const data = encodeFunctionData({ abi: TOKEN_CALLS, functionName: "approve", args: [spender, amount] });
  return { to: token, data, value: 0n, label: "token.approve" };
}

// Let it take nothing more.
export const revokeOf = (token: Hex, spender: Hex): Call => approveOf(token, spender, 0n);

// Cancel a unit, or with SENTINEL the untouched rest of an array.
export const cancelCall = (network: Network, terms: TermsWords, index: bigint): Call =>
  ofUnit(network, "cancel", terms, index);

// Accept a submitted result, which settles it.
export const acceptCall = (network: Network, terms: TermsWords, index: bigint): Call =>
  ofUnit(network, "accept", terms, index);

// Take credit out of Escrow to an account.
export function withdrawCall(network: Network, to: Hex, amount: bigint): Call {
  const data = encodeFunctionData({ abi: ESCROW_CALLS, functionName: "withdraw", args: [to, amount] });
  return { to: network.contracts.Escrow, data, value: 0n, label: "escrow.withdraw" };
}

function ofUnit(network: Network, functionName: "cancel" | "accept", terms: TermsWords, index: bigint): Call {
  const data = encodeFunctionData({ abi: JOB_REGISTRY_CALLS, functionName, args: [structOf(terms), index] });
  return { to: network.contracts.JobRegistry, data, value: 0n, label: `jobs.${functionName}` };
}

export function structOf([submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash]: TermsWords) {
  return { submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash };
}
