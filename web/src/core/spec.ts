// A checked job: what fields mean together, what this version does not offer, and reading a job file as a whole.
// Mirrors `problems_of` and `unbuilt_in` of hearth/jobfile/model.py, and hearth/jobfile/loaded.py and load.py without the
// recognition of other systems' files, which the page refuses by what is wrong in them as a job.

import { DEFAULT_RUNTIME, NAME_ATTESTERS, RUNTIMES, SPEC_BOUNDS, SPEC_PATTERNS } from "../generated/spec";
import { HearthError } from "./errors";
import { type JobSpec, readModel, type RuntimeName } from "./model";
import { floorDivInt } from "./numbers";
import { type Location, type Problem, problem, Source } from "./problems";
import * as rules from "./rules";
import { desugar } from "./sugar";
import { first } from "./unicode";
import { formatSize, parseDuration, parseSize } from "./units";
import { deadlineIn } from "./deadline";
import type { ValueMap } from "./values";
import { readText } from "./yaml";

export type RuntimeKind = (typeof RUNTIMES)[number];

const JOB_ID = new RegExp(`^(?:${SPEC_PATTERNS.jobId})$`);
const DAY = 86_400;
const LATER = "is not available in this version";

// A checked spec, where it came from, and notes for the user.
export interface LoadedSpec {
  readonly spec: JobSpec;
  readonly source: Source;
  readonly notes: readonly string[];
}

// Read a job file, its bytes or its text, with variables filled in; `name` is shown in errors. Throws what `readText`
// does, and the code of the first of all the problems in it: BAD_SPEC, UNKNOWN_KEY, MISSING_KEY, UNQUOTED, BAD_UNIT,
// BAD_CID, SECRET_IN_ENV and others, each with its field and line.
export async function loadSpec(
  raw: Uint8Array | string,
  name = "job.yaml",
  variables: ReadonlyMap<string, string> = new Map(),
): Promise<LoadedSpec> {
  const { value, source } = await readText(raw, name, variables);
  return checkSpec(value, source);
}

// Check a spec given as plain values, as a form builds it. Throws as `loadSpec` does.
export function checkSpec(given: ValueMap, source: Source = new Source("job")): LoadedSpec {
  const { data, notes, problems } = desugar(given);
  const { spec, problems: found } = readModel(data);
  const all = [...problems, ...(spec === null ? found : [...problemsOf(spec), ...unbuiltIn(spec)])];
  if (spec === null || all.length > 0) throw source.refuse(all);
  return { spec, source, notes };
}

// An error of a later step (prices, tiers, uploads) with its field, and that one's file and line.
export function located(loaded: Pick<LoadedSpec, "source">, error: HearthError): HearthError {
  const name = String(error.details["field"] ?? "");
  const named = name !== "" && error.message.startsWith(`${name}: `);
  const message = named ? error.message.slice(name.length + 2) : error.message;
  return loaded.source.refuse([problem(locationOf(name), message, error.hint, error.code)]);
}

// What is wrong with a spec whose every field is well formed by itself.
function problemsOf(spec: JobSpec): Problem[] {
  return [
    ...program(spec),
    ...localSources(spec).flatMap(([where, src]) => rules.source(src, where)),
    ...rules.env(spec.env.keys(), ["env"]),
    ...rules.envValues(spec.env, ["env"]),
    ...rules.places(spec.inputs.map(({ dst }, at) => [["inputs", at, "dst"], dst] as const), "/in"),
    ...rules.places(spec.outputs.map(({ path }, at) => [["outputs", at, "path"], path] as const), "/out"),
    ...resources(spec),
    ...limits(spec),
    ...verify(spec),
    ...after(spec),
    ...checkpoint(spec),
  ];
}

// Each part of a well formed spec that this version of the network does not offer, with its own code.
function unbuiltIn(spec: JobSpec): Problem[] {
  const problems: Problem[] = [];
  const mode = verifyMode(spec);
  if (mode === "referee" || mode === "retrial") {
    const message = `mode ${mode} ${LATER}: nobody can challenge a result yet, only attesters can confirm one`;
    const code = mode === "referee" ? "NO_REFEREE" : "NO_RETRIAL";
    problems.push(problem(["verify", "mode"], message, "use mode: none, or name attesters", code));
  }
  if ((spec.verify.replicas ?? 1) > 1) {
    problems.push(problem(["verify", "replicas"], `more than one replica ${LATER}`, "remove replicas", "NO_REPLICAS"));
  }
  if (spec.array.chunk > 1) {
    problems.push(problem(["array", "chunk"], `chunk above 1 ${LATER}`, "use chunk: 1", "NO_CHUNK"));
  }
  for (const [index, { encrypt }] of spec.inputs.entries()) {
    if (!encrypt) continue;
    const message = `confidential input ${LATER}; everything that is uploaded is public`;
    const hint = "remove encrypt, or keep this data at home";
    problems.push(problem(["inputs", index, "encrypt"], message, hint, "NO_ENCRYPT"));
  }
  return problems;
}

