import { describe, expect, it } from "vitest";

import { Endpoint, type Fetch } from "../src/chain/endpoint";
import { refusalIn } from "../src/core/revert";
import { MAX_SPAN, pieces, Span } from "../src/chain/logs";
import { Rpc, rpcOf } from "../src/chain/rpc";
import { codeOf, HearthError } from "../src/core/errors";

interface Body {
  id: number;
  method: string;
  params: [Record<string, unknown>];
}

// A provider whose answers are made by `answer`; a single body or a batch of them.
function provider(answer: (body: Body) => Record<string, unknown>): Fetch {
  return async (_, init) => {
    const body = JSON.parse(String(init.body)) as Body | Body[];
    const one = (each: Body) => ({ jsonrpc: "2.0", id: each.id, ...answer(each) });
    return new Response(JSON.stringify(Array.isArray(body) ? body.map(one).reverse() : one(body)));
  };
}

const failing = (status: number, text: string, headers: Record<string, string> = {}): Fetch =>
  async () => new Response(text, { status, headers });

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "answered", codeOf);
}

const ASKS = [
  { method: "a", params: [] },
  { method: "b", params: [] },
];

describe("a provider", () => {
  it("answers a batch in whatever order", async () => {
    const endpoint = new Endpoint("http://a/key", 1_000, provider(({ method }) => ({ result: method })));
    expect(await endpoint.send(ASKS)).toEqual([
      { ok: true, value: "a" },
      { ok: true, value: "b" },
    ]);
    expect(endpoint.name).toBe("http://a");
  });

  it("that takes no batches is asked one by one, and is not tried again", async () => {
    let batches = 0;
    const inner = provider(({ method }) => ({ result: method }));
    const endpoint = new Endpoint("http://a", 1_000, async (url, init) => {
      if (!String(init.body).startsWith("[")) return inner(url, init);
      batches += 1;
      return new Response('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}');
    });
    await endpoint.send(ASKS);
    expect(await endpoint.send(ASKS)).toHaveLength(2);
    expect(batches).toBe(1);
  });

  it.each([
    ["no JSON", failing(200, "<html>")],
    ["an empty answer", failing(502, "")],
    ["a text", failing(200, '"x"')],
    ["null", failing(200, "null")],
    ["another id", failing(200, '{"id":77,"result":1}')],
    ["neither result nor error", provider(() => ({}))],
    ["too often", failing(429, "{}", { "Retry-After": "2" })],
    ["too often in words", failing(429, "slow down")],
    ["too much", failing(413, "{}")],
    ["nobody", async () => Promise.reject(new TypeError("fetch failed"))],
  ] satisfies [string, Fetch][])("that says %s has failed", async (_, ask) => {
    expect(await refusal(rpcOf(["http://a"], ask).one("a", []))).toBe("RPC_UNAVAILABLE");
  });

  it.each([
    ["writes its number back as text", (id: number) => ({ id: `${id}`, result: 7 })],
    ["says that there is no error", (id: number) => ({ id, error: null, result: 7 })],
  ])("that %s has answered", async (_, answer) => {
    const ask: Fetch = async (_, init) => {
      const asked = JSON.parse(init.body as string) as Body | Body[];
      const told = Array.isArray(asked) ? asked.map(({ id }) => answer(id)) : answer(asked.id);
      return new Response(JSON.stringify(told));
    };
    const rpc = rpcOf(["http://a"], ask);
    expect(await rpc.one("x", [])).toBe(7);
    expect(await rpc.ask(["x", "y"].map((method) => ({ method, params: [] })))).toMatchObject([{ value: 7 }, { value: 7 }]);
  });

  it("that sends without end is cut off", async () => {
    const endless: Fetch = async () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(2 ** 20)) }));
    await expect(rpcOf(["http://a"], endless).one("a", [])).rejects.toThrow("more than");
  });

  it("that is silent is left", async () => {
    const silent: Fetch = (_, init) =>
      new Promise((_resolve, reject) => init.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    await expect(new Endpoint("http://a", 20, silent).send(ASKS)).rejects.toThrow("no answer in 20 ms");
  });

  it("hands on what an error holds as it is, for whoever reads refusals", async () => {
    const reason = `0x08c379a0${"20".padStart(64, "0")}${"3".padStart(64, "0")}${"616263".padEnd(64, "0")}`;
    for (const data of [reason, { data: reason }, { data: "", result: reason }, `Reverted ${reason}`]) {
      const error = { code: -32015, message: "VM execution error", data };
      const [said] = await rpcOf(["http://a"], provider(() => ({ error }))).ask([{ method: "eth_call", params: [] }]);
      expect(refusalIn(said)?.details["reason"]).toBe("abc");
    }
  });
});

