// The call that takes an allowance back. Mirrors `Calls.approve` of hearth/market/calls.py with an amount of 0.

import { encodeFunctionData } from "viem/utils";

import type { Hex } from "../core/bytes";
import { TOKEN_ABI } from "../generated/abi";
import type { Call } from "./calls";

// Let a contract take nothing more of a token.
export function revokeCall(token: Hex, spender: Hex): Call {
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "approve", args: [spender, 0n] });
  return { to: token, data, value: 0n, label: "token.approve" };
}
