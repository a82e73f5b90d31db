import { toFunctionSelector } from "viem/utils";
import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { mined, readFees } from "../src/chain/calling";
import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { type Log, logsOf } from "../src/core/logs";
import type { Network } from "../src/core/network";
import { type Asset, NATIVE } from "../src/core/units";
import { NODE_PARAMETERS } from "../src/generated/contracts";
import { chainOf, HEAD, hashOf, type Lie, network, only, type Params, type RawLog, TOKEN, told, txOf } from "./chain";

const refusal = (promise: Promise<unknown>): Promise<string> => promise.then(() => "taken", codeOf);

const head: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };

function logAt(block: number): Log {
  const raw = { ...told.contracts, address: told.contracts.Escrow, topics: [], data: "0x" };
  const place = { blockNumber: `0x${block.toString(16)}`, blockHash: hashOf(block), transactionHash: txOf(block) };
  return logsOf([{ ...raw, ...place, logIndex: "0x0" }])[0] as Log;
}

const { Lens, Escrow } = told.contracts;

const USDC: Asset = { symbol: "USDC", decimals: 6, address: TOKEN };

// Changes the answers to one view alone of those that are asked before anything is read.
const view = (name: string, change: (data: Hex) => unknown): Lie => {
  const selector = toFunctionSelector(`${name}()`);
  return only("eth_call", ([call], data: Hex) => ((call as { data: string }).data === selector ? change(data) : data));
};

// Every other call before anything is read is of a view without arguments.
const takesTerms = (params: Params): boolean => String((params[0] as { data: string }).data).length > 10;
const word = (value: number): Hex => `0x${value.toString(16).padStart(64, "0")}`;

describe("a market", () => {
  it("that is the one of the network file is taken, with its newest block", async () => {
    const { market, asked } = chainOf();
    expect(await market.check()).toEqual(head);
    expect(asked.filter(([method]) => method === "eth_getCode")).toHaveLength(7);
  });

  it.each([
    ["another chain id", only("eth_chainId", () => "0x1"), "WRONG_CHAIN"],
    [
      "another genesis",
      only("eth_getBlockByNumber", ([at], block: object) => (at === "0x0" ? { ...block, hash: hashOf(7) } : block)),
      "WRONG_CHAIN",
    ],
    ["other code", only("eth_getCode", ([at], code) => (at === Lens ? `${code}00` : code)), "WRONG_CONTRACTS"],
    ["no code", only("eth_getCode", ([at], code) => (at === Escrow ? "0x" : code)), "WRONG_CONTRACTS"],
    ["other ids", only("eth_call", (params, data) => (takesTerms(params) ? hashOf(1) : data)), "WRONG_CONTRACTS"],
    ["an Escrow of another", view("ESCROW", () => word(7)), "WRONG_CONTRACTS"],
    ["nodes of another", view("NODES", () => word(7)), "WRONG_CONTRACTS"],
    ["other rules", view("RULES", () => word(7)), "WRONG_CONTRACTS"],
    ["no answer to what it is", only("eth_chainId", () => new Error("no")), "RPC_ERROR"],
    ["no number for a chain id", only("eth_chainId", () => 7), "RPC_LIES"],
  ] satisfies [string, Lie, string][])("with %s is refused", async (_, lie, code) => {
    expect(await refusal(chainOf(lie).market.check())).toBe(code);
  });

  it("of other code than ours is refused though its file says so", async () => {
    const file = { ...network, codeHashes: new Map() };
    const other = only("eth_getCode", ([at], code) => (at === Lens ? `0xff${String(code).slice(4)}` : code));
    expect(await refusal(chainOf(other, file).market.check())).toBe("UNKNOWN_CODE");
    expect(await refusal(chainOf(only("eth_getCode", ([at], code) => (at === Escrow ? String(code).slice(0, 900) : code)), file).market.check())).toBe("UNKNOWN_CODE");
    expect(await chainOf(undefined, file).market.check()).toEqual(head);
  });

  it.each([
    ["pays in a token and not in the coin", { ...network, asset: USDC }, NATIVE, `JobRegistry.ASSET: 0x${"0".repeat(40)} on the chain, ${TOKEN} in`],
    ["pays in the coin and not in a token", network, USDC, `JobRegistry.ASSET: ${TOKEN} on the chain, 0x${"0".repeat(40)} in`],
    ["pays in a token of other decimals", { ...network, asset: { ...USDC, decimals: 9 } }, USDC, `decimals of the token ${TOKEN}: 6 on the chain, 9 in`],
    ...NODE_PARAMETERS.map(
      (name, at) =>
        [
          `has another ${name}`,
          { ...network, nodeParameters: { ...network.nodeParameters, [name]: 9n } },
          NATIVE,
          `NodeRegistry.${name.toUpperCase()}: ${10 + at} on the chain, 9 in`,
        ] as const,
    ),
  ] satisfies (readonly [string, Network, Asset, string])[])("that %s than its file says is refused", async (_, file, paid, said) => {
    const { market } = chainOf(undefined, file, paid);
    const error = await market.check().then(() => undefined, (thrown: unknown) => thrown);
    expect(codeOf(error)).toBe("WRONG_CONTRACTS");
    expect((error as Error).message).toBe(`${said} the file of network test`);
  });

  it("that pays in a token is taken in the same request", async () => {
    const { market } = chainOf(undefined, { ...network, asset: USDC });
    expect(await market.check()).toEqual(head);
    expect(market.rpc.panel().map((one) => one.requests)).toEqual([1]);
  });

  it.each([
    ["nothing", "0x"],
    ["half a word", `0x${"6".padStart(32, "0")}`],
    ["a number beyond all decimals", `0x${"f".repeat(64)}`],
    ["no hex", 6],
  ])("whose token answers %s for its decimals is refused", async (_, said) => {
    const { market } = chainOf(view("decimals", () => said), { ...network, asset: USDC });
    expect(await refusal(market.check())).toBe("WRONG_CONTRACTS");
  });

  it.each([
    ["reverts", "execution reverted", "WRONG_CONTRACTS"],
    ["is asked of an RPC that has had enough", "too many requests", "RPC_ERROR"],
  ])("whose token %s for its decimals is not taken", async (_, message, code) => {
    const { market } = chainOf(view("decimals", () => new Error(message)), { ...network, asset: USDC });
    expect(await refusal(market.check())).toBe(code);
  });

  it("is read at one block, by its hash", async () => {
    const { market, asked } = chainOf();
    await market.read(head, market.overview(), market.jobs([told.jobs[0]?.job as Hex]));
    expect(asked.map(([, params]) => params[1])).toEqual([{ blockHash: head.hash }, { blockHash: head.hash }]);
  });

  it.each([
    ["nothing", only("eth_call", () => null)],
    ["no bytes", only("eth_call", () => "0x")],
    ["too few numbers", only("eth_call", () => `0x${"20".padStart(64, "0")}${"0".repeat(64)}`)],
    ["half a word", only("eth_call", (_, data: string) => data.slice(0, -2))],
  ] satisfies [string, Lie][])("whose provider answers a view with %s is lied about", async (_, lie) => {
    const { market } = chainOf(lie);
    expect(await refusal(market.read(head, market.jobs([told.jobs[0]?.job as Hex])))).toBe("RPC_LIES");
  });
});

