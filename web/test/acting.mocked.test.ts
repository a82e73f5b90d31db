import { describe, expect, it, vi } from "vitest";

import * as chain from "../src/chain/calling";
import type { Market } from "../src/chain/market";
import type { Hex } from "../src/core/bytes";
import { codeOf, HearthError } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { type Act, carryOut } from "../src/wallet/acting";
import { exitStartCall, registerCall } from "../src/wallet/owner-calls";
import { Session } from "../src/wallet/request";
import { unpackOffer } from "../src/core/words";
import { vectors } from "./vectors";
import { announced, failing, Scripted } from "./wallets";

vi.mock("../src/chain/calling");

const NETWORKS = vectors<{ networks: Record<string, unknown> }>("calls").networks;
const ME: Hex = `0x${"aa".repeat(20)}`;
const HASH: Hex = `0x${"c".repeat(64)}`;
const STAKE = 10n ** 9n;
const APPROVE = "0x095ea7b3";

// One account that registers a node, beside one market.
class Scene {
  readonly network;
  readonly sent: { readonly to: Hex; readonly data: Hex; readonly value: string }[] = [];
  readonly wallet: Scripted;
  readonly session: Session;
  readonly abort = new AbortController();
  purse = { coin: 10n ** 24n, asset: 10n ** 24n, credit: 0n, allowance: 0n };
  underway = 0;

  constructor(kind: "coin" | "token" = "coin") {
    this.network = networkOf(NETWORKS[kind]);
    this.wallet = new Scripted({
      eth_requestAccounts: [ME],
      eth_accounts: [ME],
      eth_chainId: `0x${this.network.chainId.toString(16)}`,
      eth_getBlockByNumber: { hash: this.network.genesisHash },
      eth_sendTransaction: ([one]: readonly unknown[]) => {
        const call = one as { to: Hex; data: Hex; value: string };
        this.sent.push(call);
        if (call.data.startsWith(APPROVE)) this.purse.allowance = BigInt(`0x${call.data.slice(-64)}`);
        return HASH;
      },
    });
    this.session = new Session(announced(this.wallet), this.network, () => undefined, () => undefined, 50);
    vi.mocked(chain.readFees).mockResolvedValue({ base: 1n, tip: 1n });
    vi.mocked(chain.readPurse).mockImplementation(async () => ({ ...this.purse }));
    vi.mocked(chain.underway).mockImplementation(async () => this.underway);
    vi.mocked(chain.dryRun).mockReset().mockResolvedValue(undefined);
    vi.mocked(chain.mined).mockResolvedValue({ ok: true, block: 6 });
  }

  get market(): Market {
    return { network: this.network, head: async () => ({ number: 5, hash: HASH, parent: HASH, time: 1 }) } as unknown as Market;
  }

  get register(): Act {
    const manifest = { digest: HASH, document: "0x7b7d" } as const;
    const call = registerCall(this.network, ME, unpackOffer(1n << 69n), manifest, STAKE);
    return { call, what: "registering", gas: 300_000n, money: "it is somewhere", pays: STAKE };
  }

  async act(act: Act): Promise<string> {
    await this.session.connect();
    const shown = this.session.shown();
    if (shown === undefined) throw new Error("nothing shown");
    const pause = () => new Promise<void>((go) => setTimeout(go, 1));
    return carryOut(this.market, this.session, act, shown, pause, this.abort.signal).then(() => "done", codeOf);
  }
}

