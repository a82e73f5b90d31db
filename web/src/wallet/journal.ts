// The journal of posted terms: one record a job, written before the wallet opens. Mirrors hearth/client/records.py.
//
// It is why the same job file after a reload, a closed tab or a lost receipt finds its job instead of paying twice: the salt is
// in the terms, so that the same terms have one id, which the chain takes once.

import type { Overview } from "../chain/lens";
import { type Hex, hexWord } from "../core/bytes";
import { HearthError } from "../core/errors";
import { hasTime } from "../core/lapse";
import type { Network } from "../core/network";
import { parentsHash } from "../core/parents";
import { fingerprintOf } from "../core/posting";
import { jobIdOfWords } from "../core/terms";
import type { Terms } from "../core/types";
import { packTerms, type TermsWords, unpackPolicy, unpackTerms } from "../core/words";
import { OwnStore } from "./store";

// What is kept of a job. Words are 0x-hex of 32 bytes; `hash` is the transaction that the wallet named last, "" before.
export interface Kept {
  readonly schema: "hearth.web.posted/1";
  readonly job: Hex;
  // Which market: the chain id of its ids, and JobRegistry.
  readonly market: string;
  readonly fingerprint: Hex;
  readonly name: string;
  readonly account: Hex;
  readonly spec: string;
  readonly terms: readonly Hex[];
  readonly parents: readonly Hex[];
  readonly block: { readonly number: number; readonly hash: Hex; readonly time: number };
  readonly hash: Hex | "";
  readonly seen: boolean;
}

// Where records lie. What it resolves is written for good.
export interface Shelf {
  all(): Promise<readonly unknown[]>;
  put(record: Kept): Promise<void>;
  drop(job: Hex): Promise<void>;
}

// A record and the terms in it.
export interface Entry {
  readonly kept: Kept;
  readonly terms: Terms;
}

export class Journal {
  constructor(
    private readonly shelf: Shelf,
    private readonly network: Network,
  ) {}

  // Journal terms that are about to be posted. Throws JOURNAL_DOWN where nothing can be kept: nothing may be signed then.
  async write(given: Pick<Kept, "fingerprint" | "name" | "spec" | "parents" | "block">, terms: Terms): Promise<Entry> {
    const packed = packTerms(terms);
    const kept: Kept = {
      schema: "hearth.web.posted/1",
      job: jobIdOfWords(this.network.jobChainId, this.network.contracts.JobRegistry, packed),
      market: marketOf(this.network),
      account: terms.submitter,
      terms: packed.map((word) => (typeof word === "bigint" ? hexWord(word) : word)),
      hash: "",
      seen: false,
      ...given,
    };
    await this.#put(kept);
    return { kept, terms };
  }

  // The records of this market whose job's end nobody saw, newest first; of one fingerprint, or all. Throws JOURNAL_DOWN.
  async unseen(fingerprint?: Hex): Promise<Entry[]> {
    const all = await this.shelf.all().catch(down);
    return all
      .flatMap((raw) => entryOf(raw, this.network) ?? [])
      .filter(({ kept }) => !kept.seen && (fingerprint === undefined || kept.fingerprint === fingerprint))
      .sort((a, b) => b.kept.block.time - a.kept.block.time || b.kept.block.number - a.kept.block.number);
  }

  // Say whether a job of these terms, whoever posts it, is journalled and its end not seen; `deadline` is that of its file. Throws
  // JOURNAL_DOWN.
  async holds(terms: Terms, deadline: string | null): Promise<boolean> {
    for (const { kept } of await this.unseen()) {
      if (kept.fingerprint === (await fingerprintOf({ ...terms, submitter: kept.account }, deadline))) return true;
    }
    return false;
  }

  // Note the transaction that a wallet named.
  async sent(entry: Entry, hash: Hex): Promise<void> {
    await this.#put({ ...entry.kept, hash });
  }

  // Note that a job's end was shown, so that the same file makes a new job.
  async see(job: Hex): Promise<void> {
    for (const { kept } of await this.unseen()) if (kept.job === job) await this.#put({ ...kept, seen: true });
  }

  // Forget terms that can no longer be posted.
  async forget(job: Hex): Promise<void> {
    await this.shelf.drop(job).catch(down);
  }

  async #put(kept: Kept): Promise<void> {
    await this.shelf.put(kept).catch(down);
  }
}

// What becomes of journalled terms: posted already; still to be posted as they are; or never again, with the reason.
export type Fate = { readonly is: "posted" } | { readonly is: "open" } | { readonly is: "over"; readonly why: string };

// Say it by the job's own word on chain and the market at the same block. Terms that the chain has not seen are posted again
// only while it would still take them. Until then they may be on their way, and others beside them would be a second job.
export function fateOf(terms: Terms, word: bigint, { policy, previousPolicy, previousUntil, time }: Overview): Fate {
  if (word !== 0n) return { is: "posted" };
  if (terms.policy !== policy && !(terms.policy === previousPolicy && time < previousUntil)) {
    return { is: "over", why: "the market's parameters have changed since, and it takes these terms no more" };
  }
  if (!hasTime(terms, unpackPolicy(terms.policy), time)) {
    return { is: "over", why: "their deadline is too near by now for even one attempt" };
  }
  return { is: "open" };
}

// Read a record; undefined for what is none, or another market's, or was altered: its id is recomputed from its terms.
export function entryOf(raw: unknown, network: Network): Entry | undefined {
  try {
    const kept = raw as Kept;
    if (kept.schema !== "hearth.web.posted/1" || kept.market !== marketOf(network)) return undefined;
    const words = kept.terms.map((word, at) => (at === 1 || at === 8 ? word : BigInt(word))) as unknown as TermsWords;
    const terms = unpackTerms(words);
    const id = jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, words);
    const same = id === kept.job && terms.submitter === kept.account && terms.parentsHash === parentsHash(kept.parents);
    const formed = Number.isSafeInteger(kept.block.time) && /^(?:0x[0-9a-f]{64})?$/.test(kept.hash) && typeof kept.name === "string";
    return same && formed ? { kept, terms } : undefined;
  } catch {
    return undefined;
  }
}

const marketOf = (network: Network): string => `${network.jobChainId}/${network.contracts.JobRegistry}`;

function down(error: unknown): never {
  const why = error instanceof Error && error.message !== "" ? error.message : "it does not say why";
  throw new HearthError(
    "JOURNAL_DOWN",
    `this browser keeps nothing for this page (${why}), so that a lost answer could be paid twice: nothing is signed`,
    "open the page in a window that is not private, or free some disk",
  );
}

// ---- in the browser ----

// The journal's own database, which no clearing of caches touches.
const STORE = new OwnStore("hearth.posted", "posted", "job");
// What was posted here, [] where nothing ever was.
export const everPosted = async (): Promise<readonly unknown[]> => ((await STORE.exists()) ? browserShelf.all() : []);
export const browserShelf: Shelf = {
  all: () => STORE.use<unknown[]>("readonly", (store) => store.getAll()),
  put: async (record) => {
    await STORE.use("readwrite", (store) => store.put(record));
  },
  drop: async (job) => {
    await STORE.use("readwrite", (store) => store.delete(job));
  },
};
