// Escrow's books as its events tell them, and how they differ from what storage says. Mirrors Books, _compare_books and
// _compare_holds of hearth/client/audit/verify.py. Amounts are base units.

import { type Hex, hexWord } from "./bytes";
import type { MarketEvent } from "./events";
import { shownKey } from "./sentences";
import { unpackShare } from "./words";

// Amounts of locks, by controller and key.
export type Locks = ReadonlyMap<Hex, ReadonlyMap<Hex, bigint>>;

// What storage says, at the block of the books: of each lock and credit that they tell, of Escrow's balance in the
// market's asset, and what Escrow itself counts, which is 0 in a native market.
export interface StoredBooks {
  readonly locks: Locks;
  readonly credits: ReadonlyMap<Hex, bigint>;
  readonly held: bigint;
  readonly tracked: bigint;
}

export class Books {
  readonly #locks = new Map<Hex, Map<Hex, bigint>>();
  readonly #credits = new Map<Hex, bigint>();

  // Book one event.
  apply(event: MarketEvent): void {
    switch (event.name) {
      case "CreditLocked":
        this.#lock(event.controller, event.key, event.amount);
        this.#credit(event.controller, -event.amount);
        break;
      case "Locked":
        this.#lock(event.controller, event.key, event.amount);
        break;
      case "Split":
        for (const { account, amount } of event.shares.map(unpackShare)) {
          this.#credit(account, amount);
          this.#lock(event.controller, event.key, -amount);
        }
        break;
      case "Withdrawn":
        this.#credit(event.account, -event.amount);
        break;
      default:
        break;
    }
  }

  get locks(): Locks {
    return new Map([...this.#locks].map(([controller, keys]) => [controller, new Map(keys)]));
  }

  get credits(): ReadonlyMap<Hex, bigint> {
    return new Map(this.#credits);
  }

  // What a controller has locked under a key, 0 for nothing.
  locked(controller: Hex, key: Hex): bigint {
    return this.#locks.get(controller)?.get(key) ?? 0n;
  }

  // What Escrow owes: every lock and every credit.
  get total(): bigint {
    const locks = [...this.#locks.values()].map((keys) => sum(keys.values()));
    return sum(locks) + sum(this.#credits.values());
  }

  #lock(controller: Hex, key: Hex, amount: bigint): void {
    let keys = this.#locks.get(controller);
    if (keys === undefined) this.#locks.set(controller, (keys = new Map()));
    keys.set(key, (keys.get(key) ?? 0n) + amount);
  }

  #credit(account: Hex, amount: bigint): void {
    this.#credits.set(account, (this.#credits.get(account) ?? 0n) + amount);
  }
}

// Return every difference between the books and storage, and whether Escrow holds what it owes. `token` says that the
// market's asset is a token, of which Escrow counts what it has.
export function bookFaults(books: Books, stored: StoredBooks, token: boolean): string[] {
  const faults: string[] = [];
  for (const [controller, keys] of books.locks) {
    for (const [key, amount] of keys) {
      const found = stored.locks.get(controller)?.get(key) ?? 0n;
      if (found !== amount) {
        faults.push(`lock ${key.slice(2, 18)} of ${controller}: events say ${amount}, storage ${found}`);
      }
    }
  }
  for (const [account, amount] of books.credits) {
    const found = stored.credits.get(account) ?? 0n;
    if (found !== amount) faults.push(`credit of ${account}: events say ${amount}, storage ${found}`);
  }
  const owed = books.total;
  if (stored.held < owed) faults.push(`Escrow holds ${stored.held} and owes ${owed}: short by ${owed - stored.held}`);
  if (token && stored.tracked !== owed) faults.push(`Escrow tracks ${stored.tracked} and owes ${owed}`);
  return faults;
}

// Return how what the job registry locks under each key differs from what the units of that submitter's jobs hold. Also
// keys that no job is known of are looked at: nothing may lie there. `stored` are the registry's locks by key.
export function holdFaults(
  books: Books,
  holds: ReadonlyMap<Hex, bigint>,
  registry: Hex,
  stored: ReadonlyMap<Hex, bigint>,
): string[] {
  const wanted = new Set([...holds.keys(), ...(books.locks.get(registry)?.keys() ?? [])]);
  return [...wanted].flatMap((key) => {
    const locked = stored.get(key) ?? 0n;
    const held = holds.get(key) ?? 0n;
    if (locked === held) return [];
    return [`lock of ${shownKey(key)} is ${locked}, the units of these jobs hold ${held}`];
  });
}

// Return the nodes whose stake is not what is locked for them; `registry` is the node registry's address.
export function stakeFaults(books: Books, nodes: Iterable<{ id: number; stake: bigint }>, registry: Hex): string[] {
  return [...nodes].flatMap(({ id, stake }) => {
    const locked = books.locked(registry, hexWord(id));
    return locked === stake ? [] : [`node ${id} has a stake of ${stake}, and ${locked} is locked for it`];
  });
}

const sum = (amounts: Iterable<bigint>): bigint => {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
};
