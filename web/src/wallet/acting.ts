// One call beside posting: cancel, accept, withdraw. What the account cannot pay and what the chain refuses is said before the
// wallet opens; the call counts once a block has it.

import { dryRun, mined, readFees, readPurse } from "../chain/posting";
import type { Market } from "../chain/market";
import { HearthError } from "../core/errors";
import { gasCost, requireFunds } from "../core/posting";
import type { Call } from "./calls";
import type { Session, Shown } from "./request";

// What a call is for people: "cancelling", its gas at most, where the money is while nobody knows whether it was sent; and what it
// takes of the market's asset, nothing where it does not say.
export interface Act {
  readonly call: Call;
  readonly what: string;
  readonly gas: bigint;
  readonly money: string;
  readonly pays?: bigint;
}

// Send it and wait for its block. Throws FUNDS_SHORT, REFUSED, TX_FAILED, STOPPED, and what `Session.send` does.
export async function carryOut(
  market: Market,
  session: Session,
  { call, what, gas, money, pays = 0n }: Act,
  shown: Shown,
  pause: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const at = await market.head();
  const [fees, purse] = await Promise.all([readFees(market, at), readPurse(market, at, shown.account)]);
  requireFunds(shown.account, market.network, purse, pays, gasCost(gas, fees), what);
  await dryRun(market, call, shown.account);
  const hash = await session.send(call, shown, money);
  for (;;) {
    const found = await mined(market, hash).catch(() => undefined);
    if (found?.ok === true) return;
    if (found?.ok === false) throw new HearthError("TX_FAILED", `transaction ${hash} failed in block ${found.block}; ${money}`, "look again");
    await pause();
    if (signal.aborted) throw new HearthError("STOPPED", `this page waits no longer for transaction ${hash}; ${money}`, "look again later");
  }
}