// Where each thing that a spec takes in is named, and its name: module, workdir, inputs.
export function localSources(spec: JobSpec): (readonly [Location, string])[] {
  const named: (readonly [Location, string])[] = [];
  if (spec.module !== null) named.push([["module"], spec.module]);
  if (spec.workdir !== null) named.push([["workdir"], spec.workdir]);
  for (const [at, { src }] of spec.inputs.entries()) named.push([["inputs", at, "src"], src]);
  return named;
}

// The row of a runtime.
export function runtimeKind(name: string): RuntimeKind {
  const kind = RUNTIMES.find((one) => one.name === name);
  if (kind === undefined) throw new HearthError("BAD_SPEC", `runtime ${name} is unknown`, "use docker or wasm");
  return kind;
}

// The runtime, which the program implies where it is left out.
export function runtimeOf(spec: JobSpec): RuntimeName {
  return spec.runtime ?? RUNTIMES.find((kind) => spec[kind.program] !== null)?.name ?? DEFAULT_RUNTIME;
}

// The mode of verification, which naming attesters implies where it is left out.
export const verifyMode = (spec: JobSpec): NonNullable<JobSpec["verify"]["mode"]> =>
  spec.verify.mode ?? (spec.verify.attesters === null ? "none" : "attested");

// The longest that one unit may run, in seconds.
export const maxSeconds = (spec: JobSpec): number => parseDuration(spec.limits.runtime);

function program(spec: JobSpec): Problem[] {
  const problems: Problem[] = [];
  const kind = runtimeKind(runtimeOf(spec));
  if (spec.image !== null && spec.module !== null) {
    problems.push(problem(["module"], "image and module exclude each other", "keep the one that fits the runtime"));
  } else if (spec[kind.program] === null) {
    let hint = `add ${kind.program}: ${kind.example}`;
    // Nothing that the spec says tells which runtime was meant.
    if (kind.name === DEFAULT_RUNTIME) {
      for (const other of RUNTIMES.filter((one) => one.program !== kind.program)) {
        hint += `, or ${other.program}: for a ${other.title} job`;
      }
    }
    const where: Location = spec.runtime === null ? [] : ["runtime"];
    problems.push(problem(where, `runtime ${kind.name} needs ${kind.program}`, hint));
  }
  if (spec.image !== null && !rules.IMAGE.test(spec.image)) {
    const hint = 'write "name:tag" or "name@sha256:..."';
    problems.push(problem(["image"], `"${spec.image}" is not an image reference`, hint));
  }
  if (spec.price.billing === "fuel" && !kind.metersFuel) {
    const metered = RUNTIMES.filter((one) => one.metersFuel).map((one) => one.title);
    const message = `fuel is counted in ${metered.join(" and ")} only`;
    problems.push(problem(["price", "billing"], message, "use billing: fixed or metered"));
  }
  return problems;
}

function resources(spec: JobSpec): Problem[] {
  const problems: Problem[] = [];
  const need = spec.resources;
  const runtime = runtimeOf(spec);
  const kind = runtimeKind(runtime);
  if (need.gpu.count > 0 && !kind.takesGpu) {
    const able = RUNTIMES.filter((one) => one.takesGpu).map((one) => one.name);
    const hint = `ask for no GPU, or run an image (runtime ${able.join(" or ")})`;
    problems.push(problem(["resources", "gpu"], `runtime ${runtime} computes on the CPU`, hint));
  }
  const { count, tier, vram, vendor, exact } = need.gpu;
  if (count === 0 && (tier !== null || vram !== null || vendor !== null || exact)) {
    problems.push(problem(["resources", "gpu", "count"], "tier, vram, vendor and exact say nothing of 0 GPUs", "use count: 1"));
  }
  if (exact && tier === null) {
    problems.push(problem(["resources", "gpu", "exact"], "says nothing without a tier", "name a model: tier: rtx-4090"));
  }
  const { mostVramGib, mostMemoryGib, mostDiskGib } = SPEC_BOUNDS;
  problems.push(
    ...sized(need.gpu.vram, mostVramGib, ["resources", "gpu", "vram"]),
    ...sized(need.memory, mostMemoryGib, ["resources", "memory"]),
    ...sized(need.disk, mostDiskGib, ["resources", "disk"]),
  );
  const least = BigInt(need.gpu.count > 0 ? kind.leastMemoryWithGpus : kind.leastMemory);
  if (parseSize(need.memory) > 0n && parseSize(need.memory) < least) {
    const size = formatSize(least);
    const message = `${need.memory} is less than the ${size} with which ${kind.title} starts a program${need.gpu.count > 0 ? " with GPUs" : ""}`;
    problems.push(problem(["resources", "memory"], message, `write memory: "${size}", or more`));
  }
  problems.push(...rules.regions(need.regions, ["resources", "regions"]));
  const written = spec.outputs.reduce((sum, item) => sum + parseSize(item.max_size), 0n);
  if (need.disk !== null && parseSize(need.disk) < written) {
    const message = "is smaller than what the outputs may add up to";
    problems.push(problem(["resources", "disk"], message, "raise disk or lower max_size"));
  }
  for (const [at, item] of spec.outputs.entries()) {
    problems.push(...sized(item.max_size, mostDiskGib, ["outputs", at, "max_size"]));
  }
  return problems;
}

