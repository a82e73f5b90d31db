import { describe, expect, it } from "vitest";

import { type Hex, sha256, utf8 } from "../src/core/bytes";
import { Cid } from "../src/core/cid";
import { HearthError } from "../src/core/errors";
import type { JobSpec } from "../src/core/model";
import { escrowAtPost } from "../src/core/money";
import { planPrices, termsOf } from "../src/core/plan";
import {
  canonicalBytes,
  type Data,
  dataOf,
  isDataCid,
  needsOf,
  resolve,
  specDigest,
  tierNumber,
} from "../src/core/resolve";
import { checkSpec, loadSpec, localSources, located } from "../src/core/spec";
import { assetOf } from "../src/core/units";
import { MAX_PARENTS } from "../src/generated/bounds";
import { deadlineIn } from "../src/core/deadline";
import { packNeeds, packTerms, unpackPolicy } from "../src/core/words";
import { vectors } from "./vectors";

interface Refusal {
  code: string;
  field: string;
  amounts?: string[];
}
interface Case {
  text: string;
  variables?: Record<string, string>;
  problems?: string[];
  market?: number;
  notes?: number;
  canonical?: string;
  digest?: Hex;
  needs?: string;
  resolve?: Refusal;
  prices?: string[] | Refusal;
  terms?: [string, string, Hex] | Refusal;
}
interface Vectors {
  markets: { symbol: string; decimals: number; address: Hex | null; policy: string }[];
  now: number;
  submitter: Hex;
  salt: string;
  judge: Hex;
  judgeData: string;
  image: string;
  cases: Case[];
}
const given = vectors<Vectors>("spec");

// What a source became: as `source_of` of tests/web/vectors/spec.py has it.
async function sourceOf(src: string): Promise<Data> {
  const digest = await sha256(utf8(src));
  const [a, b, c, codec] = [...digest] as [number, number, number, number];
  const size = src === "big" ? 2 ** 41 : (a << 16) | (b << 8) | c;
  return dataOf(String(new Cid(1, codec & 1 ? 0x70 : 0x55, 0x12, digest)), size);
}

const sourcesOf = async (spec: JobSpec): Promise<Map<string, Data>> =>
  new Map(await Promise.all(localSources(spec).map(async ([, src]) => [src, await sourceOf(src)] as const)));

function refusal(run: () => unknown): Refusal {
  try {
    run();
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    const field = String(error.details["field"]);
    const amounts = field.startsWith("price") ? error.hint.match(/[0-9]+(?:\.[0-9]+)?/g) : null;
    return { code: error.code, field, ...(amounts === null ? {} : { amounts: [...amounts] }) };
  }
  throw new Error("nothing was refused");
}

const isRefusal = (wanted: unknown): wanted is Refusal =>
  typeof wanted === "object" && wanted !== null && "code" in wanted;

// Where a job file is wrong, and by which codes; undefined where it is not.
async function wrong({ text, variables = {} }: Case): Promise<string[] | undefined> {
  const error: unknown = await loadSpec(text, "job.yaml", new Map(Object.entries(variables))).then(() => undefined, (caught: unknown) => caught);
  if (error === undefined) return undefined;
  if (!(error instanceof HearthError)) throw error;
  const told = (error.details["problems"] as Record<string, unknown>[]).map((one) => `${String(one["field"])} ${String(one["code"])}`);
  expect(told).toContain(`${String(error.details["field"])} ${error.code}`);
  return [...new Set(told)].sort();
}