describe("an act that takes money", () => {
  it("sends it with the call in a market of the chain's coin", async () => {
    const scene = new Scene();
    expect(await scene.act(scene.register)).toBe("done");
    expect(scene.sent.map(({ value }) => BigInt(value))).toEqual([STAKE]);
  });

  it("approves exactly that for the contract it calls in a market of a token, and once", async () => {
    const scene = new Scene("token");
    expect(await scene.act(scene.register)).toBe("done");
    const [approve, call] = scene.sent;
    expect([scene.sent.length, approve?.to, call?.to]).toEqual([2, scene.network.asset.address, scene.network.contracts.NodeRegistry]);
    expect(approve?.data.slice(34, 74)).toBe(scene.network.contracts.NodeRegistry.slice(2));
    expect([BigInt(`0x${approve?.data.slice(-64)}`), BigInt(call?.value ?? 1)]).toEqual([STAKE, 0n]);
    expect(vi.mocked(chain.readPurse).mock.calls.at(-1)?.[3]).toBe(scene.network.contracts.NodeRegistry);
    expect(await scene.act(scene.register)).toBe("done");
    expect(scene.sent.length).toBe(3);
  });

  it("is refused where it cannot be paid, before a wallet opens", async () => {
    for (const kind of ["coin", "token"] as const) {
      const scene = new Scene(kind);
      scene.purse.asset = STAKE - 1n;
      scene.purse.coin = kind === "coin" ? STAKE : 10n ** 24n;
      expect(await scene.act(scene.register)).toBe("FUNDS_SHORT");
      expect(scene.sent).toEqual([]);
    }
  });

  it("is refused while the account has sent what no block has yet: it may be the very same", async () => {
    const scene = new Scene();
    scene.underway = 1;
    expect(await scene.act(scene.register)).toBe("TX_PENDING");
    expect(scene.sent).toEqual([]);
    const call = exitStartCall(scene.network, 1);
    expect(await scene.act({ call, what: "leaving", gas: 1n, money: "" })).toBe("done");
  });
});

describe("any act", () => {
  it("is refused by its own check first, and by the chain before a wallet opens", async () => {
    const scene = new Scene();
    const check = vi.fn(async (account: Hex) => {
      throw new HearthError("REGISTERED", `${account} has one`);
    });
    expect(await scene.act({ ...scene.register, check })).toBe("REGISTERED");
    expect(check).toHaveBeenCalledWith(ME);
    vi.mocked(chain.dryRun).mockRejectedValue(new HearthError("REFUSED", "nodes: paused"));
    expect(await scene.act(scene.register)).toBe("REFUSED");
    expect(scene.sent).toEqual([]);
  });

  it("says where the money is where it failed, and stops waiting when told to", async () => {
    const scene = new Scene();
    vi.mocked(chain.mined).mockResolvedValue({ ok: false, block: 6 });
    expect(await scene.act(scene.register)).toBe("TX_FAILED");
    scene.wallet.answers["eth_sendTransaction"] = failing({ code: 4001 });
    expect(await scene.act(scene.register)).toBe("USER_REFUSED");
    const left = new Scene();
    vi.mocked(chain.mined).mockImplementation(async () => {
      left.abort.abort();
      return undefined;
    });
    expect(await left.act(left.register)).toBe("STOPPED");
    expect(left.sent).toHaveLength(1);
  });

  it.each(["coin", "token"] as const)("asks no wallet once its reader waits no longer, or for another market, in a market of a %s", async (kind) => {
    const scene = new Scene(kind);
    const register = scene.register;
    scene.abort.abort();
    expect(await scene.act(register)).toBe("STOPPED");
    const other = new Scene(kind);
    (other as { network: unknown }).network = { ...other.network, genesisHash: HASH };
    expect(await other.act(register)).toBe("CHANGED");
    expect([scene.sent, other.sent]).toEqual([[], []]);
  });

  it("says what comes next, and waits for a wallet that never answers only as long as its reader does", async () => {
    const scene = new Scene("token");
    const steps: string[] = [];
    const step = async (next: string): Promise<void> => void steps.push(next);
    expect(await scene.act({ ...scene.register, step })).toBe("done");
    expect(steps).toEqual(["approving", "signing", "waiting"]);
    scene.wallet.answers["eth_sendTransaction"] = () => {
      scene.abort.abort();
      return new Promise(() => undefined);
    };
    expect(await scene.act({ ...scene.register, step })).toBe("STOPPED");
    expect(steps.slice(3)).toEqual(["signing"]);
  });
});
