// By how many attesters' signatures results were confirmed: it stands in the transactions that confirmed them, and nowhere else.

import type { Hex } from "../core/bytes";
import { type Confirmation, confirmationIn, type JudgedUnit } from "../core/judged";
import type { Posted } from "../core/posted";
import type { Market } from "./market";

// Transactions that one request asks for, and units that are asked about.
const AT_ONCE = 50;
const MOST = 200;

// Return by unit what confirmed its result, where a transaction did so by itself. A call by way of another contract says nothing.
export async function readConfirmations(market: Market, { packed }: Posted, units: readonly JudgedUnit[]): Promise<ReadonlyMap<number, Confirmation>> {
  const { Attesters } = market.network.contracts;
  const wanted = units.filter(({ tx }) => tx !== null).slice(0, MOST);
  const found = new Map<number, Confirmation>();
  for (let start = 0; start < wanted.length; start += AT_ONCE) {
    const some = wanted.slice(start, start + AT_ONCE);
    const said = await market.rpc.ask(some.map(({ tx }) => ({ method: "eth_getTransactionByHash", params: [tx] })));
    some.forEach(({ index }, place) => {
      const answer = said[place];
      const raw = answer?.ok === true ? (answer.value as Record<string, unknown> | null) : null;
      const [to, input] = [raw?.["to"], raw?.["input"]];
      if (typeof to !== "string" || typeof input !== "string" || to.toLowerCase() !== Attesters) return;
      const one = confirmationIn(input.toLowerCase() as Hex, packed, index);
      if (one !== null) found.set(index, one);
    });
  }
  return found;
}