describe("several providers", () => {
  it("stand in for each other, and one that failed rests", async () => {
    let now = 0;
    const asked: string[] = [];
    const one = (name: string, ask: Fetch) => new Endpoint(`http://${name}`, 1_000, (url, init) => (asked.push(name), ask(url, init)));
    const good = provider(() => ({ result: "0x1" }));
    const rpc = new Rpc([one("bad", failing(500, "")), one("good", good)], () => now);
    await rpc.one("x", []);
    await rpc.one("x", []);
    now += 60_000;
    await rpc.one("x", []);
    expect(asked).toEqual(["bad", "good", "good", "bad", "good"]);
    expect(rpc.panel().map(({ failures, requests }) => [failures, requests])).toEqual([
      [2, 2],
      [0, 3],
    ]);
  });

  it("that asks to be left alone is, for as long as it says", async () => {
    let [now, answer] = [0, failing(429, "slow down", { "Retry-After": "4" })];
    const asked: number[] = [];
    const ask: Fetch = (url, init) => (asked.push(now), answer(url, init));
    const rpc = new Rpc([new Endpoint("http://a", 1_000, ask)], () => now);
    const said = (): Promise<string> => rpc.one("x", []).then(String, (error: Error) => error.message);
    expect(await said()).toContain("it is asked too often");
    for (now of [1_000, 3_900]) expect(await said()).toContain("and not to be asked for");
    answer = provider(() => ({ result: "0x1" }));
    now = 4_000;
    expect(await said()).toBe("0x1");
    expect(asked).toEqual([0, 4_000]);
  });

  it("none at all says so", async () => {
    expect(await refusal(rpcOf([]).one("x", []))).toBe("NO_RPC");
  });

  it("pass a provider's own refusal on", async () => {
    expect(await refusal(rpcOf(["http://a"], provider(() => ({ error: { code: 1, message: "no" } }))).one("x", []))).toBe("RPC_ERROR");
  });
});

const HOME = `0x${"11".repeat(20)}` as const;
const TOPIC = `0x${"22".repeat(32)}` as const;

function logAt(block: number, index = 0, more: Record<string, unknown> = {}): Record<string, unknown> {
  const hash = `0x${block.toString(16).padStart(64, "0")}`;
  const place = { blockNumber: `0x${block.toString(16)}`, logIndex: `0x${index.toString(16)}` };
  return { address: HOME, topics: [TOPIC], data: "0x", blockHash: hash, transactionHash: hash, ...place, ...more };
}

// A chain with a log in every 100th block, whose provider serves `most` blocks at once.
function chain(most: number, spans: number[] = []): Fetch {
  return provider(({ params: [filter] }) => {
    const [from, to] = [Number(filter["fromBlock"]), Number(filter["toBlock"])];
    spans.push(to - from + 1);
    if (to - from + 1 > most) return { error: { code: -32000, message: "range too wide" } };
    const found = [];
    for (let at = Math.ceil(from / 100) * 100; at <= to; at += 100) found.push(logAt(at));
    return { result: found };
  });
}

async function numbers(ask: Fetch, range: { from: number; to: number; backwards: boolean }, span?: Span): Promise<number[][]> {
  const found: number[][] = [];
  for await (const piece of pieces(rpcOf(["http://a"], ask), { addresses: [HOME], topics: [TOPIC] }, range, span)) {
    found.push(piece.logs.map((log) => log.blockNumber));
  }
  return found;
}

