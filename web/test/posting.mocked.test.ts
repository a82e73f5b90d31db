import { beforeEach, describe, expect, it, vi } from "vitest";

import type { PostingGround } from "../src/chain/posting-ground";
import * as chain from "../src/chain/calling";
import * as ground from "../src/chain/posting-ground";
import type { Overview } from "../src/chain/lens";
import type { Market } from "../src/chain/market";
import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { fleetOf } from "../src/core/fleet";
import { escrowAtPost } from "../src/core/money";
import { type Network, networkOf } from "../src/core/network";
import { draftTerms, postGas } from "../src/core/posting";
import { resolve, specDigest } from "../src/core/resolve";
import { loadSpec } from "../src/core/spec";
import { packUnit } from "../src/core/words";
import { NEW_UNIT } from "../src/core/types";
import { WITHDRAW_GAS } from "../src/generated/posting";
import { STATE } from "../src/generated/states";
import { fateOf, Journal, type Kept, type Shelf } from "../src/wallet/journal";
import { withdrawCall } from "../src/wallet/calls";
import { type Choice, type Draft, Posting } from "../src/wallet/posting";
import { Session, type Shown } from "../src/wallet/request";
import { type NodeFields, nodeOf } from "./lanes";
import { vectors } from "./vectors";
import { type Answer, announced, failing, Scripted } from "./wallets";

vi.mock("../src/chain/calling");
vi.mock("../src/chain/posting-ground");

interface Fleets {
  readonly deadAfter: number;
  readonly minimumStake: string;
  readonly cases: readonly { readonly terms: readonly string[]; readonly nodes: readonly NodeFields[]; readonly now: number; readonly takers: number }[];
}

const NETWORKS = vectors<{ networks: Record<string, unknown> }>("calls").networks;
const FLEETS = vectors<Fleets>("fleet");
const ME: Hex = `0x${"aa".repeat(20)}`;
const HASH: Hex = `0x${"c".repeat(64)}`;
const PARENT: Hex = `0x${"e".repeat(64)}`;
const POLICY = BigInt(FLEETS.cases[0]?.terms[7] ?? 0);
const NOW = FLEETS.cases[0]?.now ?? 0;
const ABLE = FLEETS.cases.find((one) => one.takers === 1 && one.nodes.length === 1)?.nodes ?? [];
const SPEC = `version: 1
name: sum
image: "x@sha256:${"1".repeat(64)}"
command: [run]
resources: {cpus: 1, memory: 1GiB}
limits: {runtime: 1m, deadline: 1h}
price: {max_rate: "1000/h"}
`;

class Memory implements Shelf {
  readonly held = new Map<string, Kept>();
  broken = false;

  async all(): Promise<readonly unknown[]> {
    if (this.broken) throw new Error("full");
    return structuredClone([...this.held.values()]);
  }

  async put(record: Kept): Promise<void> {
    if (this.broken) throw new Error("full");
    this.held.set(record.job, structuredClone(record));
  }

  async drop(job: Hex): Promise<void> {
    this.held.delete(job);
  }
}

// One reader's browser beside one market: `chain` are the jobs' own words.
class Scene {
  readonly shelf = new Memory();
  readonly words = new Map<string, bigint>();
  readonly notes: string[] = [];
  readonly network: Network;
  readonly wallet: Scripted;
  readonly session: Session;
  market: Market;
  abort = new AbortController();
  overview = { policy: POLICY, previousPolicy: 0n, previousUntil: 0, postsPausedUntil: 0, time: NOW } as Overview;
  nodes = ABLE;
  purse = { coin: 10n ** 24n, asset: 10n ** 40n, credit: 0n, allowance: 0n };
  salt = 0n;
  // Called whenever the page waits for a block.
  waits = (): void => undefined;

