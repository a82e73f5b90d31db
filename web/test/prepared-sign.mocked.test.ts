import { beforeEach, describe, expect, it, vi } from "vitest";

import type { Market } from "../src/chain/market";
import * as chain from "../src/chain/calling";
import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { documentsText, type Prepared, preparedOf } from "../src/core/prepared";
import { withdrawCall } from "../src/wallet/calls";
import { PreparedCalls } from "../src/wallet/prepared";
import { Session } from "../src/wallet/request";
import { type Signed, SignedCalls, type SignedShelf } from "../src/wallet/signed";
import { vectors } from "./vectors";
import { type Answer, announced, failing, Scripted } from "./wallets";

vi.mock("../src/chain/calling");

type Json = Readonly<Record<string, unknown>>;
interface Data {
  readonly networks: Readonly<Record<"coin" | "token", unknown>>;
  readonly others: readonly { readonly network: string; readonly function: string; readonly document: Json }[];
}

const DATA = vectors<Data>("prepared");
const HASH: Hex = `0x${"c".repeat(64)}`;
const NOW = 1_760_000_000;
const APPROVE = "0x095ea7b3"; // the selector of a token's approve
const RICH = { coin: 10n ** 40n, asset: 10n ** 40n, credit: 0n };

class Memory implements SignedShelf {
  readonly held = new Map<string, Signed>();
  broken = false;

  async get(id: string): Promise<unknown> {
    return this.held.get(id);
  }

  async put(record: Signed): Promise<void> {
    if (this.broken) throw new Error("full");
    this.held.set(record.id, record);
  }

  async drop(id: string): Promise<void> {
    this.held.delete(id);
  }
}

// One browser and one account beside a market; `allowance` is what the token lets its contracts take.
class Scene {
  readonly shelf = new Memory();
  readonly steps: string[] = [];
  readonly wallet: Scripted;
  readonly session: Session;
  readonly network;
  readonly abort = new AbortController();
  allowance = 0n;

  constructor(readonly kind: "coin" | "token", account: Hex, changes: Record<string, Answer> = {}) {
    this.network = networkOf(DATA.networks[kind]);
    this.wallet = new Scripted({
      eth_requestAccounts: [account],
      eth_accounts: [account],
      eth_chainId: `0x${this.network.chainId.toString(16)}`,
      eth_getBlockByNumber: { hash: this.network.genesisHash },
      eth_sendTransaction: (params: readonly unknown[]) => {
        const { data } = params[0] as { data: string };
        if (data.startsWith(APPROVE)) this.allowance = BigInt(`0x${data.slice(-64)}`);
        return HASH;
      },
      ...changes,
    });
    // What the chain says of an account, the newest scene's.
    vi.mocked(chain.readPurse).mockImplementation(async () => ({ ...RICH, allowance: this.allowance }));
    this.session = new Session(announced(this.wallet), this.network, () => undefined, () => undefined, 50);
  }

  get sent(): readonly string[] {
    return this.wallet.asked.filter((one) => one === "eth_sendTransaction");
  }

  async sign(calls: readonly Prepared[], again = false): Promise<string> {
    if (this.session.account === undefined) await this.session.connect();
    const market = {
      network: this.network,
      head: async () => ({ number: 5, hash: HASH, parent: HASH, time: NOW }),
    } as unknown as Market;
    const tell = (place: number, step: string): unknown => this.steps.push(`${place} ${step}`);
    const work = new PreparedCalls(market, this.session, new SignedCalls(this.shelf), tell, async () => undefined, this.abort.signal);
    const shown = this.session.shown();
    if (shown === undefined) return "nothing shown";
    return work.sign(calls, shown, again).then(
      () => "",
      (error: unknown) => {
        if (!(error instanceof HearthError)) throw error;
        return error.code;
      },
    );
  }
}

const documents = (kind: "coin" | "token", ...names: readonly string[]): Json[] =>
  names.map((name) => DATA.others.find((one) => one.function === name && one.network === kind)?.document as Json);

const read = (kind: "coin" | "token", ...names: readonly string[]): Promise<Prepared[]> =>
  preparedOf(JSON.stringify({ prepared: documents(kind, ...names) }), networkOf(DATA.networks[kind]));

const senderOf = (calls: readonly Prepared[]): Hex => (calls[0] as Prepared).from;