describe("logs", () => {
  it.each([5, 999, 1_000, 10_000])("are all found whatever range is served: %i", async (most) => {
    for (const backwards of [true, false]) {
      const found = await numbers(chain(most), { from: 1, to: 2_500, backwards });
      const flat = backwards ? found.reverse().flat() : found.flat();
      expect(flat).toEqual(Array.from({ length: 25 }, (_, at) => 100 * (at + 1)));
    }
  });

  it("are asked for in wider pieces again", async () => {
    const spans: number[] = [];
    const span = new Span();
    await numbers(chain(40, spans), { from: 0, to: 3_000, backwards: false }, span);
    expect(Math.max(...spans)).toBe(3_001);
    expect(spans.filter((width) => width > 40).length).toBeLessThan(spans.length / 4);
    expect(span.width).toBeLessThanOrEqual(MAX_SPAN);
  });

  it.each([
    ["are longer than is read", async () => new Response("x".repeat(2 ** 24 + 1))],
    ["are called too many", failing(413, "too large")],
  ] satisfies [string, Fetch][])("that %s are asked for in shorter ranges", async (_, much) => {
    const good = chain(2_500);
    const ask: Fetch = (url, init) => {
      const [filter] = (JSON.parse(String(init.body)) as Body).params;
      return Number(filter["toBlock"]) - Number(filter["fromBlock"]) >= 700 ? much(url, init) : good(url, init);
    };
    expect((await numbers(ask, { from: 1, to: 2_500, backwards: false })).flat()).toHaveLength(25);
    expect(await refusal(numbers(much, { from: 1, to: 4, backwards: false }))).toBe("RPC_UNAVAILABLE");
  });

  it("are asked for newest first", async () => {
    expect(await numbers(chain(1_000), { from: 0, to: 350, backwards: true })).toEqual([[0, 100, 200, 300]]);
  });

  it("of a block that is refused end in its reason", async () => {
    expect(await refusal(numbers(chain(0), { from: 1, to: 3, backwards: false }))).toBe("RPC_ERROR");
  });

  it.each([
    ["beyond the range", logAt(900)],
    ["of another contract", logAt(2, 0, { address: `0x${"33".repeat(20)}` })],
    ["of another event", logAt(2, 0, { topics: [`0x${"44".repeat(32)}`] })],
    ["without topics", logAt(2, 0, { topics: [] })],
    ["with five topics", logAt(2, 0, { topics: Array<string>(5).fill(TOPIC) })],
    ["with half a byte", logAt(2, 0, { data: "0x1" })],
    ["with a short hash", logAt(2, 0, { blockHash: "0x12" })],
    ["with a number beyond reason", logAt(2, 0, { blockNumber: `0x${"f".repeat(20)}` })],
    ["that is none", null],
  ])("%s are refused", async (_, bad) => {
    const ask = provider(() => ({ result: [logAt(2), bad] }));
    expect(await refusal(numbers(ask, { from: 1, to: 3, backwards: false }))).toMatch(/^RPC_(LIES|BROKEN)$/);
  });

  it("that stand twice are a lie, and removed ones are none", async () => {
    expect(await refusal(numbers(provider(() => ({ result: [logAt(2), logAt(2)] })), { from: 1, to: 3, backwards: false }))).toBe("RPC_LIES");
    expect(await numbers(provider(() => ({ result: [logAt(2, 0, { removed: true })] })), { from: 1, to: 3, backwards: false })).toEqual([[]]);
  });

  it("of a chain whose indexes count in each transaction are in its order, and none stands twice", async () => {
    const one = (tx: number, index: number) => logAt(2, index, { transactionHash: `0x${"0".repeat(63)}${tx}`, transactionIndex: `0x${tx}` });
    const said = [one(2, 0), one(1, 1), one(1, 0), one(2, 1)];
    const found: unknown[] = [];
    const filter = { addresses: [HOME], topics: [] };
    for await (const { logs } of pieces(rpcOf(["http://a"], provider(() => ({ result: said }))), filter, { from: 1, to: 3, backwards: false })) {
      found.push(...logs.map(({ txIndex, logIndex }) => [txIndex, logIndex]));
    }
    expect(found).toEqual([[1, 0], [1, 1], [2, 0], [2, 1]]);
  });

  it("that are no list are refused", async () => {
    expect(await refusal(numbers(provider(() => ({ result: {} })), { from: 1, to: 3, backwards: false }))).toBe("RPC_BROKEN");
  });

  it("throws HearthErrors alone", async () => {
    await expect(numbers(chain(0), { from: 1, to: 1, backwards: true })).rejects.toBeInstanceOf(HearthError);
  });
});
