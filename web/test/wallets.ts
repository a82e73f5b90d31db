// A wallet that does what a test's script says, and what it was asked.

import type { Announced, Provider } from "../src/wallet/discover";

export type Answer = unknown | ((params: readonly unknown[]) => unknown);

export class Scripted implements Provider {
  readonly asked: string[] = [];
  readonly params = new Map<string, readonly unknown[]>();
  readonly #heard = new Map<string, Set<(value: unknown) => void>>();

  constructor(readonly answers: Record<string, Answer>) {}

  // A list of answers is used up from its beginning; its last one stays.
  async request({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
    this.asked.push(method);
    this.params.set(method, params);
    if (!Object.hasOwn(this.answers, method)) throw { code: -32601, message: `no ${method}` };
    let answer = this.answers[method];
    if (answer instanceof Turns) answer = answer.next();
    return typeof answer === "function" ? answer(params) : answer;
  }

  on(event: string, hear: (value: unknown) => void): void {
    this.#heard.set(event, (this.#heard.get(event) ?? new Set()).add(hear));
  }

  removeListener(event: string, hear: (value: unknown) => void): void {
    this.#heard.get(event)?.delete(hear);
  }

  emit(event: string, value: unknown): void {
    for (const hear of this.#heard.get(event) ?? []) hear(value);
  }
}

export class Turns {
  readonly #answers: Answer[];

  constructor(...answers: Answer[]) {
    this.#answers = answers;
  }

  next(): Answer {
    return this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
  }
}

export const failing = (error: unknown) => (): never => {
  throw error;
};

export const announced = (provider: Provider): Announced => ({ id: "1", name: "Test", icon: "", domain: "", provider });
