// Accept the older form of a job that public guides show, and rewrite it into the one schema. Mirrors
// hearth/jobfile/sugar.py, but for quotes in a command that is one text, which the page leaves to the command line.

import { SPEC_PATTERNS } from "../generated/spec";
import { type Problem, problem } from "./problems";
import { trimmed } from "./unicode";
import type { Value, ValueMap } from "./values";

const GPU = new RegExp(`^(?:${SPEC_PATTERNS.gpu})$`);
const SHELL = new RegExp(SPEC_PATTERNS.shell, "u");
const AS_LIST = 'write it as a list: ["python", "train.py"]; for a shell: ["sh", "-c", "..."]';

type Fields = Map<string, Value>;

export interface Desugared {
  readonly data: ValueMap;
  readonly notes: readonly string[];
  readonly problems: readonly Problem[];
}

// The spec in the present form, notes for the user, and what could not be rewritten. Throws nothing.
export function desugar(data: ValueMap): Desugared {
  const spec: Fields = new Map(data);
  const notes: string[] = [];
  const problems: Problem[] = [];
  const command = spec.get("command");
  if (typeof command === "string") spec.set("command", wordsOf(command, problems));
  const resources = spec.get("resources");
  if (resources instanceof Map) spec.set("resources", newer(resources, problems));
  const verify = spec.get("verify");
  if (typeof verify === "string") spec.set("verify", new Map([["mode", verify]]));
  if (spec.has("input_data")) inputData(spec, notes, problems);
  if (spec.has("output_dest")) outputDest(spec, notes, problems);
  return { data: spec, notes, problems };
}

function wordsOf(text: string, problems: Problem[]): readonly string[] {
  if (/['"\\]/.test(text)) problems.push(problem(["command"], "holds a quote or a backslash, and is no list", AS_LIST, "YAML_SUBSET"));
  else if (SHELL.test(text)) problems.push(problem(["command"], "uses shell syntax, and no shell runs it", AS_LIST));
  return text.split(/[ \t\r\n]+/).filter((word) => word !== "");
}

function newer(given: ValueMap, problems: Problem[]): ValueMap {
  const resources: Fields = new Map(given);
  const cpu = resources.get("cpu");
  if (cpu !== undefined && !resources.has("cpus")) {
    resources.delete("cpu");
    resources.set("cpus", cpu);
  }
  const gpu = resources.get("gpu");
  if (typeof gpu === "bigint") resources.set("gpu", new Map([["count", gpu]]));
  else if (typeof gpu === "string") resources.set("gpu", gpuOf(gpu, problems));
  return resources;
}

// "1xRTX4090", "2 x A100 80GB", "h100" or "2".
function gpuOf(text: string, problems: Problem[]): ValueMap {
  const match = GPU.exec(trimmed(text));
  if (match === null) {
    problems.push(problem(["resources", "gpu"], `"${text}" is not a GPU`, 'write "1xRTX4090" or {count: 1, tier: rtx-4090}'));
    return new Map([["count", 0n]]);
  }
  const [, count, model, alone] = match;
  if (model === undefined) return new Map([["count", BigInt(alone ?? "0")]]);
  return new Map<string, Value>([
    ["count", BigInt(count ?? "1")],
    ["tier", slug(model)],
  ]);
}

// A model's name as the tier table writes it: "RTX4090" is rtx-4090, "A100 80GB" is a100-80gb.
function slug(model: string): string {
  const words = model.trim().toLowerCase().replace(/[ _.]+/g, "-");
  return words.replace(/^(rtx|gtx)(?=[0-9])/, "$1-");
}

function inputData(spec: Fields, notes: string[], problems: Problem[]): void {
  const src = spec.get("input_data") ?? null;
  spec.delete("input_data");
  if (spec.has("inputs")) problems.push(problem(["input_data"], "cannot be used with inputs", "move it into inputs"));
  else if (typeof src !== "string") problems.push(problem(["input_data"], "must be one ipfs://CID, path or URL", "use inputs for several"));
  else {
    spec.set("inputs", [new Map([["src", src], ["dst", "/in/data"]])]);
    notes.push("input_data is mounted at /in/data");
  }
}

function outputDest(spec: Fields, notes: string[], problems: Problem[]): void {
  const destination = spec.get("output_dest");
  spec.delete("output_dest");
  if (spec.has("outputs")) {
    problems.push(problem(["output_dest"], "cannot be used with outputs", "keep outputs"));
    return;
  }
  spec.set("outputs", [new Map([["path", "/out"]])]);
  if (destination !== "/out") notes.push("output_dest is not used: the job writes to /out; hearth job get JOB fetches it");
}
