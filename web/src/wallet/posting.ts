// From shown terms to a posted job, exactly once: the order is that of `hearth submit` (hearth/client/posting/post.py). What was
// journalled before is found first; what is new is refused, journalled, tried on the chain, and only then shown to the wallet.

import { dryRun, mined, readPurse } from "../chain/calling";
import { type PostingGround, readGround, requireGates } from "../chain/posting-ground";
import type { Market } from "../chain/market";
import type { AttesterSet } from "../core/attesters";
import { fromHex, type Hex } from "../core/bytes";
import { cidOfDigest } from "../core/cid";
import { HearthError } from "../core/errors";
import { gatesOf } from "../core/fleet";
import { escrowAtPost } from "../core/money";
import { packParents } from "../core/parents";
import { parentsOf } from "../core/plan";
import {
  creditFor,
  draftTerms,
  enoughFor,
  fingerprintOf,
  requireOpen,
  requireParents,
  requirePrice,
  requireTaker,
} from "../core/posting";
import type { ResolvedSpec } from "../core/resolve";
import { type LoadedSpec, located } from "../core/spec";
import type { Terms } from "../core/types";
import { showAmount } from "../core/units";
import { unpackPolicy } from "../core/words";
import { approveExactly, requireNotFailed } from "./approving";
import { type Call, postCall } from "./calls";
import { type Ready, requireShown, withdrawFirst } from "./credit";
import { type Entry, fateOf, type Journal } from "./journal";
import { requireGoing, type Session, type Shown } from "./request";

// A checked job file with its document, and the attesters that it names.
export interface Draft {
  readonly loaded: LoadedSpec;
  readonly document: ResolvedSpec;
  readonly digest: Hex;
  readonly attesters?: AttesterSet | undefined;
}

// What the reader was shown and chose: the escrow beside the button, what of it his credit in Escrow pays first, posting without a
// worker, posting once more.
export interface Choice {
  readonly shown: Shown;
  readonly escrow: bigint;
  readonly credit: bigint;
  readonly anyway: boolean;
  readonly again: boolean;
}

// Where a posting is, for people; and what it came to. `earlier` says that the job had been posted before.
export type Step = "looking" | "journalling" | "withdrawing" | "approving" | "trying" | "signing" | "waiting";
export interface Done {
  readonly job: Hex;
  readonly block: number | undefined;
  readonly earlier: boolean;
}

export class Posting {
  constructor(
    private readonly market: Market,
    private readonly journal: Journal,
    // Undefined where nothing is signed here: `prepare` alone works then.
    private readonly session: Session | undefined,
    private readonly tell: (step: Step, note: string) => void,
    // Waits until the next look at the chain.
    private readonly pause: () => Promise<void>,
    // The reader waits no longer: what was signed goes on.
    private readonly signal: AbortSignal,
    private readonly salt: () => bigint = drawnSalt,
  ) {}