async function expectPlan(wanted: Case): Promise<void> {
  const { spec, notes } = await loadSpec(wanted.text, "job.yaml", new Map(Object.entries(wanted.variables ?? {})));
  expect(notes).toHaveLength(wanted.notes ?? 0);
  const sources = await sourcesOf(spec);
  const { image } = given;
  if (wanted.resolve !== undefined) {
    expect(refusal(() => resolve(spec, sources, { image }))).toEqual(wanted.resolve);
    return;
  }
  const resolved = resolve(spec, (src) => sources.get(src), { image });
  if (wanted.canonical !== undefined) expect(new TextDecoder().decode(canonicalBytes(resolved))).toBe(wanted.canonical);
  const digest = await specDigest(resolved);
  expect(digest).toBe(wanted.digest);
  const needs = needsOf(resolved.resources, resolved.runtime);
  expect(packNeeds(needs)).toBe(BigInt(wanted.needs as string));

  const market = given.markets[wanted.market as number];
  if (market === undefined) throw new Error("no such market");
  const asset = assetOf(market.symbol, market.decimals, market.address);
  const policyWord = BigInt(market.policy);
  const policy = unpackPolicy(policyWord);
  if (isRefusal(wanted.prices)) {
    expect(refusal(() => planPrices(spec, asset, policy))).toEqual(wanted.prices);
    return;
  }
  const prices = planPrices(spec, asset, policy);
  const { ceiling, keeperFee, unitPrice, total } = prices;
  expect([ceiling, keeperFee, unitPrice, total].map(String)).toEqual(wanted.prices);

  const salt = BigInt(given.salt);
  const judged = spec.verify.attesters === null ? {} : { judge: given.judge, judgeData: BigInt(given.judgeData) };
  const { submitter, now } = given;
  const all = { submitter, salt, digest, needs, prices, policy, policyWord, now, ...judged };
  if (isRefusal(wanted.terms)) {
    expect(refusal(() => termsOf(spec, all))).toEqual(wanted.terms);
    return;
  }
  const terms = termsOf(spec, all);
  const [money, limits, parents] = wanted.terms as [string, string, Hex];
  expect(packTerms(terms)).toEqual([
    BigInt(given.submitter) | (salt << 160n),
    digest,
    BigInt(wanted.needs as string),
    BigInt(money),
    BigInt(limits),
    judged.judgeData ?? 0n,
    BigInt(judged.judge ?? 0n),
    policyWord,
    parents,
  ]);
  // What is planned is what the chain asks for.
  expect(escrowAtPost(terms)).toBe(total);
}

