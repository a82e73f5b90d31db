// Calls to the Steward, as council, guardian or anybody signs them. Mirrors the governance part of hearth/market/calls.py.

import { encodeFunctionData } from "viem/utils";

import { STEWARD_CALLS } from "../generated/calls/steward";
import type { Hex } from "../core/bytes";
import type { Change } from "../core/changes";
import type { Network } from "../core/network";
import type { Call } from "./calls";

// Carry out a change that is due; anybody may.
export const executeCall = (network: Network, { op, word, salt }: Change): Call =>
  toSteward(network, "execute", encodeFunctionData({ abi: STEWARD_CALLS, functionName: "execute", args: [BigInt(op), word, salt] }));

// Take a queued change back, as the council or the guardian.
export const dropCall = (network: Network, change: Hex): Call =>
  toSteward(network, "drop", encodeFunctionData({ abi: STEWARD_CALLS, functionName: "drop", args: [change] }));

// Take posts under the current policy only, as the council or the guardian.
export const dropPreviousCall = (network: Network): Call =>
  toSteward(network, "drop_previous_policy", encodeFunctionData({ abi: STEWARD_CALLS, functionName: "drop_previous_policy" }));

// Stop new posts or new registrations for 7 days, as the council or the guardian.
export const pauseCall = (network: Network, what: "posts" | "registrations"): Call =>
  toSteward(network, "pause", encodeFunctionData({ abi: STEWARD_CALLS, functionName: "pause", args: [what === "posts", what === "registrations"] }));

// Become the council, as who was offered its seat.
export const acceptCouncilCall = (network: Network): Call =>
  toSteward(network, "accept_council", encodeFunctionData({ abi: STEWARD_CALLS, functionName: "accept_council" }));

// Let the Steward take the governor's rights that it was offered; anybody may.
export const acceptGovernorCall = (network: Network, what: "posts" | "registrations"): Call =>
  toSteward(
    network,
    "accept_governor",
    encodeFunctionData({ abi: STEWARD_CALLS, functionName: "accept_governor", args: [what === "posts", what === "registrations"] }),
  );

const toSteward = ({ contracts }: Network, name: string, data: Hex): Call => ({ to: contracts.Steward, data, value: 0n, label: `steward.${name}` });
