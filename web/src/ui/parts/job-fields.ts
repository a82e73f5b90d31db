// The fields of a job file as the form calls and groups them. Types, words and defaults are the library's (generated/spec.ts).

import type { Location } from "../../core/problems";
import { MODELS, VENDORS } from "../../generated/tiers";

export interface Field {
  readonly where: Location;
  readonly label: string;
  readonly hint?: string;
  // What may be picked for it on this machine.
  readonly picks?: "file" | "folder" | "either";
  readonly choices?: readonly string[];
  // Of a list of mappings: what one of them is called, and its fields by their keys.
  readonly one?: string;
  readonly items?: readonly Field[];
}

export interface Group {
  readonly title: string;
  readonly common: readonly Field[];
  // Behind a summary.
  readonly rare: readonly Field[];
}

const field = (path: string, label: string, hint = "", more: Omit<Field, "where" | "label" | "hint"> = {}): Field => ({
  where: path.split("."),
  label,
  ...(hint === "" ? {} : { hint }),
  ...more,
});

export const GROUPS: readonly Group[] = [
  {
    title: "Program",
    common: [
      field("name", "Name", "letters, digits, space, dot, _ and -"),
      field("module", "WebAssembly module", "a file that you pick, or ipfs://CID; or a container image, not both", { picks: "file" }),
      field("image", "Container image", "name@sha256:..., from a public registry"),
      field("command", "Command", "", { one: "argument" }),
    ],
    rare: [
      field("runtime", "Runtime", "the program implies it"),
      field("env", "Environment", "public for ever: no keys and no passwords", { one: "variable" }),
    ],
  },
  {
    title: "Data",
    common: [
      field("inputs", "Inputs", "public for everybody once they are uploaded", {
        one: "input",
        items: [
          field("src", "What", "a file or folder that you pick, or ipfs://CID", { picks: "either" }),
          field("dst", "Path inside the job", "below /in, such as /in/data.csv"),
        ],
      }),
    ],
    rare: [
      field("workdir", "Working folder", "shown read-only as /job, where the program starts", { picks: "folder" }),
      field("outputs", "Outputs", "left out: /out, up to 1GiB", {
        one: "output",
        items: [
          field("path", "Path", "/out or below"),
          field("required", "It must be there"),
          field("max_size", "Largest size", 'such as "1GiB"'),
        ],
      }),
    ],
  },
  {
    title: "Resources",
    common: [
      field("resources.cpus", "Cores", "whole ones"),
      field("resources.memory", "Memory", 'such as "512MiB" or "16GiB"'),
      field("resources.gpu.count", "GPUs", "0 for none; a container only"),
      field("resources.gpu.tier", "GPU, or a better one", "", { choices: MODELS.map(({ slug }) => slug) }),
      field("resources.gpu.vram", "Memory of each GPU", 'at least, such as "24GiB"'),
    ],
    rare: [
      field("resources.gpu.vendor", "Whose GPU", "left out: that of the model, or nvidia", { choices: VENDORS.map(({ name }) => name) }),
      field("resources.gpu.exact", "This very GPU, no better one"),
      field("resources.disk", "Disk", "left out: what inputs and outputs add up to"),
      field("resources.regions", "Countries", "two letters each; each admits its whole zone, and zones are what workers say", { one: "country" }),
    ],
  },
  {
    title: "Limits and price",
    common: [
      field("limits.runtime", "Longest run of a unit", 'such as "30m" or "2h30m"'),
      field("limits.deadline", "All must be over", 'a time from now, "6h", or "2030-01-31T12:00:00Z"; left out: a day or longer'),
      field("price.max_total", "At most in all", 'such as "0.02"; a job needs this or a rate, and with both the smaller holds'),
      field("price.max_rate", "At most per unit and time", 'such as "0.60/h"'),
    ],
    rare: [
      field("retry.attempts", "Attempts of a unit", "1 to 8"),
      field("price.billing", "Billing", "auto: by fuel for WebAssembly, else by the second"),
      field("price.keeper_fee", "Keeper's fee of an attempt", "auto: 1 % of the price, at least the market's minimum"),
      field("match.window", "How long proposals compete", "left out: the market's shortest; 0s: first come"),
      field("match.newcomers", "Workers on probation may take it at any price"),
    ],
  },
  {
    title: "Who says that a result is right",
    common: [],
    rare: [
      field("verify.attesters", "File of its attesters", "which you pick further down; nobody, where it is left out"),
      field("verify.mode", "Mode", "attesters imply it"),
      field("verify.window", "How long they have", "beyond the deadline; left out: the market's shortest"),
      field("verify.keep", "The chain itself keeps each result's digest"),
      field("verify.compare.kind", "Results are compared by"),
      field("verify.compare.file", "Output that is compared"),
      field("verify.compare.atol", "Absolute tolerance", 'such as "0.001"'),
      field("verify.compare.rtol", "Relative tolerance", 'such as "1e-5"'),
      field("verify.compare.minimum", "Least similarity"),
      field("verify.compare.field", "Field of the JSON output"),
    ],
  },
  {
    title: "Units, order and checkpoints",
    common: [],
    rare: [
      field("array.units", "Units", "independent runs of one job; HEARTH_UNIT says which one it is"),
      field("after", "Jobs to wait for", "", {
        one: "job",
        items: [field("job", "Its id", "0x and 64 digits"), field("if", "It has to end in")],
      }),
      field("checkpoint.every", "A checkpoint every", 'such as "5m"'),
      field("checkpoint.path", "Folder of its state", "below /out"),
    ],
  },
];

// What this version of the network does not offer, and what has one value: the text alone can say it.
export const LEFT_OUT: readonly string[] = ["version", "inputs.encrypt", "verify.replicas", "array.chunk"];