// A size is above nothing, and at most so many GiB.
function sized(size: string | null, mostGib: number, where: Location): Problem[] {
  if (size === null) return [];
  const bytes = parseSize(size);
  if (bytes > 0n && bytes <= BigInt(mostGib) << 30n) return [];
  return [problem(where, `${size} is outside 1B..${mostGib}GiB`)];
}

function limits(spec: JobSpec): Problem[] {
  const problems: Problem[] = [];
  const seconds = maxSeconds(spec);
  const { maxRuntime, maxMatchWindow, maxTries } = SPEC_BOUNDS;
  const { runtime, deadline } = spec.limits;
  if (seconds < 1 || seconds > maxRuntime) {
    problems.push(problem(["limits", "runtime"], `${runtime} is outside 1s..30d`));
  }
  if (deadline !== null && deadlineIn(deadline) === undefined) {
    const hint = 'write "6h" or "2030-01-31T12:00:00Z"';
    problems.push(problem(["limits", "deadline"], `"${deadline}" is neither a duration nor a time`, hint));
  }
  const window = spec.match.window;
  if (window !== null && parseDuration(window) > maxMatchWindow) {
    problems.push(problem(["match", "window"], `${window} is above ${maxMatchWindow}s`));
  }
  const { units, chunk } = spec.array;
  if (units % chunk !== 0) {
    problems.push(problem(["array", "chunk"], `${chunk} does not divide ${units} units`));
  } else if (chunk > 1 && chunk * seconds > maxRuntime) {
    problems.push(problem(["array", "chunk"], `${chunk} units of ${runtime} last longer than 30d`));
  } else if (floorDivInt(units, chunk) * (spec.verify.replicas ?? 1) * spec.retry.attempts >= maxTries) {
    const message = `leases times attempts must stay below ${maxTries}`;
    problems.push(problem(["retry", "attempts"], message, "lower attempts"));
  }
  return problems;
}

function verify(spec: JobSpec): Problem[] {
  const problems: Problem[] = [];
  const mode = verifyMode(spec);
  const { attesters, window: written, compare } = spec.verify;
  if (mode === "attested" && attesters === null) {
    problems.push(problem(["verify", "attesters"], "mode attested needs attesters", NAME_ATTESTERS));
  }
  if (mode !== "attested" && attesters !== null) {
    problems.push(problem(["verify", "attesters"], `mode ${mode} has no attesters`, "use mode: attested"));
  }
  const window = written === null ? 0 : parseDuration(written);
  if (mode === "none" && window > 0) {
    problems.push(problem(["verify", "window"], "mode none has no window", "remove window, or name attesters"));
  }
  const most = SPEC_BOUNDS.maxChallengeWindow;
  if (window > most) problems.push(problem(["verify", "window"], `${written} is above ${floorDivInt(most, DAY)}d`));
  const given = Object.entries(compare).filter((entry): entry is [string, string] => entry[1] !== null);
  return [...problems, ...rules.compare(new Map(given), ["verify", "compare"])];
}

function after(spec: JobSpec): Problem[] {
  const seen = new Set<string>();
  return spec.after.flatMap(({ job }, at) => {
    const twice = seen.has(job);
    seen.add(job);
    if (!JOB_ID.test(job)) return [problem(["after", at], `"${first(job, 80)}" is not a job id`, "hearth jobs --mine")];
    return twice ? [problem(["after", at], "names a job twice", "keep one condition; a job ends in one way only")] : [];
  });
}

function checkpoint(spec: JobSpec): Problem[] {
  if (spec.checkpoint === null) return [];
  const { every: written, path } = spec.checkpoint;
  const problems = rules.folderBelow(path, "/out", ["checkpoint", "path"]);
  const every = parseDuration(written);
  if (every < 1) {
    problems.push(problem(["checkpoint", "every"], "must be at least 1s"));
  } else if (every >= maxSeconds(spec)) {
    const message = `${written} is not less than limits.runtime: no checkpoint would ever be made`;
    problems.push(problem(["checkpoint", "every"], message, "write a shorter time, or a longer limits.runtime"));
  }
  const { billing } = spec.price;
  if (billing !== "auto" && billing !== "metered") {
    const message = `billing ${billing} has no checkpoints: a worker is paid for them by time`;
    problems.push(problem(["price", "billing"], message, "use billing: metered, or remove checkpoint"));
  }
  return problems;
}

// Where a field's name leads: "inputs[0].src".
function locationOf(name: string): Location {
  const parts = name.replaceAll("[", ".").replaceAll("]", "").split(".");
  return parts.filter((part) => part !== "").map((part) => (/^[0-9]+$/.test(part) ? Number.parseInt(part, 10) : part));
}
