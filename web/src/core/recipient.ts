// Addresses that a reader types. Mirrors address_of and recipient of hearth/client/money.py.

import { getAddress } from "viem/utils";

import { ZERO_ADDRESS } from "../generated/bounds";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import type { Network } from "./network";
import { shownLine } from "./text";

const FORM = /^0x[0-9a-fA-F]{40}$/;
const SHOWN = 64;

// Return an address in lower case. Throws BAD_ADDRESS for what is none, or mistyped by its checksum.
export function addressOf(text: string): Hex {
  if (!FORM.test(text)) throw bad(text, "is no address", "write 0x and 40 hex digits");
  const lower = text.toLowerCase() as Hex;
  const digits = text.slice(2);
  const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (mixed && getAddress(lower) !== text) {
    throw bad(text, "is mistyped: its capital letters are a checksum, and they are wrong", "copy it again");
  }
  return lower;
}

// Return an account that is pasted, in lower case. Throws BAD_ADDRESS for what `addressOf` refuses, and for the zero address.
export function accountOf(text: string): Hex {
  const address = addressOf(text.trim());
  if (address === ZERO_ADDRESS) throw bad(text, "is nobody's account", "copy the whole address");
  return address;
}

// Return an address in lower case that something may go to; `why` says what is wrong with one that nobody holds. Throws
// BAD_ADDRESS for what `addressOf` refuses, for the zero address, and for the market's own contracts and token.
export function recipientOf(text: string, network: Pick<Network, "contracts" | "asset">, why = "what is sent there is lost"): Hex {
  const address = addressOf(text);
  if (address === ZERO_ADDRESS) throw bad(text, `is the zero address: ${why}`, "name an account");
  const { asset, contracts } = network;
  for (const [name, one] of Object.entries({ ...contracts, [`${asset.symbol} token`]: asset.address })) {
    if (one === address) throw bad(text, `is this market's ${name}: ${why}`, "name an account");
  }
  return address;
}

const bad = (text: string, why: string, hint: string): HearthError =>
  new HearthError("BAD_ADDRESS", `${shownLine(text, SHOWN)} ${why}`, hint);