  constructor(network: "coin" | "token" = "coin", changes: Partial<Network> = {}) {
    this.network = { ...networkOf(NETWORKS[network]), ...changes };
    const answers: Record<string, Answer> = {
      eth_requestAccounts: [ME],
      eth_accounts: [ME],
      eth_chainId: `0x${this.network.chainId.toString(16)}`,
      eth_getBlockByNumber: { hash: this.network.genesisHash },
      eth_sendTransaction: () => {
        this.mine();
        return HASH;
      },
    };
    this.wallet = new Scripted(answers);
    this.session = new Session(announced(this.wallet), this.network, () => undefined, () => undefined, 50);
    const market = {
      network: this.network,
      head: async () => ({ number: 5, hash: `0x${"5".repeat(64)}`, parent: HASH, time: this.overview.time }),
      jobs: (ids: readonly Hex[]) => ids,
      read: async (_: unknown, ids: readonly Hex[]) => [ids.map((id) => this.words.get(id) ?? 0n)],
    };
    this.market = market as unknown as Market;
    vi.mocked(ground.readGround).mockImplementation(async (_, at) => {
      const immutables = { deadAfter: FLEETS.deadAfter, minimumStake: BigInt(FLEETS.minimumStake) };
      const nodes = this.nodes.map(nodeOf);
      return { at, overview: this.overview, nodes, fleet: fleetOf(nodes, NOW, immutables), fees: { base: 1n, tip: 1n } } as PostingGround;
    });
    vi.mocked(chain.readPurse).mockImplementation(async () => this.purse);
    vi.mocked(ground.requireGates).mockResolvedValue(undefined);
    vi.mocked(chain.readFees).mockResolvedValue({ base: 1n, tip: 1n });
    vi.mocked(chain.dryRun).mockReset().mockResolvedValue(undefined);
    vi.mocked(chain.mined).mockResolvedValue({ ok: true, block: 6 });
  }

  // The chain takes what is journalled.
  mine(): void {
    for (const job of this.shelf.held.keys()) this.words.set(job, 1n);
  }

  get jobs(): string[] {
    return [...this.shelf.held.keys()];
  }

  get sent(): number {
    return this.wallet.asked.filter((one) => one === "eth_sendTransaction").length;
  }

  posting(): Posting {
    const draw = (): bigint => (this.salt += 1n);
    const tell = (step: string, note: string): void => void (note === "" ? this.notes.push(step) : this.notes.push(note));
    const pause = async (): Promise<void> => {
      this.waits();
      await new Promise<void>((go) => setTimeout(go, 1));
    };
    return new Posting(this.market, new Journal(this.shelf, this.network), this.session, tell, pause, this.abort.signal, draw);
  }

  // A token of six decimals, and a market whose least price counts eighteen.
  get text(): string {
    return this.network.asset.address === null ? SPEC : SPEC.replace("1000/h", "900000000000000/h");
  }

  // What a post is refused with.
  async refused(): Promise<HearthError> {
    const draft = await draftOf(this.text);
    const shown = this.session.shown() as Shown;
    const terms = draftTerms(draft.loaded, draft.document, draft.digest, shown.account, this.network, { policyWord: this.overview.policy, now: this.overview.time });
    return this.posting()
      .post(draft, { shown, escrow: escrowAtPost(terms), credit: 0n, anyway: true, again: false })
      .then(
        () => new HearthError("POSTED", ""),
        (error: unknown) => error as HearthError,
      );
  }

  async post(text = this.text, choice: Partial<Choice> = {}): Promise<string> {
    const draft = await draftOf(text);
    await this.session.connect();
    const shown = this.session.shown();
    if (shown === undefined) throw new Error("nothing shown");
    const { loaded, document, digest } = draft;
    const terms = draftTerms(loaded, document, digest, ME, this.network, { policyWord: this.overview.policy, now: NOW });
    const chosen: Choice = { shown, escrow: escrowAtPost(terms), credit: 0n, anyway: true, again: false, ...choice };
    return this.posting().post(draft, chosen).then(({ job, earlier }) => `${earlier ? "earlier " : ""}${job}`, codeOf);
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof HearthError)) throw error;
  return error.code;
}

async function draftOf(text: string): Promise<Draft> {
  const loaded = await loadSpec(text);
  const document = resolve(loaded.spec, new Map());
  return { loaded, document, digest: await specDigest(document) };
}

let held: Set<string>;

beforeEach(() => {
  held = new Set();
  const request = async (name: string, _: unknown, act: (lock: unknown) => Promise<unknown>): Promise<unknown> => {
    if (held.has(name)) return act(null);
    held.add(name);
    return act({}).finally(() => held.delete(name));
  };
  vi.stubGlobal("navigator", { locks: { request } });
});

