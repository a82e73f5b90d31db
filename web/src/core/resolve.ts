// The canonical spec: the JSON document (RFC 8785) whose sha2-256 is on chain, and what a worker reads. Mirrors
// hearth/jobfile/resolved.py, without reading documents that others wrote (`parse_canonical`).

import { MODELS, VENDORS } from "../generated/tiers";
import { SPEC_BOUNDS } from "../generated/spec";
import { type Hex, sha256, toHex } from "./bytes";
import { encode } from "./canonical";
import { parseCid } from "./cid";
import { DAG_PB, RAW, SHA2_256 } from "../generated/cid";
import { HearthError } from "./errors";
import type { Compare, JobSpec, Resources, RuntimeName } from "./model";
import { ceilDiv, small } from "./numbers";
import { countryCode, DIGEST_IMAGE } from "./rules";
import { maxSeconds, runtimeKind, runtimeOf } from "./spec";
import { tierOfSlug, vendorNamed, vendorOfSlug } from "./tiers";
import type { Needs } from "./types";
import { gibCeil, mibCeil, parseDuration, parseSize } from "./units";
import { zoneMask, zoneOf } from "./zones";

// Data that a worker fetches: its CID, and the bytes of its files.
export interface Data {
  readonly cid: string;
  readonly size: number;
}

// What each source of a spec became, by the source as it is written: see `localSources`.
export type Sources = ReadonlyMap<string, Data> | ((src: string) => Data | undefined);

export interface ResolvedResources {
  readonly gpus: number;
  readonly vendor: string;
  readonly tier: string;
  readonly exact: boolean;
  readonly vram_gib: number;
  readonly cpus: number;
  readonly memory_mib: number;
  readonly disk_gib: number;
  readonly regions: readonly string[];
}

// The document of a job: no path, no human unit, no fraction; every key is always there, but for `checkpoint`, which is
// there only where a job makes them.
export interface ResolvedSpec {
  readonly version: 1;
  readonly name: string;
  readonly runtime: RuntimeName;
  readonly image: string;
  readonly module: Data | null;
  readonly command: readonly string[];
  readonly workdir: Data | null;
  readonly env: Readonly<Record<string, string>>;
  readonly inputs: readonly (Data & { readonly dst: string })[];
  readonly outputs: readonly { readonly path: string; readonly required: boolean; readonly max_size: number }[];
  readonly resources: ResolvedResources;
  readonly runtime_seconds: number;
  readonly fuel_per_second: number;
  readonly units: number;
  readonly chunk: 1;
  readonly verify: { readonly mode: "none"; readonly compare: Readonly<Record<keyof Compare, string>> };
  readonly checkpoint?: { readonly every: number; readonly path: string };
}

// Data by its CID and size. Throws BAD_CID for what is not the one spelling of a CIDv1 (raw or dag-pb, sha2-256) in
// lower case base32, BAD_SPEC for a size that is no whole number below 2^53.
export function dataOf(cid: string, size: number): Data {
  if (!isDataCid(cid)) {
    throw new HearthError("BAD_CID", `${cid} is not a CIDv1 of raw or dag-pb data by sha2-256, in base32`);
  }
  if (!Number.isSafeInteger(size) || size < 0) throw new HearthError("BAD_SPEC", `${size} is no size`);
  return { cid, size };
}

// Say whether text is the one spelling of a CIDv1 (raw or dag-pb, sha2-256) in lower case base32.
export function isDataCid(text: string): boolean {
  try {
    const cid = parseCid(text);
    const known = cid.version === 1 && (cid.codec === RAW || cid.codec === DAG_PB) && cid.hashCode === SHA2_256;
    return known && String(cid) === text;
  } catch (error) {
    if (error instanceof HearthError) return false;
    throw error;
  }
}

