// What several tabs, and an RPC that lies, may not bring about: the same call signed twice without its reader's word.

import { beforeEach, expect, it, vi } from "vitest";

import type { Market } from "../src/chain/market";
import * as chain from "../src/chain/calling";
import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { documentText, type Prepared, preparedOf } from "../src/core/prepared";
import { addStakeCall } from "../src/wallet/owner-calls";
import { PreparedCalls } from "../src/wallet/prepared";
import { Session } from "../src/wallet/request";
import { type Signed, SignedCalls, type SignedShelf } from "../src/wallet/signed";
import { vectors } from "./vectors";
import { announced, Scripted } from "./wallets";

vi.mock("../src/chain/calling");

type Json = Readonly<Record<string, unknown>>;
const DATA = vectors<{
  readonly networks: Readonly<Record<"coin" | "token", unknown>>;
  readonly others: readonly { readonly network: string; readonly function: string; readonly document: Json }[];
}>("prepared");
const HASH: Hex = `0x${"c".repeat(64)}`;
const NETWORK = networkOf(DATA.networks.coin);
const find = (name: string): Json => DATA.others.find((one) => one.function === name && one.network === "coin")?.document as Json;
const read = (...all: readonly Json[]): Promise<Prepared[]> => preparedOf(JSON.stringify({ prepared: all }), NETWORK);

class Memory implements SignedShelf {
  readonly held = new Map<string, Signed>();
  async get(id: string): Promise<unknown> {
    return this.held.get(id);
  }
  async put(record: Signed): Promise<void> {
    this.held.set(record.id, record);
  }
  async drop(id: string): Promise<void> {
    this.held.delete(id);
  }
}

// Web Locks as a browser has them, for all tabs of the origin.
const locks = new Set<string>();
beforeEach(() => {
  locks.clear();
  vi.mocked(chain.readFees).mockResolvedValue({ base: 1n, tip: 1n });
  vi.mocked(chain.readPurse).mockResolvedValue({ coin: 10n ** 40n, asset: 10n ** 40n, credit: 0n, allowance: 0n });
  vi.mocked(chain.underway).mockResolvedValue(0);
  vi.mocked(chain.sentBy).mockResolvedValue({ mined: 7, sent: 7 });
  vi.mocked(chain.dryRun).mockResolvedValue(undefined);
  vi.mocked(chain.mined).mockResolvedValue({ ok: true, block: 6 });
  const request = async (name: string, _: unknown, act: (lock: object | null) => Promise<unknown>): Promise<unknown> => {
    if (locks.has(name)) return act(null);
    locks.add(name);
    return act({}).finally(() => locks.delete(name));
  };
  vi.stubGlobal("navigator", { locks: { request } });
});

it("a call that another tab signed while this one signed the call before it is not paid again", async () => {
  const first = find("pause");
  const from = first["from"] as Hex;
  // A thousandth more of stake for node 7: what a file of `hearth worker stake --print-tx` holds.
  const call = addStakeCall(NETWORK, 7, from, 10n ** 15n);
  const stake = JSON.parse(documentText(call, { from, approve: 0n, key: "", chainId: NETWORK.chainId })) as Json;
  const both = await read(first, stake);
  const alone = await read(stake);
  const shelf = new Memory();
  const sent: string[] = [];
  const tab = async (opened: () => void = () => undefined, hold?: Promise<void>): Promise<(calls: readonly Prepared[]) => Promise<string>> => {
    const account = (both[0] as Prepared).from;
    const wallet = new Scripted({
      eth_requestAccounts: [account],
      eth_accounts: [account],
      eth_chainId: `0x${NETWORK.chainId.toString(16)}`,
      eth_getBlockByNumber: { hash: NETWORK.genesisHash },
      eth_sendTransaction: async (params: readonly unknown[]) => {
        const { data } = params[0] as { data: string };
        sent.push(data);
        if (data === (both[0] as Prepared).data) {
          opened();
          await hold; // its window stands open while the other tab signs
        }
        return HASH;
      },
    });
    const session = new Session(announced(wallet), NETWORK, () => undefined, () => undefined, 50);
    await session.connect();
    const market = { network: NETWORK, head: async () => ({ number: 5, hash: HASH, parent: HASH, time: 1_760_000_000 }) } as unknown as Market;
    const work = new PreparedCalls(market, session, new SignedCalls(shelf), () => undefined, async () => undefined, new AbortController().signal);
    return (calls) => {
      const shown = session.shown();
      if (shown === undefined) throw new Error("nothing shown");
      return work.sign(calls, shown, false).then(() => "", (error: unknown) => (error instanceof HearthError ? error.code : String(error)));
    };
  };
  let go = (): void => undefined;
  const hold = new Promise<void>((done) => {
    go = done;
  });
  let opened = (): void => undefined;
  const open = new Promise<void>((done) => {
    opened = done;
  });
  const one = (await tab(() => opened(), hold))(both);
  await open;
  expect(await (await tab())(alone)).toBe("BUSY");
  go();
  const end = await one;
  const paid = sent.filter((data) => data === (alone[0] as Prepared).data).length;
  expect({ end, paid }).toEqual({ end: "", paid: 1 });
  expect(await (await tab())(alone)).toBe("SIGNED_BEFORE");
});

it("a call that an RPC says has failed is not signed once more without its reader's word", async () => {
  const from = find("pause")["from"] as Hex;
  const call = addStakeCall(NETWORK, 7, from, 10n ** 15n);
  const calls = await read(JSON.parse(documentText(call, { from, approve: 0n, key: "", chainId: NETWORK.chainId })) as Json);
  let sent = 0;
  const wallet = new Scripted({
    eth_requestAccounts: [from],
    eth_accounts: [from],
    eth_chainId: `0x${NETWORK.chainId.toString(16)}`,
    eth_getBlockByNumber: { hash: NETWORK.genesisHash },
    eth_sendTransaction: () => {
      sent += 1; // and a block has it: the wallet's own RPC is honest
      return HASH;
    },
  });
  const session = new Session(announced(wallet), NETWORK, () => undefined, () => undefined, 50);
  await session.connect();
  vi.mocked(chain.mined).mockResolvedValue({ ok: false, block: 6 }); // the lie
  const market = { network: NETWORK, head: async () => ({ number: 5, hash: HASH, parent: HASH, time: 1_760_000_000 }) } as unknown as Market;
  const shelf = new Memory();
  const sign = async (): Promise<string> => {
    const work = new PreparedCalls(market, session, new SignedCalls(shelf), () => undefined, async () => undefined, new AbortController().signal);
    const shown = session.shown();
    if (shown === undefined) throw new Error("nothing shown");
    return work.sign(calls, shown, false).then(() => "", (error: unknown) => (error instanceof HearthError ? error.code : String(error)));
  };
  expect([await sign(), await sign(), sent]).toEqual(["TX_FAILED", "SIGNED_BEFORE", 1]);
});
