// Accept the older form of a job that public guides show, and rewrite it into the one schema. Mirrors
// hearth/spec/sugar.py.

import { SPEC_PATTERNS } from "../generated/spec";
import { type Location, type Problem, problem } from "./problems";
import { str } from "./pytext";
import { needsShell, splitWords } from "./shell";
import { strip } from "./strip";
import type { Value, ValueMap } from "./yaml";

const GPU = new RegExp(`^(?:${SPEC_PATTERNS.gpu})$`);

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
  const where: Location = ["command"];
  const hint = `write it as a list; for a shell: ["sh", "-c", ${quoted(text)}]`;
  const words = splitWords(text);
  if (typeof words === "string") problems.push(problem(where, `cannot be split into words: ${words}`, hint));
  if (needsShell(text)) problems.push(problem(where, "uses shell syntax, and no shell runs it", hint));
  return typeof words === "string" ? [] : words;
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
  const match = GPU.exec(strip(text));
  if (match === null) {
    const hint = 'write "1xRTX4090" or {count: 1, tier: rtx-4090}';
    problems.push(problem(["resources", "gpu"], `"${text}" is not a GPU`, hint));
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
  const words = strip(model).toLowerCase().replace(/[ _.]+/g, "-");
  return words.replace(/^(rtx|gtx)(?=[0-9])/, "$1-");
}

function inputData(spec: Fields, notes: string[], problems: Problem[]): void {
  const src = spec.get("input_data") ?? null;
  spec.delete("input_data");
  const where: Location = ["input_data"];
  if (spec.has("inputs")) problems.push(problem(where, "stands beside inputs", "move it into inputs"));
  else if (typeof src !== "string") {
    problems.push(problem(where, "must be one ipfs://CID, path or URL", "use inputs for several"));
  } else {
    spec.set("inputs", [
      new Map([
        ["src", src],
        ["dst", "/in/data"],
      ]),
    ]);
    notes.push("input_data is mounted at /in/data");
  }
}

function outputDest(spec: Fields, notes: string[], problems: Problem[]): void {
  const destination = spec.get("output_dest") ?? null;
  spec.delete("output_dest");
  if (spec.has("outputs")) {
    problems.push(problem(["output_dest"], "stands beside outputs", "keep outputs"));
    return;
  }
  spec.set("outputs", [new Map([["path", "/out"]])]);
  if (destination === "/out") return;
  notes.push(
    `output_dest ${str(destination)} is not used: the job writes to /out; hearth job get JOB fetches it`,
  );
}

const quoted = (text: string): string => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
