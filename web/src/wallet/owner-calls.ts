// The calls that an owner of nodes signs, by the generated ABI. Mirrors the owners' part of `Calls` of hearth/market/calls.py. Amounts
// are base units, rates base units x 1e6 per second; of a market in a token the value is zero, and the stake is approved.

import type { Abi } from "viem";
import { encodeFunctionData } from "viem/utils";

import type { Hex } from "../core/bytes";
import type { Manifest } from "../core/manifest";
import type { Network } from "../core/network";
import type { Offer } from "../core/types";
import { packOffer } from "../core/words";
import { NODE_REGISTRY_CALLS } from "../generated/calls/node-registry";
import { ARGUMENT_BYTES, BYTE_GAS, OWNER_GAS } from "../generated/owners";
import type { Call } from "./calls";

// Register a node with its stake. The manifest's document stands behind the arguments, where no contract looks.
export function registerCall(network: Network, operator: Hex, offer: Offer, { digest, document }: Manifest, stake: bigint): Call {
  return carrying(document, call(network, "register", [operator, packOffer(offer), digest, stake], stake));
}

// Add stake to a node of this owner; refused where the id is another's, as after a reorganisation.
export const addStakeCall = (network: Network, node: number, owner: Hex, amount: bigint): Call =>
  call(network, "add_stake", [BigInt(node), owner, amount], amount);

// Replace an idle node's offer, its ask aside.
export function updateOfferCall(network: Network, node: number, offer: Offer, { digest, document }: Manifest): Call {
  const sizes = packOffer({ ...offer, ask: 0n, pending: false });
  return carrying(document, call(network, "update_offer", [BigInt(node), sizes, digest]));
}

// Change a node's ask after its notice.
export const setAskCall = (network: Network, node: number, ask: bigint): Call => call(network, "set_ask", [BigInt(node), ask]);

// Offer a node to another operator, whose first beat takes it over; naming the present one takes that back.
export const setOperatorCall = (network: Network, node: number, operator: Hex): Call =>
  call(network, "set_operator", [BigInt(node), operator]);

// Offer a node to another owner, who must accept; the zero address takes that back.
export const offerOwnerCall = (network: Network, node: number, owner: Hex): Call => call(network, "offer_owner", [BigInt(node), owner]);

export const acceptOwnerCall = (network: Network, node: number): Call => call(network, "accept_owner", [BigInt(node)]);

export const exitStartCall = (network: Network, node: number): Call => call(network, "exit_start", [BigInt(node)]);

export const exitCancelCall = (network: Network, node: number): Call => call(network, "exit_cancel", [BigInt(node)]);

// Finish an exit; the stake becomes the owner's credit.
export const exitFinishCall = (network: Network, node: number): Call => call(network, "exit_finish", [BigInt(node)]);

// The gas of an owner's call at most: each byte that it carries beyond its arguments costs more.
export function ownerGas({ data }: Call): bigint {
  const bytes = (data.length - 2) / 2;
  return OWNER_GAS + BYTE_GAS * BigInt(Math.max(0, bytes - ARGUMENT_BYTES));
}

function call(network: Network, functionName: string, args: readonly unknown[], value = 0n): Call {
  const data = encodeFunctionData({ abi: NODE_REGISTRY_CALLS as Abi, functionName, args });
  const paid = network.asset.address === null ? value : 0n;
  return { to: network.contracts.NodeRegistry, data, value: paid, label: `nodes.${functionName}` };
}

const carrying = (document: Hex, one: Call): Call => ({ ...one, data: `${one.data}${document.slice(2)}` });