describe("posting", () => {
  it("journals the terms before the wallet opens", async () => {
    const scene = new Scene();
    let seen: string[] = [];
    scene.wallet.answers["eth_sendTransaction"] = () => {
      seen = [...scene.jobs];
      // The chain takes it while the page waits.
      scene.waits = () => scene.mine();
      return HASH;
    };
    const job = await scene.post();
    expect(seen).toEqual([job]);
    const kept = scene.shelf.held.get(job);
    // What is signed is what is journalled.
    const { data } = (scene.wallet.params.get("eth_sendTransaction") as [{ data: string }])[0];
    for (const word of kept?.terms ?? []) expect(data).toContain(word.slice(2));
    expect(kept).toMatchObject({ account: ME, name: "sum", hash: HASH, seen: false, block: { number: 5 } });
    expect(scene.notes).toEqual(["looking", "journalling", "trying", "signing", `transaction ${HASH}`]);
  });

  it("signs the same terms again after a refusal, a failure and a hang", async () => {
    const scene = new Scene();
    const { eth_sendTransaction: good } = scene.wallet.answers;
    for (const bad of [failing({ code: 4001 }), failing(new Error("boom"))]) {
      scene.wallet.answers["eth_sendTransaction"] = bad;
      expect(["USER_REFUSED", "WALLET_FAILED"]).toContain(await scene.post());
    }
    scene.wallet.answers["eth_sendTransaction"] = () => {
      scene.abort.abort();
      return new Promise(() => undefined);
    };
    expect(await scene.post()).toBe("STOPPED");
    scene.wallet.answers["eth_sendTransaction"] = good;
    scene.abort = new AbortController();
    // A salt would be another one each time: the journal's is taken.
    const job = await scene.post();
    expect(scene.jobs).toEqual([job]);
    expect(scene.notes.filter((note) => note.includes("signed again as they were"))).toHaveLength(3);
  });

  it("finds a job that was posted, and asks no wallet", async () => {
    const scene = new Scene();
    const job = await scene.post();
    const before = scene.sent;
    expect(await scene.post()).toBe(`earlier ${job}`);
    expect(scene.sent).toBe(before);
    expect(await scene.post(SPEC, { again: true })).not.toContain(job);
    await new Journal(scene.shelf, scene.network).see(job as Hex);
    for (const other of scene.jobs) await new Journal(scene.shelf, scene.network).see(other as Hex);
    // Its end was seen: the same file is a new job.
    expect(await scene.post()).not.toContain("earlier");
    expect(scene.jobs).toHaveLength(3);
  });

  it("finds the job by its id where the wallet never answers", async () => {
    const scene = new Scene();
    scene.wallet.answers["eth_sendTransaction"] = () => {
      scene.mine();
      return new Promise(() => undefined);
    };
    expect(await scene.post()).toBe(scene.jobs[0]);
  });

  it.each<[string, Partial<Overview>, string]>([
    ["parameters changed", { policy: POLICY + (1n << 200n) }, "the market's parameters have changed since"],
    ["deadline came too near", { time: NOW + 3_590 }, "their deadline is too near by now"],
  ])("makes new terms where the %s, at its reader's word alone", async (_, changes, why) => {
    const scene = new Scene();
    scene.wallet.answers["eth_sendTransaction"] = failing({ code: 4001 });
    expect(await scene.post()).toBe("USER_REFUSED");
    const [old] = scene.jobs;
    const [entry] = await new Journal(scene.shelf, scene.network).unseen();
    if (entry === undefined) throw new Error("not kept");
    scene.overview = { ...scene.overview, ...changes };
    expect(fateOf(entry.terms, 0n, scene.overview).is).toBe("over");
    const shown = scene.session.shown();
    if (shown === undefined) throw new Error("nothing shown");
    expect(await scene.posting().resume(entry, shown).then(() => "", codeOf)).toBe("OVER");
    scene.wallet.answers["eth_sendTransaction"] = () => {
      for (const job of scene.jobs) if (job !== old) scene.words.set(job, 1n);
      return HASH;
    };
    // The RPC may hide the job, lag, or lie about the time: a second job would be paid beside the first.
    const before = scene.sent;
    const refused = await scene.refused();
    expect([refused.code, refused.message.includes(why), refused.message.includes(String(old)), scene.sent]).toEqual(["OVER", true, true, before]);
    const job = await scene.post(SPEC, { again: true });
    expect([job === old, scene.jobs.includes(job as Hex)]).toEqual([false, true]);
  });

  it.each<[string, (scene: Scene) => void, string, Partial<Choice>, string?]>([
    ["a pause", (scene) => (scene.overview = { ...scene.overview, postsPausedUntil: NOW + 1 }), "PAUSED", {}],
    ["no worker", (scene) => (scene.nodes = []), "NO_WORKER", { anyway: false }],
    ["a lack of coin", (scene) => (scene.purse = { ...scene.purse, coin: 5n }), "FUNDS_SHORT", {}],
    ["a journal that is full", (scene) => (scene.shelf.broken = true), "JOURNAL_DOWN", {}],
    ["another escrow than was shown", () => undefined, "CHANGED", { escrow: 5n }],
    ["a parent that is no job", () => undefined, "NO_PARENT", {}, `after: ["${PARENT}"]\n`],
    [
      "a parent that ended otherwise",
      (scene) => scene.words.set(PARENT, packUnit({ ...NEW_UNIT, state: STATE.REFUNDED })),
      "PARENT_ENDED",
      {},
      `after: ["${PARENT}"]\n`,
    ],
    [
      "a chain that refuses it",
      () => vi.mocked(chain.dryRun).mockRejectedValue(new HearthError("REFUSED", "jobs: paused")),
      "REFUSED",
      {},
    ],
    [
      "an RPC whose gates differ",
      () => vi.mocked(ground.requireGates).mockRejectedValue(new HearthError("RPC_LIES", "another gate")),
      "RPC_LIES",
      {},
    ],
    ["another tab", () => held.add("all"), "BUSY", {}],
  ])("stops at %s before the wallet is asked, and keeps nothing", async (name, arrange, code, choice, more = "") => {
    const scene = new Scene();
    arrange(scene);
    if (name === "another tab") {
      vi.stubGlobal("navigator", { locks: { request: async (_: string, __: unknown, act: (lock: null) => unknown) => act(null) } });
    }
    expect(await scene.post(SPEC + more, choice)).toBe(code);
    expect(scene.sent).toBe(0);
    expect(scene.jobs).toEqual([]);
  });

  it("takes no market whose chain changed its id", async () => {
    expect(await new Scene("coin", { jobChainId: 1n }).post()).toBe("CHAIN_CHANGED");
  });

  it("says that a transaction failed, and where the escrow is", async () => {
    const scene = new Scene();
    scene.wallet.answers["eth_sendTransaction"] = HASH;
    vi.mocked(chain.mined).mockResolvedValue({ ok: false, block: 7 });
    expect(await scene.post()).toBe("TX_FAILED");
  });

  it("asks on where an RPC fails while it waits", async () => {
    const scene = new Scene();
    const { read } = scene.market;
    let fails = 3;
    scene.wallet.answers["eth_sendTransaction"] = () => {
      scene.mine();
      scene.market.read = (async (...args: unknown[]) => {
        fails -= 1;
        if (fails >= 0) throw new HearthError("RPC_UNAVAILABLE", "no");
        return (read as (...all: unknown[]) => unknown)(...args);
      }) as Market["read"];
      return HASH;
    };
    expect(await scene.post()).toBe(scene.jobs[0]);
  });

  it("asks no wallet once its reader waits no longer, and leaves no record", async () => {
    const scene = new Scene();
    scene.abort.abort();
    expect(await scene.post()).toBe("STOPPED");
    expect([scene.sent, scene.jobs]).toEqual([0, []]);
  });

  it("asks no wallet that was connected for another market", async () => {
    const scene = new Scene();
    const { network } = scene;
    scene.market = { ...scene.market, network: { ...network, contracts: { ...network.contracts, JobRegistry: ME } } } as Market;
    expect(await scene.post()).toBe("CHANGED");
    expect(scene.sent).toBe(0);
  });

  it("gives journalled terms to no other account", async () => {
    const scene = new Scene();
    scene.wallet.answers["eth_sendTransaction"] = failing({ code: 4001 });
    await scene.post();
    const [entry] = await new Journal(scene.shelf, scene.network).unseen();
    if (entry === undefined) throw new Error("not kept");
    const shown = { account: `0x${"bb".repeat(20)}` as Hex, chainId: scene.network.chainId, epoch: 0 };
    expect(await scene.posting().resume(entry, shown).then(() => "", codeOf)).toBe("CHANGED");
  });
});