beforeEach(() => {
  vi.mocked(chain.readFees).mockResolvedValue({ base: 1n, tip: 1n });
  vi.mocked(chain.underway).mockResolvedValue(0);
  vi.mocked(chain.sentBy).mockReset();
  vi.mocked(chain.sentBy).mockResolvedValue({ mined: 7, sent: 7 });
  vi.mocked(chain.dryRun).mockReset();
  vi.mocked(chain.mined).mockResolvedValue({ ok: true, block: 6 });
  vi.stubGlobal("navigator", { locks: { request: (_: string, __: unknown, act: (lock: object) => unknown) => act({}) } });
});

describe("a file's calls", () => {
  it("are signed in their order, each once the one before is in a block", async () => {
    const calls = await read("coin", "pause", "drop");
    const scene = new Scene("coin", senderOf(calls));
    let mined = 0;
    vi.mocked(chain.mined).mockImplementation(async () => ((mined += 1) % 3 === 0 ? { ok: true, block: 6 } : undefined));
    expect(await scene.sign(calls)).toBe("");
    expect(scene.steps).toEqual(["0 signing", "0 waiting", "1 signing", "1 waiting"]);
    expect([scene.sent.length, mined]).toEqual([2, 6]);
    expect([...scene.shelf.held.values()].map(({ done }) => done)).toEqual([true, true]);
  });

  it("of another account are refused before the wallet is asked to send", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", `0x${"bb".repeat(20)}`);
    expect(await scene.sign(calls)).toBe("NOT_SENDER");
    expect([scene.sent, scene.shelf.held.size]).toEqual([[], 0]);
  });

  it("that the chain refuses are refused before the wallet is asked, and leave no record", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls));
    vi.mocked(chain.dryRun).mockRejectedValue(new HearthError("REFUSED", "steward: not council or guardian"));
    expect(await scene.sign(calls)).toBe("REFUSED");
    expect([scene.sent, scene.shelf.held.size]).toEqual([[], 0]);
  });

  it("that pay more than the account holds are refused", async () => {
    const calls = await read("coin", "post");
    const scene = new Scene("coin", senderOf(calls));
    vi.mocked(chain.readPurse).mockResolvedValue({ coin: (calls[0] as Prepared).value, asset: 0n, credit: 0n, allowance: 0n });
    expect(await scene.sign(calls)).toBe("FUNDS_SHORT");
    expect(scene.sent).toEqual([]);
  });

  it("signed before are not signed again, unless their reader says so", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls));
    expect(await scene.sign(calls)).toBe("");
    expect(await scene.sign(calls)).toBe("SIGNED_BEFORE");
    expect(scene.sent).toHaveLength(1);
    expect(await scene.sign(calls, true)).toBe("");
    expect(scene.sent).toHaveLength(2);
  });

  it("whose answer was lost are not signed again, unless their reader says so", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls), { eth_sendTransaction: failing({ code: -32603, message: "lost" }) });
    expect([await scene.sign(calls), await scene.sign(calls)]).toEqual(["WALLET_FAILED", "SIGNED_BEFORE"]);
    expect(scene.sent).toHaveLength(1);
  });

  it("that a person refused can be asked for again", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls), { eth_sendTransaction: failing({ code: 4001, message: "no" }) });
    expect([await scene.sign(calls), await scene.sign(calls)]).toEqual(["USER_REFUSED", "USER_REFUSED"]);
    expect(scene.sent).toHaveLength(2);
  });

  it("that a relay says were refused are not signed again once the account has sent something, or nobody says", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls), { eth_sendTransaction: failing({ code: 4001, message: "no" }) });
    expect([await scene.sign(calls), scene.shelf.held.size]).toEqual(["USER_REFUSED", 1]);
    vi.mocked(chain.sentBy).mockResolvedValue({ mined: 7, sent: 8 });
    expect(await scene.sign(calls)).toBe("SIGNED_BEFORE");
    vi.mocked(chain.sentBy).mockResolvedValue(undefined);
    expect([await scene.sign(calls), scene.sent.length]).toEqual(["SIGNED_BEFORE", 1]);
    expect([await scene.sign(calls, true), scene.sent.length]).toEqual(["USER_REFUSED", 2]);
    // Nobody said what it had sent when it was asked for.
    const other = new Scene("coin", senderOf(calls), { eth_sendTransaction: failing({ code: 4001, message: "no" }) });
    expect(await other.sign(calls)).toBe("USER_REFUSED");
    vi.mocked(chain.sentBy).mockResolvedValue({ mined: 7, sent: 7 });
    expect([await other.sign(calls), other.sent.length]).toEqual(["SIGNED_BEFORE", 1]);
  });

  it("that may have been sent once are still so after a second try was refused", async () => {
    const calls = await read("coin", "pause");
    let code = -32603;
    const scene = new Scene("coin", senderOf(calls), { eth_sendTransaction: () => failing({ code, message: "no" })() });
    expect(await scene.sign(calls)).toBe("WALLET_FAILED");
    code = 4001;
    expect([await scene.sign(calls, true), await scene.sign(calls)]).toEqual(["USER_REFUSED", "SIGNED_BEFORE"]);
  });

  it("that stopped half way go on where they stopped", async () => {
    const calls = await read("coin", "pause", "drop");
    let count = 0;
    const second: Answer = () => {
      count += 1;
      if (count === 2) throw { code: 4001, message: "no" };
      return HASH;
    };
    const scene = new Scene("coin", senderOf(calls), { eth_sendTransaction: second });
    expect([await scene.sign(calls), await scene.sign(calls)]).toEqual(["USER_REFUSED", ""]);
    expect(scene.steps).toEqual(["0 signing", "0 waiting", "1 signing", "0 skipped", "1 signing", "1 waiting"]);
    expect(scene.sent).toHaveLength(3);
  });

  it.each([
    ["is due again where as much credit is there again", 0n, 3],
    ["is left out where it is not", -1n, 2],
  ])("that withdraw what an earlier file withdrew: it %s", async (_, more, sent) => {
    const network = networkOf(DATA.networks["coin"]);
    const [from, amount] = [`0x${"5a".repeat(20)}` as Hex, 100n];
    const about = { from, approve: 0n, key: "x", chainId: network.chainId };
    const text = documentsText([amount, amount + 1n].map((one) => [withdrawCall(network, from, one), about]));
    const [first, other] = (await preparedOf(text, network)) as [Prepared, Prepared];
    const scene = new Scene("coin", from);
    expect(await scene.sign([first])).toBe("");
    vi.mocked(chain.readPurse).mockResolvedValue({ ...RICH, credit: amount + more, allowance: 0n });
    expect(await scene.sign([first, other])).toBe("");
    expect(scene.sent).toHaveLength(sent);
  });

  it("are not signed where nothing can be kept", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls));
    scene.shelf.broken = true;
    expect(await scene.sign(calls)).toBe("JOURNAL_DOWN");
    expect(scene.sent).toEqual([]);
  });

  it("are not signed in two tabs at once", async () => {
    const calls = await read("coin", "pause");
    const scene = new Scene("coin", senderOf(calls));
    vi.stubGlobal("navigator", { locks: { request: (_: string, __: unknown, act: (lock: null) => unknown) => act(null) } });
    expect(await scene.sign(calls)).toBe("BUSY");
    expect(scene.sent).toEqual([]);
  });

  it("in a token are approved for exactly what they take, where less is", async () => {
    const calls = await read("token", "post");
    const [post] = calls as [Prepared];
    const scene = new Scene("token", senderOf(calls));
    expect(await scene.sign(calls)).toBe("");
    expect(scene.steps).toEqual(["0 approving", "0 signing", "0 waiting"]);
    const [approved] = vi.mocked(chain.dryRun).mock.calls[0]?.slice(1) as unknown as [{ readonly to: Hex; readonly data: Hex }];
    expect([approved.to, BigInt(`0x${approved.data.slice(-64)}`)]).toEqual([scene.network.asset.address, post.approve]);
    const enough = new Scene("token", senderOf(calls));
    enough.allowance = post.approve;
    expect([await enough.sign(calls), enough.steps]).toEqual(["", ["0 signing", "0 waiting"]]);
  });

  it("in a token approve nothing for an account that cannot pay, or that has sent something else", async () => {
    const calls = await read("token", "post");
    const poor = new Scene("token", senderOf(calls));
    vi.mocked(chain.readPurse).mockResolvedValue({ ...RICH, asset: 0n, allowance: 0n });
    expect([await poor.sign(calls), poor.sent, poor.shelf.held.size]).toEqual(["FUNDS_SHORT", [], 0]);
    const busy = new Scene("token", senderOf(calls));
    vi.mocked(chain.underway).mockResolvedValue(1);
    expect([await busy.sign(calls), busy.sent, busy.shelf.held.size]).toEqual(["TX_PENDING", [], 0]);
  });

  it("whose approval a person refused leave no record", async () => {
    const calls = await read("token", "post");
    const scene = new Scene("token", senderOf(calls), { eth_sendTransaction: failing({ code: 4001, message: "no" }) });
    expect([await scene.sign(calls), await scene.sign(calls)]).toEqual(["USER_REFUSED", "USER_REFUSED"]);
    expect(scene.shelf.held.size).toBe(0);
  });
});
