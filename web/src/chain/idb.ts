// The store of the browser: heads and texts in IndexedDB. A private window, blocked storage or a full disk make its
// promises fail, which means that nothing is kept.

import type { Head, Store } from "./visit-store";

const NAME = "hearth";
// Raised with the form of what is kept: what another version wrote is dropped.
const FORM = 1;
const HEADS = "heads";
const TEXTS = "texts";

export class IdbStore implements Store {
  #opening: Promise<IDBDatabase> | undefined;

  // Even to name the factory throws where storage is blocked.
  constructor(private readonly factory: () => IDBFactory = () => indexedDB) {}

  async heads(): Promise<readonly unknown[]> {
    const [heads] = stores(await this.#open(), "readonly", HEADS);
    return answer((heads as IDBObjectStore).getAll());
  }

  async text(id: string): Promise<unknown> {
    const [texts] = stores(await this.#open(), "readonly", TEXTS);
    return answer((texts as IDBObjectStore).get(id));
  }

  async write(puts: readonly { readonly head: Head; readonly text?: string }[], drops: readonly string[]): Promise<void> {
    const [heads, texts] = stores(await this.#open(), "readwrite", HEADS, TEXTS) as [IDBObjectStore, IDBObjectStore];
    for (const { head, text } of puts) {
      if (text !== undefined) {
        heads.put(head);
        texts.put(text, head.id);
        continue;
      }
      // Another tab may have dropped it.
      const there = heads.getKey(head.id);
      there.onsuccess = () => {
        if (there.result !== undefined) heads.put(head);
      };
    }
    for (const id of drops) {
      heads.delete(id);
      texts.delete(id);
    }
    await done(heads.transaction);
  }

  // Other tabs close the database when they hear of it, and keep nothing from then on.
  async erase(): Promise<void> {
    const open = await this.#opening?.catch(() => undefined);
    this.#opening = Promise.reject(new Error("it was erased"));
    this.#opening.catch(() => undefined);
    open?.close();
    await answer(this.factory().deleteDatabase(NAME));
  }

  #open(): Promise<IDBDatabase> {
    this.#opening ??= new Promise((resolve, reject) => {
      const opening = this.factory().open(NAME, FORM);
      opening.onupgradeneeded = () => {
        const made = opening.result;
        for (const name of made.objectStoreNames) made.deleteObjectStore(name);
        made.createObjectStore(HEADS, { keyPath: "id" });
        made.createObjectStore(TEXTS);
      };
      opening.onsuccess = () => {
        opening.result.onversionchange = () => opening.result.close();
        resolve(opening.result);
      };
      opening.onerror = opening.onblocked = () => reject(opening.error ?? new Error("it does not open"));
    });
    return this.#opening;
  }
}

function stores(open: IDBDatabase, mode: IDBTransactionMode, ...names: string[]): IDBObjectStore[] {
  // What is lost with the machine's power is read again.
  const transaction = open.transaction(names, mode, { durability: "relaxed" });
  return names.map((name) => transaction.objectStore(name));
}

function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("no answer"));
  });
}

function done(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("not written"));
  });
}
