// One call beside posting: cancel, accept, withdraw, and an owner's. What the account cannot pay and what the chain refuses is said
// before the wallet opens; the call counts once a block has it.

import { dryRun, mined, readFees, readPurse, underway } from "../chain/calling";
import type { Market } from "../chain/market";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import type { Network } from "../core/network";
import { gasCost, requireFunds } from "../core/posting";
import { APPROVE_GAS, WITHDRAW_GAS } from "../generated/posting";
import { approveExactly } from "./approving";
import { type Call, withdrawCall } from "./calls";
import { requireGoing, type Session, type Shown } from "./request";

// The wallet is asked for an approval, then for the call, then a block is waited for.
export type ActStep = "approving" | "signing" | "waiting";

// What a call is for people: "cancelling", its gas at most, where the money is while nobody knows whether it was sent. `pays` is
// what it moves out of the account, in base units, `check` refuses what the chain of now shows to be wrong, and `step` hears what
// comes next.
export interface Act {
  readonly call: Call;
  readonly what: string;
  readonly gas: bigint;
  readonly money: string;
  readonly pays?: bigint;
  readonly check?: (account: Hex) => Promise<void>;
  readonly step?: (next: ActStep) => Promise<void>;
}

// Withdraw an account's credit from Escrow, to itself or to whom it names.
export const withdrawing = (network: Network, to: Hex, credit: bigint): Act => ({
  call: withdrawCall(network, to, credit),
  what: "withdrawing",
  gas: WITHDRAW_GAS,
  money: "what was not withdrawn is your credit still",
});

// What the gas of an act is at most: with the approval, where it takes a token.
export const gasOf = ({ network }: Market, { gas, pays = 0n }: Act): bigint =>
  gas + (pays > 0n && network.asset.address !== null ? APPROVE_GAS : 0n);

// Send it and wait for its block. Throws what its check refuses, FUNDS_SHORT, TX_PENDING, REFUSED, TX_FAILED, STOPPED, and what
// `Session.send` does.
export async function carryOut(
  market: Market,
  session: Session,
  act: Act,
  shown: Shown,
  pause: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { call, what, money, pays = 0n } = act;
  const { address } = market.network.asset;
  session.requireMarket(market.network);
  await act.check?.(shown.account);
  const at = await market.head();
  const [fees, purse] = await Promise.all([readFees(market, at), readPurse(market, at, shown.account)]);
  requireFunds(shown.account, market.network, purse, pays, gasCost(gasOf(market, act), fees), what);
  if (pays > 0n) await requireNothingUnderway(market, shown.account);
  const stopped = (what: string, where: string): HearthError =>
    new HearthError("STOPPED", `this page waits no longer for ${what}; ${where}`, "look again later");
  const wait = async (hash: string, where: string): Promise<void> => {
    await pause();
    if (signal.aborted) throw stopped(hash, where);
  };
  if (pays > 0n && address !== null) {
    const approval = { token: address, spender: call.to, amount: pays };
    await approveExactly(market, session, approval, shown, async () => act.step?.("approving"), (where) => wait("the approval", where), signal);
  }
  await dryRun(market, call, shown.account);
  requireGoing(signal);
  await act.step?.("signing");
  // A wallet may never answer.
  const hash = await Promise.race([session.send(call, shown, money, signal), aborted(signal, () => stopped("your wallet", money))]);
  await act.step?.("waiting");
  for (;;) {
    const found = await mined(market, hash).catch(() => undefined);
    if (found?.ok === true) return;
    if (found?.ok === false) throw new HearthError("TX_FAILED", `transaction ${hash} failed in block ${found.block}; ${money}`, "look again");
    await wait(`transaction ${hash}`, money);
  }
}

// Throw once a signal is given, and never end otherwise.
const aborted = (signal: AbortSignal, why: () => HearthError): Promise<never> =>
  new Promise((_, fail) => signal.addEventListener("abort", () => fail(why()), { once: true }));

// What was sent before and waits for a block may be the very same payment. Throws TX_PENDING.
async function requireNothingUnderway(market: Market, account: Hex): Promise<void> {
  const count = await underway(market, account);
  if (count === 0) return;
  throw new HearthError(
    "TX_PENDING",
    `${account} has ${count === 1 ? "a transaction" : `${count} transactions`} that no block has yet, and this would pay beside it: nothing was sent`,
    "wait for it, or have your wallet cancel it",
  );
}
