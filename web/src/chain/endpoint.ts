// One JSON-RPC provider over fetch, which may be slow, broken or hostile: what it costs is bounded.
//
// An answer has a deadline for all of it, a cap in bytes, the ids that were asked, and a shape. Whatever fails any of
// this is a ProviderFailed; what the provider itself answers as an error is an answer.

import { readBody } from "./body";

export interface Ask {
  readonly method: string;
  readonly params: readonly unknown[];
}

// A result, or JSON-RPC's error object, whose `data` are as the provider wrote them: `core/revert.ts` reads them.
export type Said =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: number; readonly message: string; readonly data: unknown };

// One provider did not answer, or not in the form that was asked for; another may.
export class ProviderFailed extends Error {
  override readonly name = "ProviderFailed";

  constructor(
    readonly provider: string,
    readonly why: string,
    // Milliseconds that it asked to be left alone.
    readonly wait = 0,
    // Whether less would have been answered.
    readonly tooMuch = false,
  ) {
    super(`${provider}: ${why}`);
  }
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const MAX_ANSWER = 16 * 2 ** 20;
const MAX_WAIT = 60_000;
const MAX_MESSAGE = 500;

export class Endpoint {
  // The URL's origin: what comes after it often is a key, and is never shown.
  readonly name: string;
  #id = 0;
  // Whether it takes several requests in one; found out by its first refusal.
  #batches = true;

  constructor(
    private readonly url: string,
    private readonly timeout: number,
    private readonly ask: Fetch,
  ) {
    this.name = new URL(url).origin;
  }

  // Ask several things at once and return what was said to each, in order. Throws ProviderFailed.
  async send(asks: readonly Ask[]): Promise<Said[]> {
    if (asks.length > 1 && this.#batches) {
      const bodies = asks.map((one) => this.#body(one));
      const answer = await this.#post(bodies);
      if (Array.isArray(answer)) return this.#sorted(bodies, answer);
      this.#batches = false;
    }
    const said: Said[] = [];
    for (const one of asks) {
      const body = this.#body(one);
      said.push(...this.#sorted([body], [await this.#post(body)]));
    }
    return said;
  }

  #body(one: Ask): { id: number; [name: string]: unknown } {
    this.#id += 1;
    return { jsonrpc: "2.0", id: this.#id, method: one.method, params: one.params };
  }

  async #post(body: unknown): Promise<unknown> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), this.timeout);
    try {
      const answer = await this.ask(this.url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: abort.signal,
      });
      if (answer.status === 413) throw new ProviderFailed(this.name, "it is asked for too much", 0, true);
      const bytes = await readBody(answer, MAX_ANSWER);
      if (bytes === undefined) throw new ProviderFailed(this.name, `an answer of more than ${MAX_ANSWER} bytes`, 0, true);
      if (answer.status === 429) throw new ProviderFailed(this.name, "it is asked too often", waitOf(answer));
      const parsed = parsedOrNone(new TextDecoder().decode(bytes));
      // Many say what is wrong in JSON-RPC's form, under any status.
      if (parsed === undefined) throw new ProviderFailed(this.name, `HTTP ${answer.status}, and no JSON`, waitOf(answer));
      return parsed;
    } catch (error) {
      if (error instanceof ProviderFailed) throw error;
      throw new ProviderFailed(this.name, abort.signal.aborted ? `no answer in ${this.timeout} ms` : "it cannot be reached");
    } finally {
      clearTimeout(timer);
    }
  }

  #sorted(bodies: readonly { id: number }[], answers: readonly unknown[]): Said[] {
    const byId = new Map<unknown, Record<string, unknown>>();
    for (const one of answers) {
      if (typeof one !== "object" || one === null) throw new ProviderFailed(this.name, "an answer that is no object");
      byId.set((one as Record<string, unknown>)["id"], one as Record<string, unknown>);
    }
    return bodies.map(({ id }) => {
      // Some write a number back as text. A single request that cannot even be read is answered with the id null.
      const one = byId.get(id) ?? byId.get(`${id}`) ?? (bodies.length === 1 && answers.length === 1 ? byId.get(null) : undefined);
      if (one === undefined) throw new ProviderFailed(this.name, "an answer to something else");
      return this.#said(one);
    });
  }

  #said(one: Record<string, unknown>): Said {
    const error = one["error"];
    if (typeof error !== "object" || error === null) {
      if (!("result" in one)) throw new ProviderFailed(this.name, "neither a result nor an error");
      return { ok: true, value: one["result"] };
    }
    const { code, message, data } = error as Record<string, unknown>;
    return {
      ok: false,
      code: typeof code === "number" ? code : 0,
      message: typeof message === "string" ? message.slice(0, MAX_MESSAGE) : "",
      data,
    };
  }
}

function parsedOrNone(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function waitOf(answer: Response): number {
  const seconds = answer.headers.get("Retry-After") ?? "";
  return /^[0-9]{1,6}$/.test(seconds) ? Math.min(MAX_WAIT, 1_000 * Number(seconds)) : 0;
}
