import { describe, expect, it } from "vitest";

import { type Hex, sha256, toHex, utf8 } from "../src/core/bytes";
import { encode } from "../src/core/canonical";
import { HearthError } from "../src/core/errors";
import { escrowAtPost, leaseBudget } from "../src/core/money";
import { planPrices, termsOf } from "../src/core/plan";
import { givesWay, jobTextOf, type Rerun } from "../src/core/rerun";
import { canonicalBytes, type Data, dataOf, needsOf, resolve, specDigest, type ResolvedSpec } from "../src/core/resolve";
import { Cid } from "../src/core/cid";
import { loadSpec } from "../src/core/spec";
import { leasesOf, type Terms } from "../src/core/types";
import { assetOf } from "../src/core/units";
import { unpackPolicy } from "../src/core/words";
import { TERMS_FLAG } from "../src/generated/states";
import { ZERO_HASH } from "../src/generated/bounds";
import { vectors } from "./vectors";

interface Case {
  readonly text: string;
  readonly variables?: Record<string, string>;
  readonly market?: number;
  readonly terms?: unknown;
}
interface Given {
  readonly markets: readonly { symbol: string; decimals: number; address: Hex | null; policy: string }[];
  readonly now: number;
  readonly submitter: Hex;
  readonly image: string;
  readonly cases: readonly Case[];
}
const given = vectors<Given>("spec");
const ATTESTERS: Hex = `0x${"77".repeat(20)}`;
const POSTED = given.cases.filter(({ terms, text }) => Array.isArray(terms) && !/^command: ["']/m.test(text));

// What a source became: some data of its own.
async function sourceOf(src: string): Promise<Data> {
  const digest = await sha256(utf8(src));
  return dataOf(String(new Cid(1, (digest[3] as number) & 1 ? 0x70 : 0x55, 0x12, digest)), digest[0] as number);
}

interface Posted extends Rerun {
  readonly document: ResolvedSpec;
}

// A job as a market has it, posted from a file of the library's vectors.
async function posted({ text, variables, market }: Case): Promise<Posted> {
  const { symbol, decimals, address, policy: word } = given.markets[market as number] as Given["markets"][number];
  const asset = assetOf(symbol, decimals, address);
  const { spec } = await loadSpec(text, "job.yaml", new Map(Object.entries(variables ?? {})));
  const sources = new Map<string, Data>();
  for (const src of [spec.module, spec.workdir, ...spec.inputs.map((one) => one.src)]) if (src !== null) sources.set(src, await sourceOf(src));
  const document = resolve(spec, sources, { image: given.image });
  const policy = unpackPolicy(BigInt(word));
  const needs = needsOf(document.resources, document.runtime);
  const judge = spec.verify.attesters === null ? {} : { judge: ATTESTERS, judgeData: 7n };
  const digest = await specDigest(document);
  const prices = planPrices(spec, asset, policy);
  const terms = termsOf(spec, { submitter: given.submitter, salt: 0n, digest, needs, prices, policy, policyWord: BigInt(word), now: given.now, ...judge });
  return { document, terms, posted: given.now, asset, attesters: ATTESTERS };
}

// The terms that a file makes in the same market at the same second.
async function again(text: string, { asset, terms: { policy: word, judge, judgeData } }: Posted, sources: ReadonlyMap<string, Data>): Promise<Terms> {
  const { spec } = await loadSpec(text);
  const document = resolve(spec, sources);
  const policy = unpackPolicy(word);
  const judged = spec.verify.attesters === null ? {} : { judge, judgeData };
  return termsOf(spec, {
    submitter: given.submitter,
    salt: 0n,
    digest: await specDigest(document),
    needs: needsOf(document.resources, document.runtime),
    prices: planPrices(spec, asset, policy),
    policy,
    policyWord: word,
    now: given.now,
    ...judged,
  });
}

const dataIn = ({ document }: Posted): Map<string, Data> =>
  new Map([document.module, document.workdir, ...document.inputs].flatMap((one) => (one === null ? [] : [[`ipfs://${one.cid}`, { cid: one.cid, size: one.size }] as const])));

describe("a posted job as a job file", () => {
  it.each(POSTED)("makes the same job for no more money: $text", async (one) => {
    const job = await posted(one);
    const { text, notes } = await jobTextOf(canonicalBytes(job.document), job);
    const made = await again(text, job, dataIn(job));
    const { ceiling, parentsHash, ...rest } = job.terms;
    expect(made).toMatchObject({ ...rest, parentsHash: ZERO_HASH });
    expect(made.ceiling >= ceiling).toBe(true);
    expect(escrowAtPost(made) <= BigInt(leasesOf(job.terms)) * leaseBudget(job.terms)).toBe(true);
    expect(notes.length).toBe(Number(parentsHash !== ZERO_HASH) + Number((job.terms.flags & TERMS_FLAG.PROVEN) !== 0));
  });

  it("names attesters again, without whose file nothing is posted, and refuses any other judge", async () => {
    const one = POSTED.find(({ text }) => text.includes("attesters:")) as Case;
    const job = await posted(one);
    const bytes = canonicalBytes(job.document);
    const { text, notes } = await jobTextOf(bytes, job);
    expect((await loadSpec(text)).spec.verify.attesters).toBe("attesters.yaml");
    expect(notes.join()).toContain("pick their file again");
    await expect(jobTextOf(bytes, { ...job, attesters: `0x${"78".repeat(20)}` })).rejects.toMatchObject({
      code: "BAD_DOCUMENT",
      message: expect.stringContaining(ATTESTERS) as string,
    });
  });

  const simple = `image: "x@sha256:${"1".repeat(64)}"\nprice: {max_total: "1"}\n`;
  const spoilt: readonly (readonly [string, (document: Record<string, unknown>) => unknown])[] = [
    ["no mapping", () => []],
    ["a part that is missing", ({ resources: _, ...rest }) => rest],
    ["a part of another kind", (all) => ({ ...all, inputs: "x" })],
    ["a size that is text", (all) => ({ ...all, module: { cid: "x", size: "1" } })],
    ["a key that no version writes", (all) => ({ ...all, more: 1 })],
    ["a country that is none", (all) => ({ ...all, resources: { ...(all["resources"] as object), regions: ["xx"] } })],
    ["a name that is none", (all) => ({ ...all, name: "\u202e" })],
    ["environment that is refused", (all) => ({ ...all, env: { MY_TOKEN: "x" } })],
    ["a disk that is too small", (all) => ({ ...all, resources: { ...(all["resources"] as object), disk_gib: 0 } })],
  ];
  it.each(spoilt)("is refused for %s, by a document of that very digest", async (_, spoil) => {
    const job = await posted({ text: simple, market: 0 });
    const bytes = encode(spoil(JSON.parse(new TextDecoder().decode(canonicalBytes(job.document))) as Record<string, unknown>));
    const terms = { ...job.terms, spec: toHex(await sha256(bytes)) };
    await expect(jobTextOf(bytes, { ...job, terms })).rejects.toMatchObject({ code: "BAD_DOCUMENT" });
  });

  it("writes what hides or moves text by its number", async () => {
    const job = await posted({ text: simple + 'command: ["a\\u202eb", "$$' + '{"]\n', market: 0 });
    const { text } = await jobTextOf(canonicalBytes(job.document), job);
    expect(text).toContain('command: ["a\\u202eb", "$${"]');
  });

  it("takes the place of no draft unasked", () => {
    expect(["", " \n", "a", "a ", "b"].map((draft) => givesWay(draft, "a"))).toEqual([true, true, true, false, false]);
  });

  it("is a refusal that a person can read", async () => {
    const error = await jobTextOf(utf8("[1]"), await posted({ text: simple, market: 0 })).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(HearthError);
  });
});
