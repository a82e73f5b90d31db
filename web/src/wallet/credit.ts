// Credit in Escrow that pays for a job first: it is withdrawn to the account by a call of its own, and the post then takes the
// whole escrow from there, as `hearth submit --use-credit` does.

import type { Market } from "../chain/market";
import { HearthError } from "../core/errors";
import { escrowAtPost } from "../core/money";
import type { Network } from "../core/network";
import { creditFor, type Purse } from "../core/posting";
import { documentsText, documentText } from "../core/prepared";
import { showAmount } from "../core/units";
import { carryOut, withdrawing } from "./acting";
import { postCall, withdrawCall } from "./calls";
import type { Entry } from "./journal";
import type { Session, Shown } from "./request";

// Journalled terms, whether they are posted already, and what the account's credit pays of them first.
export interface Ready {
  readonly entry: Entry;
  readonly posted: boolean;
  readonly credit: bigint;
}

// Refuse to pay by another amount of credit than its owner was shown. Throws CHANGED.
export function requireShown({ network }: Market, purse: Purse, escrow: bigint, credit: bigint): void {
  const now = creditFor(purse.credit, escrow);
  if (credit === 0n || now === credit) return;
  throw new HearthError("CHANGED", `your credit in Escrow changed, and ${showAmount(now, network.asset)} of it would pay now: nothing was sent`, "look again");
}

// Withdraw credit to the account that posts, and wait for its block. Throws what `carryOut` does.
export async function withdrawFirst(
  market: Market,
  session: Session,
  credit: bigint,
  shown: Shown,
  tell: (step: "withdrawing" | "waiting") => void,
  pause: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const act = {
    ...withdrawing(market.network, shown.account, credit),
    money: "no job is posted yet; what was not withdrawn is your credit still",
    step: async (next: string): Promise<void> => tell(next === "waiting" ? "waiting" : "withdrawing"),
  };
  await carryOut(market, session, act, shown, pause, signal);
}

// What an account signs elsewhere: the post, and before it the withdrawal of what its credit pays.
export function fileOf({ entry: { kept, terms }, credit }: Ready, network: Network): string {
  const post = postCall(network, terms, kept.parents);
  const id = kept.job.slice(2);
  const about = { from: terms.submitter, approve: 0n, chainId: network.chainId };
  const posted = { ...about, approve: network.asset.address === null ? 0n : escrowAtPost(terms), key: `post/${id}` };
  if (credit === 0n) return documentText(post, posted);
  return documentsText([
    [withdrawCall(network, terms.submitter, credit), { ...about, key: `credit/${id}` }],
    [post, posted],
  ]);
}
