import type { Abi } from "viem";
import { encodeFunctionData } from "viem/utils";
import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { type Network, networkOf } from "../src/core/network";
import { documentText, documentsOf, MOST_CALLS, MOST_TEXT, type Prepared, preparedOf, termsIn } from "../src/core/prepared";
import { jobId } from "../src/core/terms";
import { summaryOf } from "../src/core/call-summary";
import { JOB_REGISTRY_CALLS } from "../src/generated/calls/job-registry";
import { NODE_REGISTRY_CALLS } from "../src/generated/calls/node-registry";
import { STEWARD_CALLS } from "../src/generated/calls/steward";
import { STEWARD_READS } from "../src/generated/reads/steward";
import { TOKEN_CALLS } from "../src/generated/calls/token";
import { vectors } from "./vectors";

type Json = Readonly<Record<string, unknown>>;
type Kind = "coin" | "token";

interface Owned {
  readonly network: Kind;
  readonly document: Json;
  readonly function?: string;
  readonly args?: Readonly<Record<string, string>>;
  readonly pays?: string;
  readonly code?: string;
}

interface Other {
  readonly network: Kind;
  readonly contract: string;
  readonly function: string;
  readonly document: Json;
  readonly pays?: string;
  readonly index?: string;
  readonly change?: Hex;
}

const DATA = vectors<{ readonly networks: Readonly<Record<Kind, unknown>>; readonly owners: readonly Owned[]; readonly others: readonly Other[] }>("prepared");
const NETWORKS: Readonly<Record<Kind, Network>> = { coin: networkOf(DATA.networks.coin), token: networkOf(DATA.networks.token) };
const ANYBODY: Hex = `0x${"0d".repeat(20)}`;

const other = (name: string, network: Kind = "coin"): Other => DATA.others.find((one) => one.function === name && one.network === network) as Other;

const plain = (args: Prepared["args"]): Json =>
  Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value).toLowerCase()]));

async function codeOf(value: unknown, network = NETWORKS.coin): Promise<string> {
  return said(value, network).then(
    () => "",
    (error: unknown) => {
      if (!(error instanceof HearthError)) throw error;
      return error.code;
    },
  );
}

async function said(value: unknown, network: Network): Promise<string[]> {
  const calls = await preparedOf(typeof value === "string" ? value : JSON.stringify(value), network);
  return calls.map((call) => summaryOf(call, network, null).what);
}

