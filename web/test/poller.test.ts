import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { Block } from "../src/chain/answers";
import type { Since } from "../src/chain/market";
import { Poller, type Tabs } from "../src/chain/poller";
import { codeOf, HearthError } from "../src/core/errors";
import { dice, hashOf } from "./scripted-chain";

const WAIT = 1_000;

// A browser: its locks in the order in which they were asked for, and its channel.
class Browser {
  readonly #waiting: { readonly hold: () => Promise<void>; readonly done: () => void }[] = [];
  readonly #ears = new Set<(message: unknown) => void>();
  #busy = false;
  readonly said: unknown[] = [];
  // Messages are lost while it is set.
  deaf = false;

  tabs(): Tabs {
    return {
      lock: (signal, hold) =>
        new Promise((resolve, reject) => {
          const one = { hold, done: resolve };
          this.#waiting.push(one);
          signal.addEventListener("abort", () => {
            const at = this.#waiting.indexOf(one);
            if (at < 0) return;
            this.#waiting.splice(at, 1);
            reject(new DOMException("aborted", "AbortError"));
          });
          void Promise.resolve().then(() => this.#next());
        }),
      channel: (hear) => {
        this.#ears.add(hear);
        return { post: (message) => this.post(structuredClone(message), hear), close: () => void this.#ears.delete(hear) };
      },
    };
  }

  post(message: unknown, but?: (message: unknown) => void): void {
    this.said.push(message);
    if (this.deaf) return;
    for (const hear of this.#ears) if (hear !== but) void Promise.resolve().then(() => this.#ears.has(hear) && hear(message));
  }

  async #next(): Promise<void> {
    if (this.#busy) return;
    const one = this.#waiting.shift();
    if (one === undefined) return;
    this.#busy = true;
    await one.hold();
    this.#busy = false;
    one.done();
    await this.#next();
  }
}

// A chain of numbers; `changes` are the blocks in which the market changed.
class Heads {
  looks = 0;
  number = 5;
  fork = 0;
  readonly changes = new Set<number>();
  fault: unknown;
  // Milliseconds that a look takes.
  takes = 10;

  get head(): Block {
    // Its parent tells of which chain it is.
    return { number: this.number, hash: hashOf(`${this.fork} ${this.number}`), parent: hashOf(`${this.fork}`), time: this.number };
  }

  changed(from: number, to: number): boolean {
    return Array.from({ length: Math.max(0, to - from) }, (_, at) => from + 1 + at).some((block) => this.changes.has(block));
  }

  // Whether each look asked for logs.
  readonly withLogs: boolean[] = [];

  readonly look = async (before: Block, withLogs: boolean): Promise<Since> => {
    this.looks += 1;
    this.withLogs.push(withLogs);
    await new Promise((resolve) => setTimeout(resolve, this.takes));
    if (this.fault !== undefined) throw this.fault;
    const { head } = this;
    const reorged = before.hash !== hashOf(`${this.fork} ${before.number}`);
    return { head, changed: reorged || this.changed(before.number, head.number), reorged };
  };
}

class Tab {
  readonly told: Since[] = [];
  readonly lost: unknown[] = [];
  readonly poller: Poller;

  // It knows the head that it was checked at.
  constructor(heads: Heads, tabs: Tabs | undefined) {
    const tell = (news: Since): void => void this.told.push(news);
    const lost = (error: unknown): void => void this.lost.push(error);
    tell({ head: heads.head, changed: true, reorged: false });
    this.poller = new Poller(heads.head, { wait: WAIT, look: heads.look, tell, lost, tabs });
  }

  get last(): Since | undefined {
    return this.told.at(-1);
  }
}

const pass = (milliseconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(milliseconds);

let browser: Browser;
let heads: Heads;
const open = (): Tab => {
  const tab = new Tab(heads, browser.tabs());
  tab.poller.wake();
  return tab;
};

beforeEach(() => {
  vi.useFakeTimers();
  [browser, heads] = [new Browser(), new Heads()];
});

afterEach(() => {
  vi.useRealTimers();
});

describe("tabs of one origin", () => {
  it("look as often as one", async () => {
    const tabs = [open(), open(), open()];
    for (let block = 6; block < 30; block += 1) {
      heads.number = block;
      if (block % 4 === 0) heads.changes.add(block);
      await pass(WAIT + heads.takes);
      for (const tab of tabs) expect(tab.last).toEqual({ head: heads.head, changed: block % 4 === 0, reorged: false });
    }
    expect(heads.looks).toBe(24);
  });

  it("that know the head already are told that it is still so", async () => {
    open();
    await pass(400);
    heads.number = 6;
    const second = open();
    await pass(WAIT - 400 + heads.takes);
    expect(second.last).toEqual({ head: heads.head, changed: false, reorged: false });
    expect(heads.looks).toBe(1);
  });

  it("that know another head than the news follow on look once, and hear from then on", async () => {
    open();
    await pass(400);
    heads.number = 6;
    const second = open();
    heads.number = 7;
    heads.changes.add(7);
    await pass(WAIT - 400 + 2 * heads.takes);
    expect(second.told.slice(1)).toEqual([{ head: heads.head, changed: true, reorged: false }]);
    expect(heads.looks).toBe(2);
    await pass(10 * (WAIT + heads.takes));
    expect(heads.looks).toBe(12);
    expect(second.told).toHaveLength(12);
  });

  it.each(["rest", "close"] as const)("take over from one that comes to %s", async (end) => {
    const [first, second] = [open(), open()];
    await pass(100);
    first.poller[end]();
    heads.number = 9;
    heads.changes.add(7);
    await pass(WAIT + heads.takes);
    expect(second.last).toEqual({ head: heads.head, changed: true, reorged: false });
    const before = heads.looks;
    await pass(10 * (WAIT + heads.takes));
    expect(heads.looks - before).toBe(10);
    expect(first.told).toHaveLength(1);
  });

  it("that are all hidden look at nothing, and none is told anything", async () => {
    const tabs = [open(), open()];
    await pass(100);
    for (const tab of tabs) tab.poller.rest();
    const before = heads.looks;
    await pass(100 * WAIT);
    expect(heads.looks).toBe(before);
    expect(tabs.map((tab) => tab.told.length)).toEqual([1, 1]);
    tabs[1]?.poller.wake();
    await pass(1);
    expect(heads.looks).toBe(before + 1); // at once
  });

  it("are told when they are seen again what changed meanwhile", async () => {
    const [, second] = [open(), open()];
    second.poller.rest();
    heads.changes.add(6);
    for (const block of [6, 7, 8]) {
      heads.number = block;
      await pass(WAIT + heads.takes);
    }
    expect(second.told).toHaveLength(1);
    second.poller.wake();
    expect(second.told.slice(1)).toEqual([{ head: heads.head, changed: true, reorged: false }]);
    expect(heads.looks).toBe(3);
  });

  it("that have missed something while they were hidden look when they are seen again", async () => {
    const [, second] = [open(), open()];
    second.poller.rest();
    browser.deaf = true;
    heads.number = 6;
    heads.changes.add(6);
    await pass(WAIT + heads.takes);
    browser.deaf = false;
    heads.number = 7;
    await pass(WAIT + heads.takes);
    expect(heads.looks).toBe(2);
    second.poller.wake();
    await pass(heads.takes);
    expect(heads.looks).toBe(3);
    expect(second.told.slice(1)).toEqual([{ head: heads.head, changed: true, reorged: false }]);
  });

  it("that have missed a message look once", async () => {
    const [, second] = [open(), open()];
    browser.deaf = true;
    heads.number = 6;
    heads.changes.add(6);
    await pass(WAIT + heads.takes);
    browser.deaf = false;
    heads.number = 7;
    await pass(WAIT + 2 * heads.takes);
    expect(second.told.slice(1)).toEqual([{ head: heads.head, changed: true, reorged: false }]);
    expect(heads.looks).toBe(3);
    heads.number = 8;
    await pass(WAIT + heads.takes);
    expect(second.last).toEqual({ head: heads.head, changed: false, reorged: false });
    expect(heads.looks).toBe(4);
  });

  it("hear of a reorg", async () => {
    const [, second] = [open(), open()];
    heads.fork = 1;
    await pass(WAIT + heads.takes);
    expect(second.last).toEqual({ head: heads.head, changed: true, reorged: true });
  });

  it("hear why nothing is heard", async () => {
    const [, second] = [open(), open()];
    heads.fault = new HearthError("RPC_UNAVAILABLE", "no RPC answers", "name another");
    await pass(WAIT + heads.takes);
    expect(codeOf(second.lost[0])).toBe("RPC_UNAVAILABLE");
    expect((second.lost[0] as HearthError).hint).toBe("name another");
    heads.fault = new TypeError("a fault");
    await pass(WAIT + heads.takes);
    expect(codeOf(second.lost[1])).toBe("FAULT");
    heads.fault = undefined;
    heads.number = 6;
    await pass(WAIT + heads.takes);
    expect(second.last?.head).toEqual(heads.head);
    await pass(WAIT + heads.takes);
    // After a failure logs are not asked for, whoever looks.
    expect(heads.withLogs).toEqual([true, false, false, true]);
  });

  it("take over after a failure as after one of their own", async () => {
    const [first] = [open(), open()];
    heads.fault = new HearthError("RPC_UNAVAILABLE", "no RPC answers");
    await pass(WAIT + heads.takes);
    first.poller.close();
    await pass(1);
    expect(heads.withLogs).toEqual([true, false]);
  });

  it("look for themselves where the one that should is silent, and stop once it speaks", async () => {
    const [, second] = [open(), open()];
    browser.deaf = true;
    heads.number = 6;
    await pass(10 * WAIT);
    expect(second.last?.head).toEqual(heads.head);
    browser.deaf = false;
    await pass(2 * WAIT);
    const before = heads.looks;
    await pass(10 * (WAIT + heads.takes));
    expect(heads.looks - before).toBe(10);
  });

  it("do not look twice at once where one takes over while it looks for itself", async () => {
    const [first, second] = [open(), open()];
    browser.deaf = true;
    heads.takes = 300;
    await pass(3 * WAIT + 2_000 + 300); // the second has begun to look for itself
    first.poller.close();
    await pass(5 * WAIT);
    const before = heads.looks;
    await pass(10 * (WAIT + 300));
    expect(heads.looks - before).toBe(10);
    expect(second.lost).toEqual([]);
  });
});

describe("a tab alone", () => {
  it("looks for itself, and not while it is hidden", async () => {
    const tab = new Tab(heads, undefined);
    tab.poller.wake();
    await pass(3 * (WAIT + heads.takes));
    expect(heads.looks).toBe(3);
    tab.poller.rest();
    await pass(10 * WAIT);
    expect(heads.looks).toBe(3);
    heads.number = 6;
    tab.poller.wake();
    tab.poller.wake();
    await pass(heads.takes);
    expect(tab.last?.head).toEqual(heads.head);
    expect(heads.looks).toBe(4);
  });

  it("that was opened behind others looks once it is seen", async () => {
    const tab = new Tab(heads, undefined);
    tab.poller.rest();
    await pass(10 * WAIT);
    heads.number = 6;
    tab.poller.wake();
    await pass(heads.takes);
    expect(tab.last?.head).toEqual(heads.head);
    expect(heads.looks).toBe(1);
  });

  it("leaves what it finds once it is hidden", async () => {
    const tab = new Tab(heads, undefined);
    tab.poller.wake();
    await pass(WAIT + 1);
    tab.poller.rest();
    await pass(WAIT);
    expect(tab.told).toHaveLength(1);
  });

  it("looks for itself where the browser lends no locks", async () => {
    const refusing: Tabs = { ...browser.tabs(), lock: async () => Promise.reject(new DOMException("no", "SecurityError")) };
    const tab = new Tab(heads, refusing);
    tab.poller.wake();
    await pass(3 * (WAIT + heads.takes));
    expect(heads.looks).toBe(3);
    tab.poller.close();
    await pass(10 * WAIT);
    expect(heads.looks).toBe(3);
  });

  it("ends where it is closed by what it is told", async () => {
    const tab = new Tab(heads, undefined);
    tab.lost.push = (): number => (tab.poller.close(), 0);
    tab.poller.wake();
    heads.fault = new HearthError("WRONG_CHAIN", "another chain");
    await pass(10 * WAIT);
    expect(heads.looks).toBe(1);
  });
});

describe("a message", () => {
  const head = { number: 9, hash: hashOf("a"), parent: hashOf("b"), time: 9 };
  const news = { form: "hearth.heads/1", kind: "news", head, changed: true, reorged: true, before: hashOf("0 5") };

  it.each([
    null,
    7,
    "x",
    [],
    {},
    { ...news, form: "hearth.heads/2" },
    { ...news, kind: "other" },
    { ...news, head: null },
    { ...news, head: { ...head, number: -1 } },
    { ...news, head: { ...head, number: 1e20 } },
    { ...news, head: { ...head, number: "9" } },
    { ...news, head: { ...head, hash: "0x12" } },
    { ...news, head: { ...head, hash: head.hash.toUpperCase() } },
    { ...news, head: { ...head, parent: undefined } },
    { ...news, head: { ...head, time: 0.5 } },
    { ...news, changed: 1 },
    { ...news, reorged: "no" },
    { ...news, before: 3 },
    { ...news, before: null },
    { form: news.form, kind: "ask" },
    { form: news.form, kind: "lost", code: "lower", text: "x", hint: "" },
    { form: news.form, kind: "lost", code: "CODE", text: 7, hint: "" },
    { form: news.form, kind: "lost", code: "CODE", text: "x".repeat(3_000), hint: "" },
  ])("that no tab of this page sends is left out: %j", async (message) => {
    const [, second] = [open(), open()];
    await pass(1);
    browser.post(message);
    await pass(1);
    expect(second.told).toHaveLength(1);
    expect(second.lost).toEqual([]);
  });

  it("is heard, and what more it holds is not", async () => {
    const [, second] = [open(), open()];
    await pass(100);
    browser.post({ ...news, head: { ...head, more: 1 }, more: 1 });
    await pass(1);
    expect(second.last).toEqual({ head, changed: true, reorged: true });
  });

  it("moves the tab that looks by nothing", async () => {
    const first = open();
    await pass(100);
    browser.post(news);
    await pass(1);
    expect(first.told).toHaveLength(1);
  });
});

describe("whatever tabs do", () => {
  it.each(Array.from({ length: 60 }, (_, seed) => seed))("one looks, and none misses a change: seed %i", async (seed) => {
    const roll = dice(seed);
    const tabs: { readonly tab: Tab; awake: boolean; checked: number }[] = [];
    let fork = 0;
    for (let step = 0; step < 80; step += 1) {
      const one = tabs[roll(Math.max(1, tabs.length))];
      switch (roll(6)) {
        case 0:
          if (tabs.length < 4) tabs.push({ tab: open(), awake: true, checked: 0 });
          break;
        case 1:
          if (one !== undefined) {
            one.awake = !one.awake;
            if (one.awake) one.tab.poller.wake();
            else one.tab.poller.rest();
          }
          break;
        case 2:
          if (one !== undefined && roll(3) === 0) {
            one.tab.poller.close();
            tabs.splice(tabs.indexOf(one), 1);
          }
          break;
        case 3:
          browser.deaf = roll(4) === 0;
          break;
        case 4:
          if (roll(4) === 0) heads.fork = fork += 1;
          break;
        default:
          heads.number += 1 + roll(3);
          if (roll(2) === 0) heads.changes.add(heads.number);
      }
      await pass(roll(2 * WAIT));
      for (const seen of tabs) {
        const { told } = seen.tab;
        for (; seen.checked < told.length; seen.checked += 1) {
          const [from, to] = [told[seen.checked - 1], told[seen.checked] as Since];
          if (from === undefined) continue;
          if (!to.changed) expect(heads.changed(from.head.number, to.head.number)).toBe(false);
          if (!to.reorged) expect(to.head.parent).toBe(from.head.parent);
        }
      }
    }
    browser.deaf = false;
    heads.number += 1;
    heads.changes.add(heads.number);
    await pass(10 * WAIT);
    for (const { tab, awake } of tabs) if (awake) expect(tab.last?.head).toEqual(heads.head);
    const before = heads.looks;
    await pass(10 * (WAIT + heads.takes));
    expect(heads.looks - before).toBeLessThanOrEqual(tabs.some((one) => one.awake) ? 11 : 0);
  });
});
