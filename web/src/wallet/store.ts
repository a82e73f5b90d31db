// A database of the browser that money hangs on: what it has written is on the disk. It is opened anew for each use, so that it
// never stands in the way of another tab.

export class OwnStore {
  constructor(
    private readonly database: string,
    private readonly store: string,
    private readonly keyPath: string,
  ) {}

  // Say whether there is one: to look makes none.
  async exists(): Promise<boolean> {
    return (await indexedDB.databases()).some(({ name }) => name === this.database);
  }

  async use<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const { database, store, keyPath } = this;
    const open = await new Promise<IDBDatabase>((done, fail) => {
      const asked = indexedDB.open(database, 1);
      asked.onupgradeneeded = () => asked.result.createObjectStore(store, { keyPath });
      asked.onsuccess = () => done(asked.result);
      asked.onerror = asked.onblocked = () => fail(asked.error ?? new Error("it does not open"));
    });
    try {
      return await new Promise<T>((done, fail) => {
        const transaction = open.transaction(store, mode, { durability: "strict" });
        const asked = act(transaction.objectStore(store));
        transaction.oncomplete = () => done(asked.result);
        transaction.onabort = transaction.onerror = () => fail(transaction.error ?? asked.error ?? new Error("not written"));
      });
    } finally {
      open.close();
    }
  }
}