const BLOCK = "eth_getBlockByHash";
const RECEIPT = "eth_getTransactionReceipt";

describe("blocks and transactions", () => {
  it("are asked for once", async () => {
    const { market, asked } = chainOf();
    const { times, receipts } = await market.about([hashOf(12)], [logAt(12)]);
    expect([times.get(hashOf(12)), receipts.get(txOf(12))?.gas]).toEqual([new Map(told.times).get(12), 21_000n]);
    expect(receipts.get(txOf(12))?.fee).toBe(147_000n);
    await market.about([hashOf(12)], [logAt(12)]);
    expect(asked).toHaveLength(2);
  });

  it("are told in maps that stay as they are: a page that memoises over them sees what comes", async () => {
    const { market } = chainOf();
    const before = await market.about([hashOf(12)], [logAt(12)]);
    const copy = { times: new Map(before.times), receipts: new Map(before.receipts) };
    const after = await market.about([hashOf(13)], [logAt(13)]);
    expect(before).toEqual(copy);
    expect([...after.times.keys(), ...after.receipts.keys()]).toEqual([hashOf(13), txOf(13)]);
    expect(await market.about([hashOf(12)], [logAt(12)])).toEqual(before);
  });

  it.each([
    ["says no price", { effectiveGasPrice: null }, undefined],
    ["has none", { effectiveGasPrice: undefined }, undefined],
    ["says that it was free", { effectiveGasPrice: "0x0" }, undefined],
    ["is of a rollup", { l1Fee: "0x5", operatorFee: "0x6" }, 147_011n],
    ["is of a rollup of Isthmus", { l1Fee: "0x5", operatorFeeScalar: "0xf4240", operatorFeeConstant: "0x1" }, 168_006n],
    ["is of a rollup of Jovian", { operatorFeeScalar: "0x1", daFootprintGasScalar: "0x190" }, 2_247_000n],
  ] satisfies [string, object, bigint | undefined][])("cost what a receipt says that %s", async (_, fields, fee) => {
    const { market } = chainOf(only(RECEIPT, (_, one: object) => ({ ...one, ...fields })));
    const { receipts } = await market.about([], [logAt(12)]);
    expect(receipts.get(txOf(12))).toMatchObject({ gas: 21_000n, fee });
  });

  it("that no block has yet are not mined, and no lie", async () => {
    const pool = { blockNumber: null, blockHash: null, status: null };
    const { market } = chainOf(only(RECEIPT, (_, one: object) => ({ ...one, ...pool })));
    expect(await mined(market, txOf(12))).toBeUndefined();
    expect(await refusal(market.about([], [logAt(12)]))).toBe("RPC_ERROR");
  });

  it("whose headers have no base fee cost the price of gas, and never nothing", async () => {
    const fees = async (field: unknown): Promise<unknown> => {
      return readFees(chainOf(only(BLOCK, (_, block: object) => ({ ...block, baseFeePerGas: field }))).market, head);
    };
    expect([await fees("0x7"), await fees("0x0"), await fees(null)]).toMatchObject([{ base: 7n }, { base: 0n }, { base: 9n }]);
    expect(await refusal(readFees(chainOf(only(BLOCK, () => null)).market, head))).toBe("RPC_ERROR");
  });

  it("that a reorg has moved are asked for again", async () => {
    const { market, asked } = chainOf();
    await market.about([], [logAt(12)]);
    await market.about([], [{ ...logAt(12), blockHash: hashOf(99) }]);
    expect(asked).toHaveLength(2);
  });

  it.each([
    ["another block than was named", only(BLOCK, (_, block: object) => ({ ...block, hash: hashOf(13) })), "RPC_LIES"],
    ["a block without a hash", only(BLOCK, (_, block: object) => ({ ...block, hash: "0x" })), "RPC_LIES"],
    ["a block that is gone", only(BLOCK, () => null), "RPC_ERROR"],
    [
      "another transaction's receipt",
      only(RECEIPT, (_, one: object) => ({ ...one, transactionHash: txOf(13) })),
      "RPC_LIES",
    ],
    [
      "a receipt with another's logs",
      only(RECEIPT, (_, one: { logs: RawLog[] }) => ({
        ...one,
        logs: one.logs.map((log) => ({ ...log, transactionHash: txOf(13) })),
      })),
      "RPC_LIES",
    ],
    ["a receipt that is gone", only(RECEIPT, () => null), "RPC_ERROR"],
  ] satisfies [string, Lie, string][])("are not believed as %s", async (_, lie, code) => {
    expect(await refusal(chainOf(lie).market.about([hashOf(12)], [logAt(12)]))).toBe(code);
  });
});

