import { describe, expect, it, vi } from "vitest";

import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import type { Call } from "../src/wallet/calls";
import { Session, type Shown, walletError } from "../src/wallet/request";
import { vectors } from "./vectors";
import { type Answer, announced, failing, Scripted, Turns } from "./wallets";

const NETWORK = networkOf(vectors<{ networks: Record<string, unknown> }>("calls").networks["coin"]);
const ME: Hex = `0x${"Aa".repeat(20)}`;
const ACCOUNT = ME.toLowerCase() as Hex;
const HASH: Hex = `0x${"c".repeat(64)}`;
const CHAIN = `0x${NETWORK.chainId.toString(16)}`;
const MONEY = "your money is in your account, or in Escrow";
const CALL: Call = { to: NETWORK.contracts.JobRegistry, data: "0x1234", value: 5n, label: "jobs.post" };
const GOOD: Record<string, Answer> = {
  eth_requestAccounts: [ME],
  eth_accounts: [ME],
  eth_chainId: CHAIN,
  eth_getBlockByNumber: { hash: NETWORK.genesisHash },
  eth_sendTransaction: HASH,
};

async function connected(changes: Record<string, Answer> = {}): Promise<{ session: Session; wallet: Scripted; told: () => number }> {
  let told = 0;
  const wallet = new Scripted({ ...GOOD, ...changes });
  const session = new Session(announced(wallet), NETWORK, () => (told += 1), () => undefined, 30);
  await session.connect();
  return { session, wallet, told: () => told };
}

const GOING = new AbortController().signal;

async function send(session: Session): Promise<string> {
  const shown = session.shown();
  if (shown === undefined) return "nothing shown";
  return session.send(CALL, shown, MONEY, GOING).catch((error: unknown) => wordsOf(error));
}

function wordsOf(error: unknown): string {
  if (!(error instanceof HearthError)) throw error;
  return `${error.code}: ${error.message}`;
}

const sends = (wallet: Scripted): number => wallet.asked.filter((one) => one === "eth_sendTransaction").length;