// The canonical form of a spec, given what its sources became; `image` is the digest reference that the spec's image
// was resolved to, not needed where the spec names a digest itself. Throws BAD_SPEC and UNKNOWN_TIER, with the field in
// the details, where something is missing, too small or too large.
export function resolve(
  spec: JobSpec,
  sources: Sources,
  { image = null }: { readonly image?: string | null } = {},
): ResolvedSpec {
  const inputs = spec.inputs.map(({ src, dst }, at) => ({ ...found(`inputs[${at}].src`, src, sources), dst }));
  const module = spec.module === null ? null : found("module", spec.module, sources);
  const workdir = spec.workdir === null ? null : found("workdir", spec.workdir, sources);
  const outputs = spec.outputs.map(({ path, required, max_size }) => ({
    path,
    required,
    max_size: small(parseSize(max_size)),
  }));
  let needed = outputs.reduce((sum, item) => sum + BigInt(item.max_size), 0n);
  for (const item of [...inputs, module, workdir]) needed += BigInt(item?.size ?? 0);
  const disk = diskGib(spec.resources.disk, needed);
  const resolved: ResolvedSpec = {
    version: 1,
    name: spec.name,
    runtime: runtimeOf(spec),
    image: spec.image === null ? "" : digestImage(spec.image, image),
    module,
    command: spec.command,
    workdir,
    env: named(spec.env),
    inputs,
    outputs,
    resources: resourcesOf(spec.resources, disk),
    runtime_seconds: maxSeconds(spec),
    fuel_per_second: SPEC_BOUNDS.fuelPerSecond,
    units: spec.array.units,
    chunk: 1,
    verify: { mode: "none", compare: compareOf(spec.verify.compare) },
    ...(spec.checkpoint === null
      ? {}
      : { checkpoint: { every: parseDuration(spec.checkpoint.every), path: spec.checkpoint.path } }),
  };
  canonicalBytes(resolved);
  return resolved;
}

// The document's RFC 8785 bytes. Throws BAD_SPEC for more than 1 MiB.
export function canonicalBytes(spec: ResolvedSpec): Uint8Array<ArrayBuffer> {
  try {
    return encode(spec);
  } catch (error) {
    if (!(error instanceof HearthError) || error.code !== "TOO_LARGE") throw error;
    throw refuse("", error.message, "move long arguments or environment into an input file");
  }
}

// The 32 bytes on chain: sha2-256 of the canonical bytes.
export const specDigest = async (spec: ResolvedSpec): Promise<Hex> => toHex(await sha256(canonicalBytes(spec)));

// What the chain compares with an offer. Sizes round up to whole GiB; no region means any zone. `home`, from which
// distances count, is the zone of the first region. Throws UNKNOWN_TIER and BAD_COUNTRY.
export function needsOf(resources: ResolvedResources, runtime: string): Needs {
  const flag = runtimeKind(runtime).flag;
  const [home] = resources.regions;
  return {
    runtimes: resources.gpus > 0 ? flag | (vendorNamed(resources.vendor)?.flag ?? 0) : flag,
    tier: tierNumber(resources.tier),
    gpuCount: resources.gpus,
    vramGib: resources.vram_gib,
    cores: resources.cpus,
    ramGib: small(ceilDiv(BigInt(resources.memory_mib), 1024n)),
    diskGib: resources.disk_gib,
    zoneMask: home === undefined ? 0 : zoneMask(resources.regions),
    home: home === undefined ? 0 : zoneOf(home),
    exact: resources.exact,
  };
}

// The table's slug for a GPU model in any common spelling: "RTX4090", "rtx 4090" and "rtx-4090" are one. Throws
// UNKNOWN_TIER.
function tierSlug(name: string): string {
  const wanted = squash(name);
  const slug = MODELS.find((one) => squash(one.slug) === wanted)?.slug;
  if (slug !== undefined) return slug;
  const hint = "name a model such as rtx-4090 or h100, or vram alone";
  throw refuse("resources.gpu.tier", `"${name}" is not in the tier table`, hint, "UNKNOWN_TIER");
}