const NEWEST = "eth_getBlockByNumber";
const QUIET = { changed: false, reorged: false };
const CHANGED = { changed: true, reorged: false };
const REORGED = { changed: true, reorged: true };

describe("what came since a block", () => {
  const before: Block = { number: 12, hash: hashOf(12), parent: hashOf(11), time: 1 };
  const newest = (number: number): Lie =>
    only(NEWEST, ([at], block: object) =>
      at === "latest" ? { ...block, number: `0x${number.toString(16)}`, hash: hashOf(number) } : block,
    );
  const gone: Lie = only(NEWEST, ([at], block) => (at === "latest" ? block : null));
  const replaced: Lie = only(NEWEST, (_, block: object) => ({ ...block, hash: hashOf(77) }));

  it.each([
    ["nothing", newest(12), QUIET],
    ["blocks with logs", newest(HEAD), CHANGED],
    ["blocks without logs", only("eth_getLogs", () => []), QUIET],
    ["blocks whose logs nobody tells", only("eth_getLogs", () => new Error("too wide")), CHANGED],
    ["another block in its place", replaced, REORGED],
    ["a head that went back", newest(11), REORGED],
    ["a chain that lost it", gone, REORGED],
  ] satisfies [string, Lie, object][])("is %s", async (_, lie, wanted) => {
    const { changed, reorged } = await chainOf(lie).market.since(before);
    expect({ changed, reorged }).toEqual(wanted);
  });

  it("is asked for in one request, without logs where they may be many", async () => {
    const { market, asked } = chainOf();
    expect((await market.since(before, false)).changed).toBe(true);
    expect(asked.map(([method]) => method)).toEqual([NEWEST, NEWEST]);
  });
});
