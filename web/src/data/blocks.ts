// Blocks from whoever has them: the store of `hearth web`, then gateways. Each is hashed before anybody sees it.
//
// Raw blocks and no CAR: a wrong one is found at once, and the gateway that sent it is named.

import { readBody } from "../chain/body";
import type { Bytes, Cid } from "../core/cid";
import { HearthError } from "../core/errors";
import type { Source } from "../core/unixfs";
import { MAX_BLOCK_BYTES } from "../generated/cid";
import { askLocal, type Opened } from "./opened-with";

// What a giver did, for whoever is shown it.
export interface Giver {
  readonly name: string;
  blocks: number;
  bytes: number;
  lastFault: string;
}

type Give = (cid: Cid, signal: AbortSignal) => Promise<Response>;

const DEADLINE = 20_000;
const AT_ONCE = 6;
const WAIT_AFTER_FAULT = 30_000;

// Several givers as one source, asked in turn; one that failed is asked last for a while.
export class Blocks {
  readonly givers: readonly (Giver & { readonly give: Give; restingUntil: number })[];
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(opened: Opened, gateways: readonly string[]) {
    const local = opened.by === "hearth web" ? [giver("your store", ofLocal)] : [];
    this.givers = [...local, ...gateways.map((url) => giver(new URL(url).origin, ofGateway(url)))];
  }

  // Return a block. Throws BLOCK_CORRUPT where the only answers hash to something else, BLOCK_MISSING where nobody has
  // it, STORE_DOWN where nobody answers, NO_GATEWAY where there is nobody to ask.
  readonly source: Source = async (cid) => {
    if (this.givers.length === 0) {
      throw new HearthError("NO_GATEWAY", "nobody is known who could have these files", "open the page by hearth web");
    }
    await this.#enter();
    try {
      return await this.#any(cid);
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  };

  async #enter(): Promise<void> {
    if (this.#running >= AT_ONCE) await new Promise<void>((go) => this.#waiting.push(go));
    this.#running += 1;
  }

  async #any(cid: Cid): Promise<Bytes> {
    const faults: HearthError[] = [];
    const now = performance.now();
    for (const one of [...this.givers].sort((a, b) => Number(a.restingUntil > now) - Number(b.restingUntil > now))) {
      try {
        const bytes = await cid.verify(await taken(one, cid));
        one.blocks += 1;
        one.bytes += bytes.length;
        return bytes;
      } catch (error) {
        if (!(error instanceof HearthError)) throw error;
        if (error.code !== "BLOCK_MISSING") one.lastFault = error.code;
        if (error.code === "STORE_DOWN") one.restingUntil = performance.now() + WAIT_AFTER_FAULT;
        faults.push(new HearthError(error.code, `${one.name}: ${error.message}`, error.hint));
      }
    }
    // The gravest first: who lies, then who may come back, then who does not have it.
    const grave = ["BLOCK_CORRUPT", "TOO_LARGE", "STORE_DOWN", "BLOCK_MISSING"];
    const worst = grave.map((code) => faults.find((fault) => fault.code === code)).find((fault) => fault !== undefined);
    throw new HearthError(worst?.code ?? "BLOCK_MISSING", faults.map((fault) => fault.message).join("; "), "try again later");
  }
}

function giver(name: string, give: Give): Giver & { give: Give; restingUntil: number } {
  return { name, give, blocks: 0, bytes: 0, lastFault: "", restingUntil: 0 };
}

const ofLocal: Give = (cid, signal) => askLocal(`ipfs/${cid}?format=raw`, { signal });

function ofGateway(url: string): Give {
  const base = url.replace(/\/+$/, "");
  return (cid, signal) =>
    fetch(`${base}/ipfs/${cid}?format=raw`, {
      headers: { Accept: "application/vnd.ipld.raw" },
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal,
    });
}

async function taken(one: { give: Give }, cid: Cid): Promise<Bytes> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), DEADLINE);
  try {
    const answer = await one.give(cid, abort.signal);
    if (answer.status === 404 || answer.status === 410) throw new HearthError("BLOCK_MISSING", "it does not have it");
    if (!answer.ok) throw new HearthError("STORE_DOWN", `HTTP ${answer.status}`);
    const bytes = await readBody(answer, MAX_BLOCK_BYTES);
    if (bytes === undefined) throw new HearthError("TOO_LARGE", `more than ${MAX_BLOCK_BYTES} bytes for one block`);
    return bytes;
  } catch (error) {
    if (error instanceof HearthError) throw error;
    throw new HearthError("STORE_DOWN", abort.signal.aborted ? `no block in ${DEADLINE / 1_000} s` : "it cannot be reached");
  } finally {
    clearTimeout(timer);
  }
}
