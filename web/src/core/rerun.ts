// A posted job as a job file that makes one like it: its document with its data by their CIDs, and what its terms say beside it. Of
// its money the file names what the job locked at most, of its time what it had.

import { MIB, ZERO_HASH } from "../generated/bounds";
import { BILLING, TERMS_FLAG } from "../generated/states";
import { VENDORS } from "../generated/tiers";
import type { Hex } from "./bytes";
import { decode } from "./canonical";
import { dumpValues } from "./dump";
import { HearthError } from "./errors";
import { readModel } from "./model";
import { leaseBudget } from "./money";
import { billingOf, planPrices } from "./plan";
import { type Data, resolve, type ResolvedSpec, specDigest } from "./resolve";
import { checkSpec, type LoadedSpec } from "./spec";
import { leasesOf, nameOf, type Policy, type Terms } from "./types";
import { type Asset, formatAmount, formatDuration, formatSize, gibCeil } from "./units";
import { unpackPolicy } from "./words";
import type { Value, ValueMap } from "./values";

// What is known of the job, and of its market.
export interface Rerun {
  readonly terms: Terms;
  // The second of the block of its post.
  readonly posted: number;
  readonly asset: Asset;
  // The contract whose jobs name attesters.
  readonly attesters: Hex;
}

export interface JobText {
  readonly text: string;
  // What the file does not say of the job, for people.
  readonly notes: readonly string[];
}

// Whether a file may be put into an editor unasked: nothing of its reader's stands there.
export const givesWay = (draft: string, file: string): boolean => draft.trim() === "" || draft === file;

// The text of a job file that gives this document again, digest and all. Throws BAD_DOCUMENT for a document that no job file gives,
// and for a judge that none names: a job that is posted without its judge is paid unproven.
export async function jobTextOf(document: Uint8Array, about: Rerun): Promise<JobText> {
  const { terms } = about;
  const spec = readDocument(document);
  const notes: string[] = [];
  let values: ValueMap;
  try {
    values = valuesOf(spec, about, notes);
    const loaded = checkSpec(values);
    values = withPrice(values, loaded, about);
    const resolved = resolve(loaded.spec, (src) => dataIn(spec).get(src));
    if ((await specDigest(resolved)) !== terms.spec) throw none("it is not the one of the terms once it is written again");
  } catch (error) {
    if (error instanceof HearthError && error.code === "BAD_DOCUMENT") throw error;
    throw none(error instanceof HearthError ? error.message : "a part of it is missing or of another kind");
  }
  return { text: dumpValues(values), notes };
}

// Nothing of it is believed yet: what it says is written as a file, which gives the document of the terms or is refused.
function readDocument(document: Uint8Array): ResolvedSpec {
  const value = decode(document);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw none("it is no mapping");
  return value as unknown as ResolvedSpec;
}

// What a file that says nothing is taken for.
const USUAL = readModel(new Map()).spec;

const uri = (data: Data): string => `ipfs://${data.cid}`;

// What the document's data are, by how the file names them.
function dataIn(spec: ResolvedSpec): ReadonlyMap<string, Data> {
  const all = [...spec.inputs, ...(spec.module === null ? [] : [spec.module]), ...(spec.workdir === null ? [] : [spec.workdir])];
  return new Map(all.map(({ cid, size }) => [`ipfs://${cid}`, { cid, size }]));
}

function valuesOf(spec: ResolvedSpec, about: Rerun, notes: string[]): ValueMap {
  const values = new Map<string, Value>([["version", 1n], ["name", spec.name]]);
  const put = (key: string, value: Value): void => {
    const empty = value === "" || (Array.isArray(value) && value.length === 0) || (value instanceof Map && value.size === 0);
    if (!empty) values.set(key, value);
  };
  if (spec.module !== null) put("module", uri(spec.module));
  put("image", spec.image);
  put("command", spec.command);
  if (spec.workdir !== null) put("workdir", uri(spec.workdir));
  put("env", new Map(Object.entries(spec.env)));
  put("inputs", spec.inputs.map((one) => new Map([["src", uri(one)], ["dst", one.dst]])));
  put("outputs", outputsOf(spec));
  put("resources", resourcesOf(spec));
  const { terms, posted } = about;
  values.set("limits", new Map([["runtime", formatDuration(spec.runtime_seconds)], ["deadline", formatDuration(terms.deadline - posted)]]));
  if (spec.units !== 1) values.set("array", new Map([["units", BigInt(spec.units)]]));
  if (terms.maxAttempts !== USUAL?.retry.attempts) values.set("retry", new Map([["attempts", BigInt(terms.maxAttempts)]]));
  if (spec.checkpoint !== undefined) {
    values.set("checkpoint", new Map([["every", formatDuration(spec.checkpoint.every)], ["path", spec.checkpoint.path]]));
  }
  const policy = unpackPolicy(terms.policy);
  put("match", matchOf(terms, policy));
  put("verify", verifyOf(spec, about, policy, notes));
  if (terms.parentsHash !== ZERO_HASH) notes.push("The job waited for others; the new one waits for none, and runs at once.");
  return values;
}

