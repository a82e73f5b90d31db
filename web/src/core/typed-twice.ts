// An account that is typed twice: one wrong digit is another account, and nothing brings back what went there.

import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import type { Network } from "./network";
import { recipientOf } from "./recipient";

// Return the account that both texts name, which money may go to. Throws BAD_ADDRESS.
export function typedTwice(first: string, second: string, network: Pick<Network, "contracts" | "asset">): Hex {
  const to = recipientOf(first.trim(), network);
  const again = second.trim();
  if (again === "") throw bad("the address is typed once so far");
  if (recipientOf(again, network) !== to) throw bad("the two addresses are not the same");
  return to;
}

const bad = (why: string): HearthError => new HearthError("BAD_ADDRESS", why, "type it again");