describe("a job file", () => {
  it.each(given.cases)("$text", async (wanted) => {
    const found = await wrong(wanted);
    if (found?.includes("command YAML_SUBSET") === true) return expect(wanted.text).toMatch(/^"?command"?: .*["'\\]/m);
    expect(found).toEqual(wanted.problems);
    if (found === undefined) await expectPlan(wanted);
  });
});

describe("its vectors", () => {
  it("are of each kind", () => {
    const planned = given.cases.filter((one) => Array.isArray(one.terms)).length;
    expect(given.cases.length).toBeGreaterThan(300);
    expect(planned).toBeGreaterThan(80);
    expect(given.cases.filter((one) => one.canonical !== undefined).length).toBeGreaterThan(8);
  });
});

const CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi";

async function codeOfText(text: string): Promise<string> {
  const error: unknown = await loadSpec(text).catch((caught: unknown) => caught);
  return error instanceof HearthError ? error.code : "";
}

describe("what vectors are too small for", () => {
  it.each([
    ["text", (size: number) => `image: a\nenv: {A: ${"\u{1f525}".repeat(size)}}\n`, 32_768],
    ["entries of a list", (size: number) => `image: a\ncommand: [${"a,".repeat(size)}]\n`, 1_024],
    ["entries of a mapping", (size: number) => `image: a\nenv: {${list(size, (at) => `A${at}: b`)}}\n`, 1_024],
    ["parents", (size: number) => `image: a\nafter: [${list(size, (at) => `"0x${hex64(at)}"`)}]\n`, MAX_PARENTS],
  ])("%s are counted", async (_, text, most) => {
    expect(await codeOfText(text(most))).toBe("");
    expect(await codeOfText(text(most + 1))).toBe("BAD_SPEC");
  });

  it("a document has 1 MiB", async () => {
    const long = "a".repeat(30_000);
    const text = (more: number) =>
      `image: "a@sha256:${"ab".repeat(32)}"\ncommand: [${`${long},`.repeat(34)} ${"b".repeat(more)}]\n`;
    const { spec } = await loadSpec(text(1));
    const size = canonicalBytes(resolve(spec, new Map())).length;
    const fits = (1 << 20) - size + 1;
    expect(canonicalBytes(resolve((await loadSpec(text(fits))).spec, new Map())).length).toBe(1 << 20);
    const { spec: larger } = await loadSpec(text(fits + 1));
    expect(refusal(() => resolve(larger, new Map()))).toMatchObject({ code: "BAD_SPEC", field: "" });
  });

  it("a NUL is no text", async () => {
    expect(await codeOfText('image: a\nenv: {A: "\\0"}\n')).toBe("BAD_SPEC");
  });
});

const list = (size: number, item: (at: number) => string): string =>
  Array.from({ length: size }, (_, at) => item(at)).join(", ");
const hex64 = (value: number): string => value.toString(16).padStart(64, "0");

describe("a spec from plain values", () => {
  it("is checked as a file is, without lines", () => {
    const { spec } = checkSpec(new Map([["image", "a"]]));
    expect(spec.resources).toEqual({
      gpu: { count: 0, tier: null, vram: null, vendor: null, exact: false },
      cpus: 1,
      memory: "1GiB",
      disk: null,
      regions: [],
    });
    expect(refusal(() => checkSpec(new Map([["imag", "a"]])))).toMatchObject({ code: "UNKNOWN_KEY", field: "imag" });
  });

  it("has defaults of its own, which nobody else's changes reach", () => {
    const [one, other] = [checkSpec(new Map([["image", "a"]])).spec, checkSpec(new Map([["image", "a"]])).spec];
    expect(one.outputs).not.toBe(other.outputs);
    expect(one.env).not.toBe(other.env);
  });

  it("is told of later errors by field and line", async () => {
    const loaded = await loadSpec("image: a\nresources:\n  gpu: {tier: rtx-409}\n");
    const error = refusalOf(() => resolve(loaded.spec, new Map(), { image: given.image }));
    const told = located(loaded, error);
    expect([told.code, told.details["line"], told.details["field"]]).toEqual(["UNKNOWN_TIER", 3, "resources.gpu.tier"]);
    expect(told.message).toContain("job.yaml:3: resources.gpu.tier: ");
  });
});

function refusalOf(run: () => unknown): HearthError {
  try {
    run();
  } catch (error) {
    if (error instanceof HearthError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("data", () => {
  it("has one spelling of one kind of CID", () => {
    expect(isDataCid(CID)).toBe(true);
    const older = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG";
    for (const text of ["", CID.toUpperCase(), older, "bafyreib", `${CID} `]) {
      expect(isDataCid(text)).toBe(false);
    }
    expect(refusal(() => dataOf("Qm", 1)).code).toBe("BAD_CID");
    for (const size of [-1, 1.5, 2 ** 53, Number.NaN]) expect(refusal(() => dataOf(CID, size)).code).toBe("BAD_SPEC");
  });

  it("that was not uploaded is missed, and what is no data is refused", async () => {
    const { spec } = await loadSpec("module: a.wasm\ninputs: [{src: b, dst: /in/b}]\n");
    const data = dataOf(CID, 1);
    const missing = refusal(() => resolve(spec, (src) => (src === "a.wasm" ? data : undefined)));
    expect(missing).toMatchObject({ code: "BAD_SPEC", field: "inputs[0].src" });
    expect(refusal(() => resolve(spec, () => ({ cid: "x", size: 1 }))).code).toBe("BAD_CID");
  });
});

describe("moments", () => {
  it("are of the extended form of ISO 8601, which is all that the page reads of what Python reads", () => {
    const others = ["20270101T000000Z", "2027-W01-1T00:00Z", "2027-01-01T00Z", "2027-01-01T00:00:00+01:00:30", "x"];
    for (const text of others) {
      expect(deadlineIn(text)).toBeUndefined();
    }
    expect(deadlineIn("1970-01-01T00:00Z")).toEqual({ at: 0 });
    expect(deadlineIn("2000-03-01T00:00:00+01:00")).toEqual({ at: 951_865_200 });
  });
});

describe("tiers", () => {
  it("have numbers by any spelling, and none is 0", () => {
    expect([tierNumber(""), tierNumber("RTX 4090"), tierNumber("h100")]).toEqual([0, 472, 637]);
  });
});
