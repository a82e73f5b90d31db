// A file's calls signed and sent, in their order, each once the one before is in a block. What is refused is refused before the
// wallet opens: a call of another account, one that this browser had signed before, and whatever `carryOut` refuses.

import type { Market } from "../chain/market";
import { readPurse, sentBy } from "../chain/calling";
import { APPROVE_GAS, CANCEL_GAS, GOV_GAS, WITHDRAW_GAS } from "../generated/posting";
import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { moment } from "../core/moments";
import { postGas } from "../core/posting";
import type { Network } from "../core/network";
import { type ByCall, ofCall, type Prepared } from "../core/prepared";
import { type Act, type ActStep, carryOut } from "./acting";
import type { Call } from "./calls";
import { ownerGas } from "./owner-calls";
import type { Session, Shown } from "./request";
import { type Signed, SignedCalls, signedId } from "./signed";

// How far a file has come: the place of the call that is signed now, and how many there are.
export type Tell = (place: number, step: ActStep | "skipped") => void;

export class PreparedCalls {
  constructor(
    private readonly market: Market,
    private readonly session: Session,
    private readonly signed: SignedCalls,
    private readonly tell: Tell,
    private readonly pause: () => Promise<void>,
    private readonly signal: AbortSignal,
  ) {}

  // Sign all calls of a file. Those of them that this browser had signed, and that a block has, are left out, so that a file that
  // stopped half way goes on. `again` signs them all once more. Throws NOT_SENDER, SIGNED_BEFORE, JOURNAL_DOWN, BUSY, and what
  // `carryOut` throws.
  async sign(calls: readonly Prepared[], shown: Shown, again: boolean): Promise<void> {
    requireSender(calls, shown.account);
    const ids = await Promise.all(calls.map((one) => signedId(one, this.market.network)));
    await this.#alone(shown.account, async () => {
      const known = again ? [] : await Promise.all(ids.map((id) => this.#known(id, shown.account)));
      if (known.length > 0 && known.every((one) => one?.done === true)) throw before(known[0]?.at ?? 0, "was signed here and is in a block");
      for (const [place, call] of calls.entries()) {
        const found = known[place];
        if (found?.done === true && (await this.#isDueAgain(call))) await this.#one(call, ids[place] as string, place, shown, true);
        else if (found?.done === true) this.tell(place, "skipped");
        else if (found !== undefined) throw maybe(found);
        else await this.#one(call, ids[place] as string, place, shown, again);
      }
    });
  }

  async #one(call: Prepared, id: string, place: number, shown: Shown, again: boolean): Promise<void> {
    const { time } = await this.market.head();
    if (call.contract === "token" && (await this.#isAllowed(call))) {
      this.tell(place, "skipped");
      return;
    }
    const earlier = await this.#known(id, shown.account);
    if (earlier !== undefined && !again) throw maybe(earlier);
    let asked: { readonly refused: number } | "unknown" | undefined;
    // The record is on the disk before the wallet is asked for the call itself: an approval moves nothing.
    const step = async (next: ActStep): Promise<void> => {
      this.tell(place, next);
      if (next !== "signing") return;
      await this.signed.write({ id, at: time, done: false });
      const count = await sentBy(this.market, shown.account).catch(() => undefined);
      asked = count === undefined ? "unknown" : { refused: count.sent };
    };
    try {
      await carryOut(this.market, this.session, { ...actOf(call, this.market), step }, shown, this.pause, this.signal);
    } catch (error) {
      // That nothing was sent now says nothing of an earlier time.
      if (isUnsent(error)) await (earlier === undefined ? this.#refused(error, { id, at: time, done: false }, asked) : this.signed.write(earlier));
      throw error;
    }
    await this.signed.write({ id, at: time, done: true });
  }

  // A refusal may be a relay's, behind which the wallet sends it all the same: its record stays, with what the account had sent until
  // then. What the wallet was not asked for leaves none.
  async #refused(error: unknown, record: Signed, asked: { readonly refused: number } | "unknown" | undefined): Promise<void> {
    if (asked === undefined || !(error instanceof HearthError) || error.code !== "USER_REFUSED") return this.signed.drop(record.id);
    return this.signed.write(asked === "unknown" ? record : { ...record, ...asked });
  }

  // What is known of a call: nothing, where it was refused and its account has sent nothing since.
  async #known(id: string, account: Hex): Promise<Signed | undefined> {
    const found = await this.signed.find(id);
    if (found?.refused === undefined) return found;
    const count = await sentBy(this.market, account).catch(() => undefined);
    return count?.sent === found.refused ? undefined : found;
  }

  // Whether an account has as much credit again as a call that is in a block withdrew to it: another file may name the same amount, and
  // what follows there counts on it.
  async #isDueAgain({ contract, function: name, args, from }: Prepared): Promise<boolean> {
    if (contract !== "Escrow" || name !== "withdraw" || String(args["to"]).toLowerCase() !== from) return false;
    const { credit } = await readPurse(this.market, await this.market.head(), from);
    return credit >= (args["amount"] as bigint);
  }