describe("posting in a market of a token", () => {
  const approvals = (scene: Scene): (() => string[]) => {
    const to: string[] = [];
    scene.wallet.answers["eth_sendTransaction"] = (params: readonly unknown[]) => {
      const asked = params[0] as { to: string; data: string; value: string };
      to.push(asked.to);
      expect(asked.value).toBe("0x0");
      if (asked.to === scene.network.asset.address) scene.purse = { ...scene.purse, allowance: BigInt(`0x${asked.data.slice(-64)}`) };
      else scene.mine();
      return HASH;
    };
    return () => to;
  };

  it("approves exactly the escrow, then posts", async () => {
    const scene = new Scene("token");
    const to = approvals(scene);
    const job = await scene.post();
    expect(to()).toEqual([scene.network.asset.address, scene.network.contracts.JobRegistry]);
    const [entry] = await new Journal(scene.shelf, scene.network).unseen();
    expect(entry?.kept.job).toBe(job);
    expect(scene.purse.allowance).toBe(escrowAtPost(entry?.terms as never));
  });

  it("approves nothing where it may take enough already", async () => {
    const scene = new Scene("token");
    const to = approvals(scene);
    scene.purse = { ...scene.purse, allowance: 10n ** 40n };
    await scene.post();
    expect(to()).toEqual([scene.network.contracts.JobRegistry]);
  });

  it("keeps nothing where the approval is refused: no post was asked for", async () => {
    const scene = new Scene("token");
    scene.wallet.answers["eth_sendTransaction"] = failing({ code: 4001 });
    expect(await scene.post()).toBe("USER_REFUSED");
    expect(scene.jobs).toEqual([]);
  });
});

