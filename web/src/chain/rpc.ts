// Several providers of one chain as one: asked in the order of preference, one that fails is left alone for a while.
//
// What each has done is kept for the panel of the Network page. The last may be the wallet's own provider.

import { HearthError } from "../core/errors";
import { type Ask, Endpoint, type Fetch, ProviderFailed, type Said } from "./endpoint";

export interface Provider {
  readonly name: string;
  send(asks: readonly Ask[]): Promise<Said[]>;
}

export interface Panel {
  readonly name: string;
  readonly requests: number;
  readonly failures: number;
  readonly lastFailure: string;
  // Of the last answer, in milliseconds.
  readonly took: number | undefined;
}

const COOL_DOWN = 15_000;
const TIMEOUT = 20_000;

// Nobody answered, and who was asked would have answered less.
export class TooMuch extends HearthError {}

interface State {
  readonly provider: Provider;
  requests: number;
  failures: number;
  lastFailure: string;
  took: number | undefined;
  restingUntil: number;
  // It has asked not to be asked before.
  aloneUntil: number;
}

export class Rpc {
  readonly #states: State[];

  constructor(
    providers: readonly Provider[],
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#states = providers.map((provider) => ({
      provider,
      requests: 0,
      failures: 0,
      lastFailure: "",
      took: undefined,
      restingUntil: 0,
      aloneUntil: 0,
    }));
  }

  // Ask, of the first provider that answers. Throws RPC_UNAVAILABLE with what each said, NO_RPC where there is none.
  async ask(asks: readonly Ask[]): Promise<Said[]> {
    if (this.#states.length === 0) {
      throw new HearthError("NO_RPC", "this market names no RPC that a browser can ask", "name one in the settings");
    }
    const began = this.now();
    const faults: string[] = [];
    let tooMuch = false;
    // A resting one is asked after the others, not never: it may be the only one.
    const order = [...this.#states].sort((a, b) => Number(a.restingUntil > began) - Number(b.restingUntil > began));
    for (const state of order) {
      if (state.aloneUntil > began) {
        const seconds = Math.ceil((state.aloneUntil - began) / 1_000);
        faults.push(`${state.provider.name}: ${state.lastFailure}, and not to be asked for ${seconds} s`);
        continue;
      }
      try {
        return await this.#of(state, asks);
      } catch (error) {
        if (!(error instanceof ProviderFailed)) throw error;
        tooMuch ||= error.tooMuch;
        faults.push(error.message);
      }
    }
    const what = ["RPC_UNAVAILABLE", `no RPC answers: ${faults.join("; ")}`, "see on Network whom the page asks, or name another RPC"] as const;
    throw tooMuch ? new TooMuch(...what) : new HearthError(...what);
  }

  // Ask one thing. Throws RPC_UNAVAILABLE, or RPC_ERROR where the provider refuses it.
  async one(method: string, params: readonly unknown[]): Promise<unknown> {
    const [said] = await this.ask([{ method, params }]);
    return resultOf(said, method);
  }

  panel(): Panel[] {
    return this.#states.map(({ provider, requests, failures, lastFailure, took }) => ({
      name: provider.name,
      requests,
      failures,
      lastFailure,
      took,
    }));
  }

  async #of(state: State, asks: readonly Ask[]): Promise<Said[]> {
    const began = this.now();
    state.requests += 1;
    try {
      const said = await state.provider.send(asks);
      if (said.length !== asks.length) throw new ProviderFailed(state.provider.name, "another number of answers");
      state.took = this.now() - began;
      state.restingUntil = 0;
      return said;
    } catch (error) {
      if (error instanceof ProviderFailed) {
        state.failures += 1;
        state.lastFailure = error.why;
        state.restingUntil = this.now() + Math.max(COOL_DOWN, error.wait);
        state.aloneUntil = this.now() + error.wait;
      }
      throw error;
    }
  }
}

export function rpcOf(urls: readonly string[], ask: Fetch = (url, init) => fetch(url, init)): Rpc {
  return new Rpc(urls.map((url) => new Endpoint(url, TIMEOUT, ask)));
}

// The result of one answer. Throws RPC_ERROR with the provider's words where it is an error.
export function resultOf(said: Said | undefined, what: string): unknown {
  if (said?.ok === true) return said.value;
  throw new HearthError("RPC_ERROR", `the RPC refuses ${what}: ${said?.message ?? "no answer"}`, "name another RPC");
}
