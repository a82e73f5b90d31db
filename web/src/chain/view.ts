// Views of contracts: how one is asked, and how its answer reads. What no contract answers is RPC_LIES, whoever sent it.

import type { AbiFunction } from "viem";
import { decodeAbiParameters, encodeAbiParameters } from "viem/utils";

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { hexOf, lies } from "./answers";
import type { Ask, Said } from "./endpoint";
import { resultOf } from "./rpc";

// A call of a view: to which contract, its data, and how its answer reads.
export interface View<T> {
  readonly to: Hex;
  readonly data: Hex;
  readonly label: string;
  read(data: Hex): T;
}

// A view as tools/web_tables/reads.py has it: its selector is written there, not hashed on the way to the first page.
export type ViewAbi = AbiFunction & { readonly selector: Hex };

// A view by its ABI. Whatever its answer holds that `read` cannot take is the provider's doing.
export function viewOf<T>(
  to: Hex,
  abi: readonly ViewAbi[],
  contract: string,
  name: string,
  args: readonly unknown[],
  read: (raw: unknown) => T,
): View<T> {
  const view = abi.find((one) => one.name === name);
  if (view === undefined) throw new Error(`no view ${name}`);
  return {
    to,
    label: `${contract}.${name}`,
    data: `${view.selector}${encodeAbiParameters(view.inputs, args).slice(2)}`,
    read: (data) => {
      const values = decodeAbiParameters(view.outputs, data);
      return read(values.length === 1 ? values[0] : values);
    },
  };
}

export function askOf(view: View<unknown>, at: unknown): Ask {
  return { method: "eth_call", params: [{ to: view.to, data: view.data }, at] };
}

// The value of a view's answer. Throws REFUSED with the contract's reason, RPC_ERROR, RPC_LIES.
export async function answerOf<T>(view: View<T>, said: Said | undefined): Promise<T> {
  if (said !== undefined && !said.ok) {
    // The table of reasons is long, and a view that refuses is rare.
    const refusal = (await import("../core/revert").catch(() => undefined))?.refusalIn(said, view.label);
    if (refusal) throw refusal;
  }
  const data = hexOf(resultOf(said, view.label), `the answer of ${view.label}`);
  try {
    return view.read(data);
  } catch (error) {
    if (error instanceof HearthError && error.code === "RPC_LIES") throw error;
    throw lies(`the answer of ${view.label} is none that it gives`);
  }
}