  // Whether the contract that an approval names may take as much already.
  async #isAllowed({ args, from }: Prepared): Promise<boolean> {
    const { allowance } = await readPurse(this.market, await this.market.head(), from, args["spender"] as Hex);
    return allowance >= (args["amount"] as bigint);
  }

  // One tab at a time signs files of an account: two may hold the same call. Throws BUSY.
  async #alone(name: string, act: () => Promise<void>): Promise<void> {
    return navigator.locks.request(`hearth.sign/${name}`, { ifAvailable: true }, async (lock) => {
      if (lock === null) throw new HearthError("BUSY", "a file of this account is being signed in another tab, or was a moment ago here", "finish it there");
      return act();
    });
  }
}

// Refuse to sign what was made for another account. Throws NOT_SENDER.
export function requireSender(calls: readonly Prepared[], account: Hex): void {
  const other = calls.find(({ from }) => from !== account);
  if (other === undefined) return;
  throw new HearthError(
    "NOT_SENDER",
    `the file was made for ${other.from}, and the wallet has ${account}: nothing was sent`,
    "pick that account in the wallet, or send the file to whoever has it",
  );
}

// The gas of a call at most, by what the command keeps for it.
const GAS: ByCall<(call: Call, network: Network) => bigint> = {
  JobRegistry: { post: (_, network) => postGas(network), cancel: () => CANCEL_GAS, accept: () => CANCEL_GAS },
  NodeRegistry: {
    register: ownerGas,
    add_stake: ownerGas,
    update_offer: ownerGas,
    set_ask: ownerGas,
    set_operator: ownerGas,
    offer_owner: ownerGas,
    accept_owner: ownerGas,
    exit_start: ownerGas,
    exit_cancel: ownerGas,
    exit_finish: ownerGas,
  },
  Escrow: { withdraw: () => WITHDRAW_GAS },
  Steward: {
    queue: () => GOV_GAS,
    drop: () => GOV_GAS,
    drop_previous_policy: () => GOV_GAS,
    pause: () => GOV_GAS,
    accept_council: () => GOV_GAS,
    execute: () => GOV_GAS,
    accept_governor: () => GOV_GAS,
  },
  token: { approve: () => APPROVE_GAS },
};
const LABELS: Readonly<Record<Prepared["contract"], string>> = {
  JobRegistry: "jobs",
  NodeRegistry: "nodes",
  Escrow: "escrow",
  Steward: "steward",
  token: "token",
};

// What a call is, as it is carried out.
export function actOf(prepared: Prepared, { network }: Pick<Market, "network">): Act {
  const { contract, to, data, value, approve } = prepared;
  const call = { to, data, value, label: `${LABELS[contract]}.${prepared.function}` };
  return {
    call,
    what: call.label,
    gas: ofCall(GAS, prepared)(call, network),
    money: "open the wallet and look whether it was sent; what was not is in your account, or in Escrow, as before",
    pays: value > 0n ? value : approve,
  };
}

// Errors behind which something may have been sent; behind all others nothing was, as far as the wallet's word goes. That it failed is the RPC's word alone.
const MAYBE_SENT: ReadonlySet<string> = new Set(["WALLET_FAILED", "WALLET_GONE", "UNSUPPORTED", "STOPPED", "TX_FAILED"]);
const isUnsent = (error: unknown): boolean => error instanceof HearthError && !MAYBE_SENT.has(error.code);

const maybe = ({ at, refused }: Signed): HearthError =>
  before(at, refused === undefined ? "may have been sent from here" : "was refused here, and the account has sent something since that may be it");

function before(at: number, why: string): HearthError {
  return new HearthError(
    "SIGNED_BEFORE",
    `this ${why}, at ${moment(at)}: nothing was sent now`,
    "look at the chain, then say that you sign it again",
  );
}
