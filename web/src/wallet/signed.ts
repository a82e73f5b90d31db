// Which calls of files this browser had signed, so that a file that is opened twice does not pay twice. A record is written, and
// on the disk, before the wallet is asked; it goes again where it is known that nothing was sent.

import { sha256, toHex, utf8 } from "../core/bytes";
import { HearthError } from "../core/errors";
import type { Network } from "../core/network";
import type { Prepared } from "../core/prepared";
import { OwnStore } from "./store";

// `done` once a block has it; `at` is the second of the block at which it was asked for.
export interface Signed {
  readonly id: string;
  readonly at: number;
  readonly done: boolean;
  // How many transactions the account had sent when it was asked for, where the answer was a refusal.
  readonly refused?: number;
}

// Where records lie. What it resolves is written for good.
export interface SignedShelf {
  get(id: string): Promise<unknown>;
  put(record: Signed): Promise<void>;
  drop(id: string): Promise<void>;
}

// Name what a call does on a market, and for whom. Two files of the same call are one.
export async function signedId(call: Prepared, { chainId, genesisHash }: Network): Promise<string> {
  const { from, to, data, value } = call;
  return toHex(await sha256(utf8(JSON.stringify([String(chainId), genesisHash, from, to, data, String(value)]))));
}

export class SignedCalls {
  constructor(private readonly shelf: SignedShelf) {}

  // What is known of a call; undefined for nothing. Throws JOURNAL_DOWN where nothing can be kept: nothing may be signed then.
  async find(id: string): Promise<Signed | undefined> {
    const raw = (await this.shelf.get(id).catch(down)) as Partial<Signed> | undefined;
    if (raw === undefined) return undefined;
    // A record that cannot be read stands for a call that may have been sent.
    const { at, done, refused } = raw;
    const known = { id, at: isCount(at) ? at : 0, done: done === true };
    return isCount(refused) && !known.done ? { ...known, refused } : known;
  }

  write(record: Signed): Promise<void> {
    return this.shelf.put(record).catch(down);
  }

  drop(id: string): Promise<void> {
    return this.shelf.drop(id).catch(down);
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function down(error: unknown): never {
  const why = error instanceof Error && error.message !== "" ? error.message : "it does not say why";
  throw new HearthError(
    "JOURNAL_DOWN",
    `this browser keeps nothing for this page (${why}), so that a file could be paid twice: nothing is signed`,
    "open the page in a window that is not private, or free some disk",
  );
}

// ---- in the browser ----

// A database of its own, which no clearing of caches touches.
const STORE = new OwnStore("hearth.signed", "signed", "id");
export const browserSigned: SignedShelf = {
  get: (id) => STORE.use<unknown>("readonly", (store) => store.get(id)),
  put: async (record) => {
    await STORE.use("readwrite", (store) => store.put(record));
  },
  drop: async (id) => {
    await STORE.use("readwrite", (store) => store.delete(id));
  },
};