describe("a wallet", () => {
  it("sends what was shown, from the account and on the chain that were shown", async () => {
    const { session, wallet } = await connected();
    expect(session.shown()).toEqual({ account: ACCOUNT, chainId: NETWORK.chainId, epoch: 0 });
    expect(await send(session)).toBe(HASH);
    expect(wallet.params.get("eth_sendTransaction")).toEqual([
      { from: ACCOUNT, to: CALL.to, data: CALL.data, value: "0x5", chainId: CHAIN },
    ]);
    // All that is compared is asked right before.
    expect(wallet.asked.slice(-4)).toEqual(["eth_chainId", "eth_getBlockByNumber", "eth_accounts", "eth_sendTransaction"]);
  });

  it.each<[string, Answer]>([
    ["answers", HASH],
    ["refuses", failing({ code: 4001, message: "no" })],
  ])("that %s: what it was given stands there as long as it is open, and is what it was given", async (_, answer) => {
    const seen: unknown[] = [];
    const { session, wallet } = await connected({
      eth_sendTransaction: () => {
        seen.push(...session.asked);
        return typeof answer === "function" ? (answer as () => unknown)() : answer;
      },
    });
    expect(session.asked).toEqual([]);
    await send(session);
    expect(seen).toEqual(wallet.params.get("eth_sendTransaction"));
    expect(session.asked).toEqual([]);
  });

  it("with two calls open shows both, and the one that is left", async () => {
    const answers: ((hash: string) => void)[] = [];
    const { session } = await connected({ eth_sendTransaction: () => new Promise((done) => answers.push(done)) });
    const other = { ...CALL, data: "0x99" as const };
    const shown = session.shown() as Shown;
    const sending = [session.send(CALL, shown, MONEY, GOING), session.send(other, shown, MONEY, GOING)];
    await vi.waitFor(() => expect(answers).toHaveLength(2));
    expect(session.asked.map(({ data }) => data).sort()).toEqual([CALL.data, other.data].sort());
    answers[1]?.(HASH);
    await Promise.race(sending);
    expect(session.asked).toHaveLength(1);
    answers[0]?.(HASH);
    await Promise.all(sending);
    expect(session.asked).toEqual([]);
  });

  it("is asked for nothing once its reader waits no longer", async () => {
    const { session, wallet } = await connected();
    await expect(session.send(CALL, session.shown() as Shown, MONEY, AbortSignal.abort())).rejects.toMatchObject({ code: "STOPPED" });
    expect(sends(wallet)).toBe(0);
  });

  it("is of the market that it was connected for", async () => {
    const { session } = await connected();
    session.requireMarket({ ...NETWORK, name: "renamed", rpc: [] });
    const others = [{ chainId: 5n }, { genesisHash: HASH as Hex }, { contracts: { ...NETWORK.contracts, Lens: ACCOUNT as Hex } }];
    for (const other of others) expect(() => session.requireMarket({ ...NETWORK, ...other })).toThrow(/was connected for market/);
  });

  it.each<[string, Record<string, Answer>, string]>([
    ["that refuses", { eth_sendTransaction: failing({ code: 4001, message: "no" }) }, "USER_REFUSED: you refused it; nothing was sent"],
    [
      "that refuses inside an error",
      { eth_sendTransaction: failing({ code: -32603, data: { originalError: { code: 4001 } } }) },
      "USER_REFUSED: you refused it; nothing was sent",
    ],
    ["that fails", { eth_sendTransaction: failing(new Error("boom")) }, `WALLET_FAILED: Test says: boom; ${MONEY}`],
    [
      "that fails with a code and a name that moves text",
      { eth_sendTransaction: failing({ code: -32000, message: "in\u200bsufficient" }) },
      `WALLET_FAILED: Test says: inU+200Bsufficient (-32000); ${MONEY}`,
    ],
    ["that throws nothing", { eth_sendTransaction: failing(undefined) }, `WALLET_FAILED: Test says: nothing of what went wrong; ${MONEY}`],
    ["that names no transaction", { eth_sendTransaction: "0x12" }, `WALLET_FAILED: Test names no transaction; ${MONEY}`],
    ["that lost its chain as it sent", { eth_sendTransaction: failing({ code: 4900 }) }, `WALLET_GONE: Test has no connection to its chain; ${MONEY}`],
    ["that is asked already", { eth_sendTransaction: failing({ code: -32002 }) }, "WALLET_BUSY: Test waits for your answer to an earlier request; nothing was sent now"],
    ["that does not let the page", { eth_sendTransaction: failing({ code: 4100 }) }, "WALLET_DENIED: Test has not let this page use that account; nothing was sent"],
  ])("%s is said to, with where the money is", async (_, changes, words) => {
    const { session } = await connected(changes);
    expect(await send(session)).toBe(words);
  });

  it.each<[string, Record<string, Answer>, string]>([
    ["on another chain", { eth_chainId: new Turns(CHAIN, "0x1") }, "WRONG_CHAIN"],
    ["whose chain has another first block", { eth_getBlockByNumber: { hash: `0x${"0".repeat(64)}` } }, "WRONG_CHAIN"],
    ["whose chain has no first block", { eth_getBlockByNumber: null }, "WRONG_CHAIN"],
    ["with another account", { eth_accounts: [`0x${"b".repeat(40)}`] }, "CHANGED"],
    ["that was locked", { eth_accounts: [] }, "CHANGED"],
    ["that names no account", { eth_accounts: "me" }, "CHANGED"],
    ["that names no chain", { eth_chainId: new Turns(CHAIN, {}) }, "WALLET_FAILED"],
    ["that is silent", { eth_accounts: () => new Promise(() => undefined) }, "WALLET_GONE"],
    ["that is gone", { eth_chainId: new Turns(CHAIN, failing({ code: 4900, message: "disconnected" })) }, "WALLET_GONE"],
  ])("%s is not asked to sign", async (_, changes, code) => {
    const { session, wallet } = await connected(changes);
    const words = await send(session);
    expect(words.split(":")[0]).toBe(code);
    // A wallet that cannot be asked sends nothing either.
    expect(words).toMatch(/nothing was sent/);
    expect(sends(wallet)).toBe(0);
  });

  it("that does not pass on questions is taken at its word about its chain", async () => {
    const { session } = await connected({ eth_getBlockByNumber: failing({ code: 4200, message: "unsupported" }) });
    expect(await send(session)).toBe(HASH);
  });

  it.each([
    ["accountsChanged", [`0x${"b".repeat(40)}`]],
    ["accountsChanged", []],
    ["accountsChanged", [ME]],
    ["chainChanged", "0x1"],
    ["disconnect", { code: 4900 }],
  ])("that announces %s drops what was prepared (%#)", async (event, value) => {
    const { session, wallet, told } = await connected();
    const shown = session.shown();
    const before = told();
    wallet.emit(event, value);
    expect(told()).toBe(before + 1);
    if (shown === undefined) throw new Error("nothing was shown");
    await expect(session.send(CALL, shown, MONEY, GOING)).rejects.toMatchObject({ code: "CHANGED" });
    expect(sends(wallet)).toBe(0);
  });

  it("is heard no more once it is left", async () => {
    const { session, wallet, told } = await connected();
    session.close();
    const before = told();
    wallet.emit("chainChanged", "0x1");
    expect(told()).toBe(before);
  });

  it("without an account is not connected", async () => {
    await expect(connected({ eth_requestAccounts: [] })).rejects.toMatchObject({ code: "NO_ACCOUNT" });
    await expect(connected({ eth_requestAccounts: failing({ code: 4001 }) })).rejects.toMatchObject({ code: "USER_REFUSED" });
  });

  it("is not even asked for an account where the page may not sign", async () => {
    const wallet = new Scripted(GOOD);
    const never = (): never => {
      throw new HearthError("SHARED_ORIGIN", "no");
    };
    const session = new Session(announced(wallet), NETWORK, () => undefined, never);
    await expect(session.connect()).rejects.toMatchObject({ code: "SHARED_ORIGIN" });
    await expect(session.send(CALL, { account: ACCOUNT, chainId: 1n, epoch: 0 }, MONEY, GOING)).rejects.toMatchObject({ code: "SHARED_ORIGIN" });
    expect(wallet.asked).toEqual([]);
  });
});