describe.each(["coin", "token"] as const)("posting by credit in a market of a %s", (kind) => {
  interface Asked {
    readonly to: Hex;
    readonly data: Hex;
    readonly value: Hex;
  }

  // A scene whose wallet does what it is asked, and what it was asked.
  async function scened(): Promise<{ scene: Scene; asked: Asked[]; escrow: bigint; gas: bigint }> {
    const scene = new Scene(kind);
    const asked: Asked[] = [];
    const { Escrow, JobRegistry } = scene.network.contracts;
    scene.wallet.answers["eth_sendTransaction"] = (params: readonly unknown[]) => {
      const one = params[0] as Asked;
      asked.push(one);
      if (one.to === JobRegistry) scene.mine();
      const last = BigInt(`0x${one.data.slice(-64)}`);
      const { coin, asset, credit } = scene.purse;
      if (one.to === Escrow) scene.purse = { ...scene.purse, coin: kind === "coin" ? coin + last : coin, asset: asset + last, credit: credit - last };
      if (one.to === scene.network.asset.address) scene.purse = { ...scene.purse, allowance: last };
      return HASH;
    };
    const { loaded, document, digest } = await draftOf(scene.text);
    const terms = draftTerms(loaded, document, digest, ME, scene.network, { policyWord: POLICY, now: NOW });
    return { scene, asked, escrow: escrowAtPost(terms), gas: 3n * (postGas(scene.network) + WITHDRAW_GAS) };
  }

  it.each([1n, 2n])("withdraws what was shown, and then posts for the whole escrow, from no more than it must have: 1/%s", async (part) => {
    const { scene, asked, escrow, gas } = await scened();
    const credit = escrow / part;
    const rest = escrow - credit;
    scene.purse = { coin: gas + (kind === "coin" ? rest : 0n), asset: rest, credit: credit + (part === 1n ? 9n : 0n), allowance: 0n };
    const job = await scene.post(scene.text, { credit });
    const { Escrow, JobRegistry } = scene.network.contracts;
    expect(asked.map(({ to }) => to)).toEqual([Escrow, ...(kind === "token" ? [scene.network.asset.address] : []), JobRegistry]);
    expect(asked[0]).toMatchObject({ data: withdrawCall(scene.network, ME, credit).data, value: "0x0" });
    expect(BigInt(asked.at(-1)?.value ?? 0)).toBe(kind === "coin" ? escrow : 0n);
    if (kind === "token") expect(scene.purse.allowance).toBe(escrow);
    expect([scene.jobs, scene.purse.credit]).toEqual([[job], part === 1n ? 9n : 0n]);
    expect(scene.notes.slice(0, 4)).toEqual(["looking", "journalling", "withdrawing", "waiting"]);
    // Each is tried before the wallet is asked for it.
    expect(vi.mocked(chain.dryRun).mock.calls.map(([, call]) => call.to)).toEqual(asked.map(({ to }) => to));
  });

  it.each<[string, (scene: Scene, escrow: bigint) => void, bigint, string]>([
    ["less credit than was shown", (scene) => (scene.purse = { ...scene.purse, credit: 6n }), 7n, "CHANGED"],
    ["more credit than was shown", (scene) => (scene.purse = { ...scene.purse, credit: 8n }), 7n, "CHANGED"],
    ["no credit", () => undefined, 7n, "CHANGED"],
    ["a lack beside it", (scene) => (scene.purse = { coin: 5n, asset: 5n, credit: 7n, allowance: 0n }), 7n, "FUNDS_SHORT"],
    [
      "a withdrawal that the chain refuses",
      (scene) => {
        scene.purse = { ...scene.purse, credit: 7n };
        vi.mocked(chain.dryRun).mockRejectedValue(new HearthError("REFUSED", "escrow: short"));
      },
      7n,
      "REFUSED",
    ],
  ])("stops at %s before the wallet is asked, and keeps nothing", async (_, arrange, credit, code) => {
    const { scene, asked, escrow } = await scened();
    arrange(scene, escrow);
    expect([await scene.post(scene.text, { credit }), asked, scene.jobs]).toEqual([code, [], []]);
  });

  it("posts nothing where its reader waits no longer once it is withdrawn", async () => {
    const scene = new Scene(kind);
    const asked: string[] = [];
    scene.wallet.answers["eth_sendTransaction"] = (params: readonly unknown[]) => {
      asked.push((params[0] as { to: string }).to);
      return HASH;
    };
    scene.purse = { ...scene.purse, credit: 7n };
    vi.mocked(chain.mined).mockImplementation(async () => {
      scene.abort.abort();
      return { ok: true, block: 6 };
    });
    expect(await scene.post(scene.text, { credit: 7n })).toBe("STOPPED");
    expect([asked, scene.jobs]).toEqual([[scene.network.contracts.Escrow], []]);
  });

  it("posts nothing where the withdrawal fails", async () => {
    const { scene, asked } = await scened();
    scene.purse = { ...scene.purse, credit: 7n };
    vi.mocked(chain.mined).mockResolvedValue({ ok: false, block: 6 });
    expect(await scene.post(scene.text, { credit: 7n })).toBe("TX_FAILED");
    expect([asked.map(({ to }) => to), scene.jobs]).toEqual([[scene.network.contracts.Escrow], []]);
  });

  it("leaves credit alone that was not chosen, and names it where its owner is short", async () => {
    const { scene, asked } = await scened();
    scene.purse = { ...scene.purse, credit: 7n };
    await scene.post(scene.text);
    expect([asked.some(({ to }) => to === scene.network.contracts.Escrow), scene.purse.credit]).toEqual([false, 7n]);
    const short = (await scened()).scene;
    short.purse = { coin: 0n, asset: 0n, credit: 7n, allowance: 0n };
    await short.session.connect();
    const refused = await short.refused();
    expect([refused.code, refused.message.endsWith("more is its credit in Escrow")]).toEqual(["FUNDS_SHORT", true]);
  });

  it("is counted for an account that signs elsewhere, no further than the job takes", async () => {
    const { scene, escrow } = await scened();
    const draft = await draftOf(scene.text);
    for (const [credit, fromCredit, pays] of [[7n, true, 7n], [escrow + 1n, true, escrow], [7n, false, 0n]] as const) {
      scene.purse = { coin: 0n, asset: 0n, credit, allowance: 0n };
      const ready = await scene.posting().prepare(draft, ME, { escrow, anyway: true, again: false }, fromCredit);
      expect([ready.credit, ready.posted, scene.sent]).toEqual([pays, false, 0]);
    }
  });
});
