// The exact approval that comes before a call which takes a token, and what both wait for.

import { dryRun, mined, readPurse } from "../chain/calling";
import type { Market } from "../chain/market";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { approveOf } from "./calls";
import type { Session, Shown } from "./request";

// What a call takes of the market's token, and which contract takes it.
export interface Approval {
  readonly token: Hex;
  readonly spender: Hex;
  readonly amount: bigint;
}

// Let a contract take exactly so much, where it may not yet; returns once the chain says so. `asking` hears that a wallet is asked,
// `wait` waits until the next look at the chain. Says whether a wallet was asked.
export async function approveExactly(
  market: Market,
  session: Session,
  { token, spender, amount }: Approval,
  shown: Shown,
  asking: () => Promise<void>,
  wait: (money: string) => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  const allowed = async (): Promise<boolean> => {
    const { allowance } = await readPurse(market, await market.head(), shown.account, spender);
    return allowance >= amount;
  };
  if (await allowed()) return false;
  await asking();
  const call = approveOf(token, spender, amount);
  await dryRun(market, call, shown.account);
  const money = "an approval moves nothing: your tokens are in your account";
  const hash = await session.send(call, shown, money, signal);
  while (!(await allowed().catch(() => false))) {
    await requireNotFailed(market, hash, money);
    await wait(money);
  }
  return true;
}

// Refuse to wait for a transaction that failed. Throws TX_FAILED.
export async function requireNotFailed(market: Market, hash: Hex, money: string): Promise<void> {
  const found = await mined(market, hash).catch(() => undefined);
  if (found?.ok === false) throw new HearthError("TX_FAILED", `transaction ${hash} failed in block ${found.block}; ${money}`, "try again");
}
