// The job file: fields with types and bounds, rules, runtimes (hearth/jobfile, hearth/protocol/runtimes.py). A field whose type this module does not know stops it: the page must not read such a field by a rule of its own.
// Written by `python -m tools.web_tables`: change tools/web_tables/spec.py.

export const SPEC_TEXT = {
  maxBytes: 1048576,
  maxDepth: 16,
  maxValues: 100000,
  integer: "-?(0|[1-9][0-9]{0,17})",
  number: "[-+]?(0[xX][0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*\\.?[0-9_]*([eE][-+]?[0-9]+)?|\\.[0-9]+([eE][-+]?[0-9]+)?|\\.(inf|Inf|INF))|\\.(nan|NaN|NAN)",
  constants: [
    ["", null],
    ["~", null],
    ["null", null],
    ["Null", null],
    ["NULL", null],
    ["true", true],
    ["True", true],
    ["TRUE", true],
    ["false", false],
    ["False", false],
    ["FALSE", false],
  ],
} as const;

export const SPEC_MODELS = {
  JobSpec: [
    { key: "version", type: { kind: "whole", least: 1, most: 1 }, default: 1 },
    { key: "name", type: { pattern: "name", kind: "text" }, default: "job" },
    {
      key: "runtime",
      type: { kind: "nullable", inner: { kind: "word", words: ["docker", "wasm"] } },
      default: null,
    },
    { key: "image", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "module", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "command", type: { kind: "list", item: { kind: "text" }, most: 1024 }, default: [] },
    { key: "workdir", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "env", type: { kind: "map", item: { kind: "text" }, most: 1024 }, default: {} },
    {
      key: "inputs",
      type: { kind: "list", item: { kind: "model", model: "Input" }, most: 1024 },
      default: [],
    },
    {
      key: "outputs",
      type: { kind: "list", item: { kind: "model", model: "Output" }, fewest: 1, most: 1024 },
      default: [{ path: "/out", required: false, max_size: "1GiB" }],
    },
    {
      key: "resources",
      type: { kind: "model", model: "Resources" },
      default: {
        gpu: { count: 0, tier: null, vram: null, vendor: null, exact: false },
        cpus: 1,
        memory: "1GiB",
        disk: null,
        regions: [],
      },
    },
    {
      key: "limits",
      type: { kind: "model", model: "Limits" },
      default: { runtime: "10m", deadline: null },
    },
    {
      key: "price",
      type: { kind: "model", model: "Price" },
      default: { max_total: null, max_rate: null, keeper_fee: "auto", billing: "auto" },
    },
    {
      key: "match",
      type: { kind: "model", model: "Match" },
      default: { window: null, newcomers: false },
    },
    {
      key: "verify",
      type: { kind: "model", model: "Verify" },
      default: {
        mode: null,
        attesters: null,
        window: null,
        compare: { kind: "hash", file: null, atol: null, rtol: null, minimum: null, field: null },
        replicas: null,
        keep: false,
      },
    },
    { key: "array", type: { kind: "model", model: "Array" }, default: { units: 1, chunk: 1 } },
    {
      key: "after",
      type: {
        kind: "list",
        item: { kind: "model", model: "After", form: "parent" },
        most: 15,
        form: "parents",
      },
      default: [],
    },
    { key: "retry", type: { kind: "model", model: "Retry" }, default: { attempts: 3 } },
    {
      key: "checkpoint",
      type: { kind: "nullable", inner: { kind: "model", model: "Checkpoint" } },
      default: null,
    },
  ],
  Input: [
    { key: "src", type: { kind: "text" } },
    { key: "dst", type: { kind: "text" } },
    { key: "encrypt", type: { kind: "bool" }, default: false },
  ],
  Output: [
    { key: "path", type: { kind: "text" } },
    { key: "required", type: { kind: "bool" }, default: true },
    { key: "max_size", type: { kind: "size" }, default: "1GiB" },
  ],
  Resources: [
    {
      key: "gpu",
      type: { kind: "model", model: "Gpu" },
      default: { count: 0, tier: null, vram: null, vendor: null, exact: false },
    },
    { key: "cpus", type: { kind: "whole", least: 1, most: 1023 }, default: 1 },
    { key: "memory", type: { kind: "size" }, default: "1GiB" },
    { key: "disk", type: { kind: "nullable", inner: { kind: "size" } }, default: null },
    { key: "regions", type: { kind: "list", item: { kind: "text" } }, default: [] },
  ],
  Limits: [
    { key: "runtime", type: { kind: "duration" }, default: "10m" },
    { key: "deadline", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
  ],
  Price: [
    { key: "max_total", type: { kind: "nullable", inner: { kind: "amount" } }, default: null },
    { key: "max_rate", type: { kind: "nullable", inner: { kind: "rate" } }, default: null },
    { key: "keeper_fee", type: { kind: "fee" }, default: "auto" },
    {
      key: "billing",
      type: { kind: "word", words: ["auto", "fixed", "fuel", "metered"] },
      default: "auto",
    },
  ],
  Match: [
    { key: "window", type: { kind: "nullable", inner: { kind: "duration" } }, default: null },
    { key: "newcomers", type: { kind: "bool" }, default: false },
  ],
  Verify: [
    {
      key: "mode",
      type: {
        kind: "nullable",
        inner: { kind: "word", words: ["none", "attested", "referee", "retrial"] },
      },
      default: null,
    },
    { key: "attesters", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "window", type: { kind: "nullable", inner: { kind: "duration" } }, default: null },
    {
      key: "compare",
      type: { kind: "model", model: "Compare" },
      default: { kind: "hash", file: null, atol: null, rtol: null, minimum: null, field: null },
    },
    {
      key: "replicas",
      type: { kind: "nullable", inner: { kind: "whole", least: 1, most: 7 } },
      default: null,
    },
    { key: "keep", type: { kind: "bool" }, default: false },
  ],
  Array: [
    { key: "units", type: { kind: "whole", least: 1, most: 1048576 }, default: 1 },
    { key: "chunk", type: { kind: "whole", least: 1, most: 256 }, default: 1 },
  ],
  After: [
    { key: "job", type: { kind: "text" } },
    {
      key: "if",
      name: "condition",
      type: { kind: "word", words: ["success", "failure", "always"] },
      default: "success",
    },
  ],
  Retry: [{ key: "attempts", type: { kind: "whole", least: 1, most: 8 }, default: 3 }],
  Checkpoint: [{ key: "every", type: { kind: "duration" } }, { key: "path", type: { kind: "text" } }],
  Gpu: [
    { key: "count", type: { kind: "whole", least: 0, most: 63 }, default: 1 },
    { key: "tier", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "vram", type: { kind: "nullable", inner: { kind: "size" } }, default: null },
    {
      key: "vendor",
      type: { kind: "nullable", inner: { kind: "word", words: ["nvidia", "amd"] } },
      default: null,
    },
    { key: "exact", type: { kind: "bool" }, default: false },
  ],
  Compare: [
    {
      key: "kind",
      type: { kind: "word", words: ["hash", "allclose", "cosine", "metric"] },
      default: "hash",
    },
    { key: "file", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
    { key: "atol", type: { kind: "nullable", inner: { kind: "decimal" } }, default: null },
    { key: "rtol", type: { kind: "nullable", inner: { kind: "decimal" } }, default: null },
    { key: "minimum", type: { kind: "nullable", inner: { kind: "decimal" } }, default: null },
    { key: "field", type: { kind: "nullable", inner: { kind: "text" } }, default: null },
  ],
} as const;

export const SPEC_BOUNDS = {
  maxText: 32768,
  maxPath: 255,
  maxPathDepth: 16,
  maxRuntime: 2592000,
  maxMatchWindow: 300,
  maxChallengeWindow: 604800,
  maxTries: 16777216,
  mostVramGib: 1023,
  mostMemoryGib: 16383,
  mostDiskGib: 131071,
  maxSize: 9007199254740991,
  fuelPerSecond: 1000000000,
  maxProofSeconds: 5184000,
  autoKeeperShare: 100,
  defaultDeadline: 86400,
  maxRate: 1208925819614629174706175n,
  maxEscrow: 79228162514264337593543950335n,
  lastYear: "the chain holds times up to the year 36,812",
} as const;

export const SPEC_PATTERNS = {
  name: "^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$",
  decimal: "[0-9]{1,20}(\\.[0-9]{1,20})?(e-?[0-9]{1,3})?",
  image: "(?=.{1,255}$)(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
  digestImage: "(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*@sha256:[0-9a-f]{64}",
  envName: "[A-Za-z_][A-Za-z0-9_]{0,127}",
  secretName: ".*_(KEY|TOKEN)|KEY|TOKEN|.*(SECRET|PASSWORD|PASSWD|CREDENTIAL).*",
  password: "://[^/?# \\t\\r\\n:]*:[^/?# \\t\\r\\n]+@",
  jobId: "0x[0-9a-f]{64}",
  whole: "0|[1-9][0-9]{0,17}",
  gpu: "(?:([0-9]{1,3}) ?x ?)?([A-Za-z][A-Za-z0-9 _.-]{0,40})|([0-9]{1,3})",
  shell: "[|&;<>`$*?()\\n~]",
} as const;

export const NAME_ATTESTERS = "write verify: {attesters: \"attesters.yaml\"}, a file with keys and quorum" as const;

export const RESERVED_PREFIXES = ["NVIDIA_", "AMD_VISIBLE_", "LD_", "HEARTH_"] as const;

export const COMPARED = {
  hash: { needed: [], optional: [] },
  allclose: { needed: ["file"], optional: ["atol", "rtol"] },
  cosine: { needed: ["file", "minimum"], optional: [] },
  metric: { needed: ["atol", "field", "file"], optional: [] },
} as const;

export const RUNTIMES = [
  {
    name: "wasm",
    title: "WASM",
    flag: 1,
    program: "module",
    example: "a path or ipfs://CID",
    metersFuel: true,
    takesGpu: false,
    webassembly: true,
    leastMemory: 1,
    leastMemoryWithGpus: 1,
  },
  {
    name: "docker",
    title: "Docker",
    flag: 2,
    program: "image",
    example: "\"name@sha256:...\"",
    metersFuel: false,
    takesGpu: true,
    webassembly: false,
    leastMemory: 6291456,
    leastMemoryWithGpus: 67108864,
  },
] as const;

export const DEFAULT_RUNTIME = "docker" as const;