  // Post a job, or find that it was. Throws whatever refuses it, before anything is signed: PAUSED, CHAIN_CHANGED, NO_PARENT,
  // PARENT_ENDED, NO_WORKER, PRICE_TOO_LOW, FUNDS_SHORT, JOURNAL_DOWN, REFUSED, CHANGED, BUSY; and what `Session.send` does.
  async post(draft: Draft, choice: Choice): Promise<Done> {
    const { spec } = draft.loaded;
    this.tell("looking", "");
    const ground = await readGround(this.market, await this.market.head());
    const terms = this.#terms(draft, choice.shown.account, ground);
    const fingerprint = await fingerprintOf(terms, spec.limits.deadline);
    return this.#alone(fingerprint, async () => {
      const known = choice.again ? undefined : await this.#pending(fingerprint, ground);
      if (known?.posted === true) return { job: known.entry.kept.job, block: undefined, earlier: true };
      const wanted = known?.entry.terms ?? terms;
      await this.#require(draft, wanted, ground, choice);
      await this.#requireFunds(wanted, ground, choice.credit);
      const entry = known?.entry ?? (await this.#write(draft, terms, fingerprint, ground));
      return this.#send(entry, choice.shown, known === undefined, choice.credit);
    });
  }

  // Journal a job's terms for an account whose key is elsewhere, and send nothing: the same file gives the same job again, until
  // it is posted. What the account holds is not asked for: it may be paid later. `credit` is what its credit pays first, where it is
  // to. Throws as `post` does.
  async prepare(draft: Draft, account: Hex, choice: Omit<Choice, "shown" | "credit">, fromCredit: boolean): Promise<Ready> {
    const { spec } = draft.loaded;
    this.tell("looking", "");
    const ground = await readGround(this.market, await this.market.head());
    const terms = this.#terms(draft, account, ground);
    const fingerprint = await fingerprintOf(terms, spec.limits.deadline);
    return this.#alone(fingerprint, async () => {
      const known = choice.again ? undefined : await this.#pending(fingerprint, ground);
      if (known?.posted === true) return { ...known, credit: 0n };
      await this.#require(draft, known?.entry.terms ?? terms, ground, choice);
      const credit = fromCredit ? creditFor((await readPurse(this.market, ground.at, account)).credit, escrowAtPost(terms)) : 0n;
      return { entry: known?.entry ?? (await this.#write(draft, terms, fingerprint, ground)), posted: false, credit };
    });
  }

  // Journal new terms under a salt of their own.
  async #write({ loaded }: Draft, terms: Terms, fingerprint: Hex, { at }: PostingGround): Promise<Entry> {
    const { spec } = loaded;
    this.tell("journalling", "");
    const { number, hash, time } = at;
    const about = { fingerprint, name: spec.name, spec: String(cidOfDigest(fromHex(terms.spec))), parents: packParents(parentsOf(spec)) };
    return this.journal.write({ ...about, block: { number, hash, time } }, { ...terms, salt: this.salt() });
  }

  // Sign journalled terms again, as they are; their sources were stored when they were journalled. Throws as `post` does, and OVER
  // where the chain takes them no more.
  async resume(entry: Entry, shown: Shown): Promise<Done> {
    return this.#alone(entry.kept.fingerprint, async () => {
      this.tell("looking", "");
      const ground = await readGround(this.market, await this.market.head());
      const [[word = 0n]] = await this.market.read(ground.at, this.market.jobs([entry.kept.job]));
      const fate = fateOf(entry.terms, word, ground.overview);
      if (fate.is === "posted") return { job: entry.kept.job, block: undefined, earlier: true };
      if (fate.is === "over") throw new HearthError("OVER", `${fate.why}: nothing was paid`, "submit its file again, which makes new terms");
      requireOpen(this.market.network, ground.overview.postsPausedUntil, ground.at.time);
      await this.#requireFunds(entry.terms, ground, 0n);
      return this.#send(entry, shown, false, 0n);
    });
  }

  #terms({ loaded, document, digest, attesters }: Draft, account: Hex, { overview, at }: PostingGround): Terms {
    const now = { policyWord: overview.policy, now: at.time };
    return draftTerms(loaded, document, digest, account, this.market.network, now, attesters);
  }

  // The journalled job of a fingerprint whose end nobody saw, where it is posted or can still be. Throws OVER where the RPC says that
  // it can not: it may hide the job, lag or lie about the time, and new terms would be a second job beside the first. Who knows
  // better says so (`again`).
  async #pending(fingerprint: Hex, { at, overview }: PostingGround): Promise<{ readonly entry: Entry; readonly posted: boolean } | undefined> {
    let over: HearthError | undefined;
    for (const entry of await this.journal.unseen(fingerprint)) {
      const [[word = 0n]] = await this.market.read(at, this.market.jobs([entry.kept.job]));
      const fate = fateOf(entry.terms, word, overview);
      if (fate.is === "posted") return { entry, posted: true };
      if (fate.is === "open") {
        this.tell("looking", "This job was prepared before, and its terms are signed again as they were: it is posted once.");
        return { entry, posted: false };
      }
      over ??= new HearthError(
        "OVER",
        `this job was prepared here before as ${entry.kept.job}, and the RPC says that it was never posted and that ${fate.why}: nothing was sent`,
        "look for that job on another RPC; if it is not there, say that you post a new one",
      );
    }
    if (over !== undefined) throw over;
    return undefined;
  }

  async #require(draft: Draft, terms: Terms, ground: PostingGround, { anyway, escrow }: Pick<Choice, "anyway" | "escrow">): Promise<void> {
    const { network } = this.market;
    const { spec } = draft.loaded;
    const policy = unpackPolicy(terms.policy);
    requireOpen(network, ground.overview.postsPausedUntil, ground.at.time);
    const parents = parentsOf(spec);
    if (parents.length > 0) {
      const [words] = await this.market.read(ground.at, this.market.jobs(parents.map(({ job }) => job)));
      try {
        requireParents(parents, words, network);
      } catch (error) {
        throw error instanceof HearthError ? located(draft.loaded, error) : error;
      }
    }
    await requireGates(this.market, ground, terms, policy);
    if (!anyway) requireTaker(gatesOf(ground.fleet, terms, policy), enoughFor(spec, ground.fleet, terms, policy, network.asset));
    if (escrowAtPost(terms) === escrow) return;
    const now = showAmount(escrowAtPost(terms), network.asset);
    throw new HearthError("CHANGED", `the market's parameters changed, and it would take ${now} now: nothing was sent`, "look again");
  }

  async #requireFunds(terms: Terms, ground: PostingGround, credit: bigint): Promise<void> {
    const purse = await readPurse(this.market, ground.at, terms.submitter);
    const escrow = escrowAtPost(terms);
    requireShown(this.market, purse, escrow, credit);
    requirePrice(terms.submitter, this.market.network, purse, escrow, credit, ground.fees);
  }

  async #send({ kept, terms }: Entry, shown: Shown, fresh: boolean, credit: bigint): Promise<Done> {
    const { network } = this.market;
    if (terms.submitter !== shown.account) {
      throw new HearthError("CHANGED", `these terms are ${terms.submitter}'s, and the wallet has ${shown.account}: nothing was sent`, "pick that account");
    }
    let asked = false;
    try {
      const step = (next: Step): void => this.tell(next, "");
      if (credit > 0n) await withdrawFirst(this.market, this.#wallet(), credit, shown, step, this.pause, this.signal);
      const { address } = network.asset;
      if (address !== null) {
        const approval = { token: address, spender: network.contracts.JobRegistry, amount: escrowAtPost(terms) };
        const asking = async (): Promise<void> => this.tell("approving", "");
        asked = await approveExactly(this.market, this.#wallet(), approval, shown, asking, (money) => this.#wait(money), this.signal);
      }
      const call = postCall(network, terms, kept.parents);
      this.tell("trying", "");
      await dryRun(this.market, call, shown.account);
      requireGoing(this.signal);
      asked = true;
      return await this.#signed({ kept, terms }, call, shown);
    } catch (error) {
      // Terms that no wallet has seen are nobody's.
      if (fresh && !asked) await this.journal.forget(kept.job);
      throw error;
    }
  }

  // Have the post signed, and wait until the chain has the job: by its id, whatever the wallet answers or does not.
  async #signed(entry: Entry, call: Call, shown: Shown): Promise<Done> {
    const { job } = entry.kept;
    const money =
      `if it was sent all the same, the money is in Escrow for job ${job}, which this page finds by its id, and cancelling ` +
      "returns it; else it is in your account";
    this.tell("signing", "");
    let hash: Hex | undefined;
    let failed: { readonly error: unknown } | undefined;
    this.#wallet().send(call, shown, money, this.signal).then(
      async (found) => {
        hash = found;
        this.tell("waiting", `transaction ${found}`);
        await this.journal.sent(entry, found).catch(() => undefined);
      },
      (error: unknown) => {
        failed = { error };
      },
    );
    for (;;) {
      if (await this.#isThere(job)) {
        const found = hash === undefined ? undefined : await mined(this.market, hash).catch(() => undefined);
        return { job, block: found?.block, earlier: false };
      }
      if (failed !== undefined) throw failed.error;
      if (hash !== undefined) await requireNotFailed(this.market, hash, "the escrow is in your account: its gas alone is gone");
      await this.#wait(money);
    }
  }

  #wallet(): Session {
    if (this.session === undefined) throw new HearthError("NO_ACCOUNT", "no wallet is connected: nothing was sent", "connect one");
    this.session.requireMarket(this.market.network);
    return this.session;
  }

  // While money may be on its way an RPC that fails is asked again, and ends nothing.
  async #isThere(job: Hex): Promise<boolean> {
    try {
      const [[word = 0n]] = await this.market.read(await this.market.head(), this.market.jobs([job]));
      return word !== 0n;
    } catch {
      return false;
    }
  }

  async #wait(money: string): Promise<void> {
    await this.pause();
    if (this.signal.aborted) throw new HearthError("STOPPED", `this page waits no longer; ${money}`, "it stands among the unfinished jobs");
  }

  // One tab at a time posts a job: two would each draw a salt, and post it twice. Throws BUSY.
  async #alone<T>(fingerprint: Hex, act: () => Promise<T>): Promise<T> {
    return navigator.locks.request(`hearth.post/${fingerprint}`, { ifAvailable: true }, async (lock) => {
      if (lock === null) throw new HearthError("BUSY", "this job is being posted in another tab, or was a moment ago here", "finish it there");
      return act();
    });
  }
}

// 96 bits by chance, so that nobody can post the same terms first.
function drawnSalt(): bigint {
  const drawn = crypto.getRandomValues(new Uint8Array(12));
  return drawn.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}