describe("the market's chain", () => {
  const switching = async (changes: Record<string, Answer>): Promise<{ words: string; wallet: Scripted }> => {
    const { session, wallet } = await connected({ eth_chainId: new Turns("0x1", CHAIN), ...changes });
    wallet.asked.length = 0;
    const words = await session.switchChain().then(() => "switched", wordsOf);
    return { words, wallet };
  };

  it("is switched to, and then asked for", async () => {
    const { words, wallet } = await switching({ wallet_switchEthereumChain: null });
    expect(words).toBe("switched");
    expect(wallet.params.get("wallet_switchEthereumChain")).toEqual([{ chainId: CHAIN }]);
    expect(wallet.asked).toEqual(["wallet_switchEthereumChain", "eth_chainId", "eth_chainId", "eth_getBlockByNumber"]);
  });

  it.each([
    ["4902", { code: 4902 }],
    ["4902 inside -32603", { code: -32603, data: { originalError: { code: 4902 } } }],
    ["4902 inside a cause", { code: -32603, data: { cause: { code: 4902 } } }],
  ])("is added where the wallet answers %s", async (_, error) => {
    const { words, wallet } = await switching({
      eth_chainId: new Turns("0x1", "0x1", CHAIN),
      wallet_switchEthereumChain: new Turns(failing(error), null),
      wallet_addEthereumChain: null,
    });
    expect(words).toBe("switched");
    expect(wallet.asked.slice(0, 4)).toEqual([
      "wallet_switchEthereumChain",
      "wallet_addEthereumChain",
      "eth_chainId",
      "wallet_switchEthereumChain",
    ]);
    expect(wallet.params.get("wallet_addEthereumChain")).toEqual([
      {
        chainId: CHAIN,
        chainName: "Hearth devnet",
        nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
        rpcUrls: [...NETWORK.rpc],
      },
    ]);
  });

  it("is not switched to twice where adding did", async () => {
    const { wallet } = await switching({ wallet_switchEthereumChain: failing({ code: 4902 }), wallet_addEthereumChain: null });
    expect(wallet.asked.filter((one) => one === "wallet_switchEthereumChain")).toHaveLength(1);
  });

  it.each<[string, Record<string, Answer>]>([
    ["after it switched", { wallet_switchEthereumChain: failing({ code: -32603, message: "x" }) }],
    ["after it added and switched", { wallet_switchEthereumChain: failing({ code: 4902 }), wallet_addEthereumChain: failing({ code: -32603 }) }],
  ])("is done where the wallet fails %s", async (_, changes) => {
    expect((await switching(changes)).words).toBe("switched");
  });

  it.each<[string, Record<string, Answer>, string]>([
    ["refuses the switch", { wallet_switchEthereumChain: failing({ code: 4001 }) }, "USER_REFUSED: you refused it; nothing was sent"],
    [
      "refuses to add it",
      { wallet_switchEthereumChain: failing({ code: 4902 }), wallet_addEthereumChain: failing({ code: 4001 }) },
      "USER_REFUSED: you refused it; nothing was sent",
    ],
    ["says it switched and did not", { wallet_switchEthereumChain: null, eth_chainId: "0x1" }, "WRONG_CHAIN: Test is on chain 1, and the market is on chain 31337: nothing was sent"],
    [
      "fails, and stays where it was",
      { wallet_switchEthereumChain: failing({ code: -32603, message: "x" }), eth_chainId: "0x1" },
      "WALLET_FAILED: Test says: x (-32603); nothing was sent",
    ],
    [
      "lies about its id",
      { wallet_switchEthereumChain: null, eth_getBlockByNumber: { hash: `0x${"1".repeat(64)}` } },
      "WRONG_CHAIN: Test says chain 31337, and asks another chain of that id than the market's: nothing was sent",
    ],
  ])("stays away where the wallet %s", async (_, changes, words) => {
    expect((await switching(changes)).words).toBe(words);
  });
});

describe("a wallet's error", () => {
  it("may be anything", () => {
    const trap = {
      get code(): never {
        throw new Error("boom");
      },
    };
    const loop: Record<string, unknown> = { message: "again" };
    loop["data"] = loop;
    for (const error of [undefined, null, "text", 4001, trap, loop, { code: "4001" }, { message: {} }]) {
      expect(walletError(error, "Test", MONEY).code).toBe("WALLET_FAILED");
      expect(walletError(error, "Test", MONEY).message).toContain(MONEY);
    }
  });

  it("cannot reorder what is read", () => {
    expect(walletError({ message: `a\u202eb${"x".repeat(1_000)}` }, "Test", MONEY).message).toMatch(/^Test says: aU\+202Eb/);
    expect(walletError({ message: "x".repeat(1_000) }, "Test", MONEY).message.length).toBeLessThan(300);
  });
});
