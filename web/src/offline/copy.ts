// A browser's own copy of the page's build: one build at a time, whole, by the digest of the list of its files' digests.
//
// Only what that list names is ever in it: no token, no block, no answer of an RPC. It is loaded into the service worker alone,
// whose script imports nothing, so nothing is imported here.

const PREFIX = "hearth.build.";
const LIST = "files.json";
const MAX_FILES = 200;
const NAME = /^[a-zA-Z0-9_-]+(?:[./][a-zA-Z0-9_-]+)*$/;
const DIGEST = /^[0-9a-f]{64}$/;

export const INDEX = "index.html";

type Store = Pick<CacheStorage, "keys" | "open" | "delete">;

export class Copy {
  // Another copy of this page may lie beside it, at another path of the same host.
  readonly #prefix: string;
  #busy: Promise<unknown> = Promise.resolve();

  constructor(
    // The folder that the page is in, with a slash at the end.
    private readonly base: string,
    private readonly store: Store,
    private readonly ask: (url: string, init: RequestInit) => Promise<Response>,
  ) {
    this.#prefix = `${PREFIX}${base} `;
  }

  // Make the copy that of the build which the server has now, and say whether it was another one. The old one goes before the
  // new one comes: where that cannot be had whole, there is none.
  sync(): Promise<boolean> {
    const next = this.#busy.then(() => this.#sync());
    this.#busy = next.catch(() => undefined);
    return next;
  }

  // A file of the copy; undefined where there is none.
  async file(name: string): Promise<Response | undefined> {
    for (const key of await this.#keys()) {
      const held = await this.store.open(key);
      // The list comes last: without it the rest is not whole.
      if ((await held.match(this.base + LIST)) !== undefined) return held.match(this.base + name);
    }
    return undefined;
  }

  async #sync(): Promise<boolean> {
    const list = await this.#fetched(LIST);
    const wanted = listOf(list.text);
    // Another program may answer at this address by now: what it says is no build.
    if (wanted === undefined) return false;
    const key = this.#prefix + (await digestOf(list.bytes));
    const before = await this.#keys();
    for (const other of before) if (other !== key) await this.store.delete(other);
    const held = await this.store.open(key);
    if ((await held.match(this.base + LIST)) !== undefined) return false;
    try {
      for (const [name, digest] of wanted) {
        const { bytes, response } = await this.#fetched(name);
        if ((await digestOf(bytes)) !== digest) throw new Error(`${name} is of another build`);
        await held.put(this.base + name, response);
      }
      await held.put(this.base + LIST, list.response);
    } catch (error) {
      await this.store.delete(key);
      throw error;
    }
    return before.some((other) => other !== key);
  }

  async #fetched(name: string): Promise<{ readonly response: Response; readonly bytes: ArrayBuffer; readonly text: string }> {
    const said = await this.ask(this.base + name, { cache: "no-store", credentials: "omit", redirect: "error" });
    if (!said.ok) throw new Error(`${name}: ${said.status}`);
    const bytes = await said.arrayBuffer();
    // Made anew of what was hashed; its headers hold the page's policy.
    return { response: new Response(bytes, { headers: said.headers }), bytes, text: new TextDecoder().decode(bytes) };
  }

  async #keys(): Promise<string[]> {
    return (await this.store.keys()).filter((key) => key.startsWith(this.#prefix));
  }
}

// The digests of a build's files by their names; undefined for what is no such list.
function listOf(text: string): readonly (readonly [string, string])[] | undefined {
  try {
    const found = Object.entries(JSON.parse(text) as object);
    const good = ([name, digest]: [string, unknown]): boolean => NAME.test(name) && typeof digest === "string" && DIGEST.test(digest);
    return found.length > 0 && found.length <= MAX_FILES && found.every(good) && found.some(([name]) => name === INDEX) ? found : undefined;
  } catch {
    return undefined;
  }
}

async function digestOf(bytes: ArrayBuffer): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