// The routing key of a tier slug; no slug is 0, which every node satisfies. Throws UNKNOWN_TIER.
export const tierNumber = (slug: string): number =>
  slug === "" ? 0 : (tierOfSlug(tierSlug(slug)) ?? 0);

function found(field: string, src: string, sources: Sources): Data {
  const data = typeof sources === "function" ? sources(src) : sources.get(src);
  if (data === undefined) throw refuse(field, `"${src}" was not uploaded`, "hearth submit job.yaml");
  return dataOf(data.cid, data.size);
}

// The disk that a unit gets, whole GiB: what is asked, else the bytes that inputs and outputs need.
function diskGib(asked: string | null, needed: bigint): number {
  // An output has a byte at least, so that this is never none.
  const disk = asked === null ? needed : parseSize(asked);
  if (disk < needed) {
    throw refuse("resources.disk", `${asked} is less than inputs and outputs need`, `use ${gibCeil(needed)}GiB`);
  }
  const most = SPEC_BOUNDS.mostDiskGib;
  if (gibCeil(disk) > BigInt(most)) {
    throw refuse("resources.disk", `inputs and outputs need more than ${most}GiB`, "lower max_size");
  }
  return small(gibCeil(disk));
}

// Resources in whole units; sizes round up.
function resourcesOf(need: Resources, disk: number): ResolvedResources {
  const tier = need.gpu.tier === null ? "" : tierSlug(need.gpu.tier);
  return {
    gpus: need.gpu.count,
    vendor: vendorAsked(need.gpu, tier),
    tier,
    exact: need.gpu.exact,
    vram_gib: need.gpu.vram === null ? 0 : small(gibCeil(parseSize(need.gpu.vram))),
    cpus: need.cpus,
    memory_mib: small(mibCeil(parseSize(need.memory))),
    disk_gib: disk,
    regions: need.regions.map(countryCode),
  };
}

// Whose GPUs are asked: who makes the tier, who is named, or the first; "" without GPUs. Throws BAD_SPEC where these differ.
function vendorAsked(gpu: Resources["gpu"], tier: string): string {
  if (gpu.count === 0) return "";
  const maker = vendorOfSlug(tier);
  if (maker !== undefined && gpu.vendor !== null && gpu.vendor !== maker.name) {
    throw refuse("resources.gpu.vendor", `${tier} is a GPU of ${maker.title}`, `write vendor: ${maker.name}, or leave it out`);
  }
  return gpu.vendor ?? (maker ?? VENDORS[0]).name;
}

// A comparator with every field present, empty where it is not used.
function compareOf({ kind, file, atol, rtol, minimum, field }: Compare): Record<keyof Compare, string> {
  return { kind, file: file ?? "", atol: atol ?? "", rtol: rtol ?? "", minimum: minimum ?? "", field: field ?? "" };
}

function digestImage(written: string, resolved: string | null): string {
  const at = written.indexOf("@");
  if (at >= 0) {
    // A tag beside a digest says nothing; one image has one name.
    const slash = written.lastIndexOf("/", at) + 1;
    const last = written.slice(slash, at).split(":", 1)[0] ?? "";
    return `${written.slice(0, slash)}${last}${written.slice(at)}`;
  }
  if (resolved === null || !DIGEST_IMAGE.test(resolved)) {
    throw refuse("image", `"${written}" was not resolved to a digest`, `docker pull ${written}`);
  }
  return resolved;
}

// An object in which every name is a name, `__proto__` too.
function named(pairs: ReadonlyMap<string, string>): Record<string, string> {
  const object = Object.create(null) as Record<string, string>;
  for (const [name, value] of pairs) object[name] = value;
  return object;
}

const squash = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");

function refuse(field: string, message: string, hint: string, code = "BAD_SPEC"): HearthError {
  return new HearthError(code, field === "" ? message : `${field}: ${message}`, hint, { field });
}