describe("a prepared call", () => {
  it("of an owner is read as the library reads it, and refused as the library refuses it", async () => {
    for (const one of DATA.owners) {
      const network = NETWORKS[one.network];
      if (one.code !== undefined) {
        expect(await codeOf(one.document, network)).toBe(one.code);
        continue;
      }
      const [call] = await preparedOf(JSON.stringify(one.document), network);
      expect([call?.function, plain(call?.args ?? {})]).toEqual([one.function, one.args]);
      expect(String((call?.value ?? 0n) + (call?.approve ?? 0n))).toBe(one.pays);
      expect((await said(one.document, network))[0]).not.toBe("");
    }
  });

  it("of a submitter or of governance is the function that its data calls", async () => {
    for (const one of DATA.others) {
      const network = NETWORKS[one.network];
      const [call] = (await preparedOf(JSON.stringify(one.document), network)) as [Prepared];
      expect([call.contract, call.function]).toEqual([one.contract, one.function]);
      const told = summaryOf(call, network, null);
      if (one.pays !== undefined) expect(call.value + call.approve).toBe(BigInt(one.pays));
      if (one.index !== undefined) expect(call.args["index"]).toBe(BigInt(one.index));
      if (one.contract === "JobRegistry") {
        const { chainId, contracts } = network;
        expect(told.rows).toContainEqual(["job", jobId(chainId, contracts.JobRegistry, termsIn(call.args))]);
      }
      if (["queue", "execute", "drop"].includes(one.function)) expect(told.rows[0]).toEqual(["change", one.change]);
    }
  });

  it("names what is paused and what is governed", async () => {
    expect(await said(other("pause").document, NETWORKS.coin)).toEqual(["Stop new posts for 7 days"]);
    expect(await said(other("accept_governor").document, NETWORKS.coin)).toEqual([
      "Let the Steward take the governor's rights over registrations",
    ]);
  });

  it.each<[string, (good: Json) => unknown, string]>([
    ["of another chain", (good) => ({ ...good, chain_id: 1 }), "WRONG_MARKET"],
    ["of a contract of another market", (good) => ({ ...good, to: ANYBODY }), "WRONG_MARKET"],
    ["of a contract that nobody prepares calls of", (good) => ({ ...good, to: NETWORKS.coin.contracts.Lens }), "WRONG_MARKET"],
    ["of an unknown selector", (good) => ({ ...good, data: `0xdeadbeef${String(good["data"]).slice(10)}` }), "BAD_TX"],
    ["of a view", (good) => ({ ...good, data: `${encodeFunctionData({ abi: STEWARD_READS, functionName: "council" })}` }), "BAD_TX"],
    ["with something behind its arguments", (good) => ({ ...good, data: `${String(good["data"])}00` }), "BAD_TX"],
    ["that pays the Steward", (good) => ({ ...good, value: "1" }), "BAD_TX"],
    ["that approves for nothing", (good) => ({ ...good, approve: "1" }), "BAD_TX"],
    ["of another schema", (good) => ({ ...good, schema: "hearth.tx/2" }), "BAD_TX"],
    ["with a field beside it", (good) => ({ ...good, gas: "1" }), "BAD_TX"],
    ["without a field", ({ key: _, ...good }) => good, "BAD_TX"],
    ["with its chain in words", (good) => ({ ...good, chain_id: "31337" }), "BAD_TX"],
    ["with an amount that is no number", (good) => ({ ...good, value: "1e3" }), "BAD_TX"],
    ["with an amount beyond 256 bits", (good) => ({ ...good, value: "9".repeat(78) }), "BAD_TX"],
    ["that is a list of nothing", (good) => ({ ...good, prepared: [] }), "BAD_TX"],
    ["that is a list of too many", (good) => Array.from({ length: MOST_CALLS + 1 }, () => good), "BAD_TX"],
    ["that is for two accounts", (good) => [good, { ...good, from: ANYBODY }], "BAD_TX"],
    ["that is no JSON", () => "{", "BAD_TX"],
    ["that is too long", () => " ".repeat(MOST_TEXT + 1), "BAD_TX"],
    ["that is null", () => "null", "BAD_TX"],
  ])("%s is refused", async (_, alter, code) => {
    expect(await codeOf(alter(other("pause").document))).toBe(code);
  });

  it("that nothing prepares is read by nobody, whatever else would refuse it later", async () => {
    const views = STEWARD_READS.filter((entry) => entry.inputs.length === 0);
    expect(views.length).toBeGreaterThan(0);
    for (const { name } of views) {
      const data = encodeFunctionData({ abi: STEWARD_READS as Abi, functionName: name });
      const document = { ...other("pause").document, data };
      await expect(preparedOf(JSON.stringify(document), NETWORKS.coin)).rejects.toThrow("calls nothing of Steward");
    }
    // What the page itself signs for keepers is in no file either.
    const data = encodeFunctionData({ abi: NODE_REGISTRY_CALLS, functionName: "check_liveness", args: [[1n], ANYBODY] });
    const document = { ...other("pause").document, to: NETWORKS.coin.contracts.NodeRegistry, data };
    await expect(preparedOf(JSON.stringify(document), NETWORKS.coin)).rejects.toThrow("calls nothing of NodeRegistry");
  });

  it("has the words of no other call", async () => {
    for (const { document } of DATA.others.filter(({ network }) => network === "coin")) {
      const [call] = (await preparedOf(JSON.stringify(document), NETWORKS.coin)) as [Prepared];
      expect(() => summaryOf({ ...call, function: "top_up" }, NETWORKS.coin, null)).toThrow("calls nothing of");
    }
  });

  it("of a change that no Steward queues is refused", async () => {
    const data = encodeFunctionData({ abi: STEWARD_CALLS, functionName: "queue", args: [7n, 1n, 0n] });
    expect(await codeOf({ ...other("queue").document, data })).toBe("BAD_TX");
  });

  it("of somebody else's job is refused", async () => {
    for (const name of ["post", "cancel", "accept"]) expect(await codeOf({ ...other(name).document, from: ANYBODY })).toBe("BAD_TX");
  });

  it("that withdraws to somebody else is refused", async () => {
    const one = DATA.owners.find(({ function: name }) => name === "withdraw") as Owned;
    expect(await codeOf({ ...one.document, from: ANYBODY })).toBe("BAD_TX");
  });

  it("that posts a job which waits for others than it names is refused", async () => {
    const one = other("post");
    const [call] = (await preparedOf(JSON.stringify(one.document), NETWORKS.coin)) as [Prepared];
    const args = [call.args["terms"], [`0x${"0".repeat(63)}1`, `0x${"e".repeat(64)}`]];
    const data = encodeFunctionData({ abi: JOB_REGISTRY_CALLS, functionName: "post", args: args as never });
    expect(await codeOf({ ...one.document, data })).toBe("BAD_TX");
  });
});

describe("an approval in a file", () => {
  const post = other("post", "token");
  const amount = BigInt(post.pays ?? 0);
  const approval = (spender: Hex, of: bigint): Json => ({
    ...post.document,
    to: NETWORKS.token.asset.address,
    data: encodeFunctionData({ abi: TOKEN_CALLS, functionName: "approve", args: [spender, of] }),
    approve: "0",
  });
  const jobs = NETWORKS.token.contracts.JobRegistry;

  it("stands before the call that takes it", async () => {
    const told = await said({ schema: "hearth.prepared/1", prepared: [approval(jobs, amount), post.document] }, NETWORKS.token);
    expect(told).toHaveLength(2);
    expect(told[0]).toMatch(/^Let JobRegistry take exactly /);
  });

  it.each<[string, readonly Json[]]>([
    ["for more than the call takes", [approval(jobs, amount + 1n), post.document]],
    ["for all", [approval(jobs, 2n ** 256n - 1n), post.document]],
    ["for somebody else", [approval(ANYBODY, amount), post.document]],
    ["for another contract of the market", [approval(NETWORKS.token.contracts.NodeRegistry, amount), post.document]],
    ["alone", [approval(jobs, amount)]],
    ["behind its call", [post.document, approval(jobs, amount)]],
  ])("%s is refused", async (_, prepared) => {
    expect(await codeOf({ prepared }, NETWORKS.token)).toBe("BAD_TX");
  });

  it("is unknown in a market of the chain's coin", async () => {
    expect(await codeOf(approval(jobs, amount))).toBe("WRONG_MARKET");
  });
});

describe("a file that this page saves", () => {
  it("is one that it reads again, with everything in it", () => {
    const { from, to, data } = documentsOf(JSON.stringify(other("cancel").document))[0] as ReturnType<typeof documentsOf>[number];
    const text = documentText({ to, data, value: 5n, label: "jobs.cancel" }, { from, approve: 0n, key: "cancel/1", chainId: 31_337n });
    expect(documentsOf(text)).toEqual([{ action: "jobs.cancel", chainId: 31_337, from, to, data, value: 5n, approve: 0n, key: "cancel/1" }]);
  });
});