function outputsOf({ outputs }: ResolvedSpec): readonly Value[] {
  const written = outputs.map(({ path, required, max_size }) => ({ path, required, max_size: formatSize(BigInt(max_size)) }));
  // Where a file names none these are the ones.
  if (JSON.stringify(written) === JSON.stringify(USUAL?.outputs)) return [];
  return written.map((one) => new Map<string, Value>(Object.entries(one)));
}

function resourcesOf(spec: ResolvedSpec): ValueMap {
  const { gpus, vendor, tier, exact, vram_gib, cpus, memory_mib, disk_gib, regions } = spec.resources;
  const values = new Map<string, Value>([["cpus", BigInt(cpus)], ["memory", formatSize(BigInt(memory_mib) * BigInt(MIB))]]);
  if (gpus > 0) {
    const gpu = new Map<string, Value>([["count", BigInt(gpus)]]);
    if (tier !== "") gpu.set("tier", tier);
    else if (vendor !== VENDORS[0].name) gpu.set("vendor", vendor);
    if (exact) gpu.set("exact", true);
    if (vram_gib > 0) gpu.set("vram", `${vram_gib}GiB`);
    values.set("gpu", gpu);
  }
  // What inputs and outputs add up to needs no word, and moves with them.
  const needed = [...spec.inputs, spec.module, spec.workdir].reduce((sum, one) => sum + BigInt(one?.size ?? 0), 0n);
  const written = spec.outputs.reduce((sum, { max_size }) => sum + BigInt(max_size), 0n);
  if (gibCeil(needed + written) !== BigInt(disk_gib)) values.set("disk", `${disk_gib}GiB`);
  if (regions.length > 0) values.set("regions", [...regions]);
  return values;
}

function matchOf(terms: Terms, policy: Policy): ValueMap {
  const values = new Map<string, Value>();
  if (terms.matchWindow !== policy.minMatchWindow) values.set("window", formatDuration(terms.matchWindow));
  if ((terms.flags & TERMS_FLAG.NEWCOMERS) !== 0) values.set("newcomers", true);
  return values;
}

function verifyOf(spec: ResolvedSpec, { terms, attesters }: Rerun, policy: Policy, notes: string[]): ValueMap {
  const values = new Map<string, Value>();
  if (BigInt(terms.judge) !== 0n) {
    if (terms.judge !== attesters) throw none(`its judge is ${terms.judge}, which no job file names`);
    // The chain has a digest of their file alone, and nothing is posted until that file is picked.
    values.set("attesters", "attesters.yaml");
    if (terms.challengeWindow !== policy.minChallengeWindow) values.set("window", formatDuration(terms.challengeWindow));
    notes.push("The job named attesters: pick their file again, which the chain has a digest of alone.");
  }
  if ((terms.flags & TERMS_FLAG.KEEP) !== 0) values.set("keep", true);
  const given = Object.entries(spec.verify.compare).filter(([, word]) => word !== "");
  if (spec.verify.compare.kind !== "hash" || given.length > 1) values.set("compare", new Map(given));
  return values;
}

// At most what the job locked, without what was for its start; the fee and the billing where they are not the usual ones.
function withPrice(values: ValueMap, { spec }: LoadedSpec, { terms, asset }: Rerun): ValueMap {
  const total = BigInt(leasesOf(terms)) * leaseBudget(terms);
  const amount = (units: bigint): string => formatAmount(units, asset, { symbol: false });
  const price = new Map<string, Value>([["max_total", amount(total)]]);
  const usual = { ...spec, price: { ...spec.price, max_total: amount(total) } };
  if (planPrices(usual, asset, unpackPolicy(terms.policy)).keeperFee !== terms.keeperFee) price.set("keeper_fee", amount(terms.keeperFee));
  if (billingOf(usual) !== terms.billing) price.set("billing", nameOf(BILLING, terms.billing));
  return new Map(values).set("price", price);
}

const none = (why: string): HearthError =>
  new HearthError("BAD_DOCUMENT", `the job's document cannot be written as a job file: ${why}`, "hearth job rerun JOB posts the same terms again");
