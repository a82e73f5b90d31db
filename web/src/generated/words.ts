// The lane table: what stands at which bit of the chain's words (protocol.md "Words"; hearth/protocol/words.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/words.py.

export const WORDS = {
  needs: {
    bits: 106,
    lanes: [
      { name: "tier", shift: 0, width: 10, kind: "number" },
      { name: "_guard_tier", shift: 10, width: 1, kind: "zero" },
      { name: "gpuCount", shift: 11, width: 6, kind: "number" },
      { name: "_guard_gpu_count", shift: 17, width: 1, kind: "zero" },
      { name: "vramGib", shift: 18, width: 10, kind: "number" },
      { name: "_guard_vram_gib", shift: 28, width: 1, kind: "zero" },
      { name: "cores", shift: 29, width: 10, kind: "number" },
      { name: "_guard_cores", shift: 39, width: 1, kind: "zero" },
      { name: "ramGib", shift: 40, width: 14, kind: "number" },
      { name: "_guard_ram_gib", shift: 54, width: 1, kind: "zero" },
      { name: "diskGib", shift: 55, width: 17, kind: "number" },
      { name: "_guard_disk_gib", shift: 72, width: 1, kind: "zero" },
      { name: "runtimes", shift: 73, width: 12, kind: "number" },
      { name: "zoneMask", shift: 85, width: 16, kind: "number" },
      { name: "home", shift: 101, width: 4, kind: "number" },
      { name: "exact", shift: 105, width: 1, kind: "bool" },
    ],
  },
  offer: {
    bits: 176,
    lanes: [
      { name: "tier", shift: 0, width: 10, kind: "number" },
      { name: "_guard_tier", shift: 10, width: 1, kind: "zero" },
      { name: "gpuCount", shift: 11, width: 6, kind: "number" },
      { name: "_guard_gpu_count", shift: 17, width: 1, kind: "zero" },
      { name: "vramGib", shift: 18, width: 10, kind: "number" },
      { name: "_guard_vram_gib", shift: 28, width: 1, kind: "zero" },
      { name: "cores", shift: 29, width: 10, kind: "number" },
      { name: "_guard_cores", shift: 39, width: 1, kind: "zero" },
      { name: "ramGib", shift: 40, width: 14, kind: "number" },
      { name: "_guard_ram_gib", shift: 54, width: 1, kind: "zero" },
      { name: "diskGib", shift: 55, width: 17, kind: "number" },
      { name: "_guard_disk_gib", shift: 72, width: 1, kind: "zero" },
      { name: "runtimes", shift: 73, width: 12, kind: "number" },
      { name: "zone", shift: 85, width: 4, kind: "number" },
      { name: "slots", shift: 89, width: 6, kind: "number" },
      { name: "pending", shift: 95, width: 1, kind: "bool" },
      { name: "ask", shift: 96, width: 80, kind: "big" },
    ],
  },
  nextAsk: {
    bits: 120,
    lanes: [
      { name: "ask", shift: 0, width: 80, kind: "big" },
      { name: "at", shift: 80, width: 40, kind: "number" },
    ],
  },
  owner: {
    bits: 240,
    lanes: [
      { name: "account", shift: 0, width: 160, kind: "address" },
      { name: "stake", shift: 160, width: 80, kind: "big" },
    ],
  },
  operator: {
    bits: 200,
    lanes: [
      { name: "account", shift: 0, width: 160, kind: "address" },
      { name: "exitAt", shift: 160, width: 40, kind: "number" },
    ],
  },
  hot: {
    bits: 256,
    lanes: [
      { name: "beat", shift: 0, width: 32, kind: "number" },
      { name: "busy", shift: 32, width: 6, kind: "number" },
      { name: "bond", shift: 38, width: 80, kind: "big" },
      { name: "r", shift: 118, width: 26, kind: "number" },
      { name: "s", shift: 144, width: 26, kind: "number" },
      { name: "repTime", shift: 170, width: 32, kind: "number" },
      { name: "cusum", shift: 202, width: 8, kind: "number" },
      { name: "quarantine", shift: 210, width: 32, kind: "number" },
      { name: "trips", shift: 242, width: 4, kind: "number" },
      { name: "status", shift: 246, width: 3, kind: "number" },
      { name: "seasoned", shift: 249, width: 1, kind: "bool" },
      { name: "count", shift: 250, width: 5, kind: "number" },
      { name: "silent", shift: 255, width: 1, kind: "bool" },
    ],
  },
  unit: {
    bits: 249,
    lanes: [
      { name: "state", shift: 0, width: 4, kind: "number" },
      { name: "outcome", shift: 4, width: 4, kind: "number" },
      { name: "node", shift: 8, width: 32, kind: "number" },
      { name: "rate", shift: 40, width: 80, kind: "big" },
      { name: "started", shift: 120, width: 40, kind: "number" },
      { name: "mark", shift: 160, width: 40, kind: "number" },
      { name: "seconds", shift: 200, width: 24, kind: "number" },
      { name: "attempts", shift: 224, width: 4, kind: "number" },
      { name: "tips", shift: 228, width: 4, kind: "number" },
      { name: "lapses", shift: 232, width: 4, kind: "number" },
      { name: "flags", shift: 236, width: 8, kind: "number" },
      { name: "resume", shift: 244, width: 4, kind: "number" },
      { name: "resumable", shift: 248, width: 1, kind: "bool" },
    ],
  },
  header: {
    bits: 148,
    lanes: [
      { name: "state", shift: 0, width: 4, kind: "number" },
      { name: "closed", shift: 4, width: 1, kind: "bool" },
      { name: "waiting", shift: 5, width: 1, kind: "bool" },
      { name: "_gap", shift: 6, width: 2, kind: "zero" },
      { name: "touched", shift: 8, width: 24, kind: "number" },
      { name: "done", shift: 32, width: 24, kind: "number" },
      { name: "failed", shift: 56, width: 24, kind: "number" },
      { name: "opened", shift: 80, width: 40, kind: "number" },
      { name: "leases", shift: 120, width: 24, kind: "number" },
      { name: "quorum", shift: 144, width: 4, kind: "number" },
    ],
  },
  best: {
    bits: 244,
    lanes: [
      { name: "payee", shift: 0, width: 160, kind: "address" },
      { name: "node", shift: 160, width: 32, kind: "number" },
      { name: "key", shift: 192, width: 48, kind: "number" },
      { name: "extensions", shift: 240, width: 4, kind: "number" },
    ],
  },
  accused: {
    bits: 72,
    lanes: [
      { name: "node", shift: 0, width: 32, kind: "number" },
      { name: "at", shift: 32, width: 40, kind: "number" },
    ],
  },
  key: {
    bits: 48,
    lanes: [
      { name: "lot", shift: 0, width: 40, kind: "number" },
      { name: "bucket", shift: 40, width: 8, kind: "number" },
    ],
  },
  kept: {
    bits: 168,
    lanes: [
      { name: "seconds", shift: 0, width: 24, kind: "number" },
      { name: "rate", shift: 24, width: 80, kind: "big" },
      { name: "node", shift: 104, width: 32, kind: "number" },
      { name: "resume", shift: 136, width: 4, kind: "number" },
      { name: "before", shift: 140, width: 28, kind: "number" },
    ],
  },
  posted: {
    bits: 128,
    lanes: [
      { name: "block", shift: 0, width: 64, kind: "big" },
      { name: "count", shift: 64, width: 64, kind: "big" },
    ],
  },
  share: {
    bits: 256,
    lanes: [
      { name: "account", shift: 0, width: 160, kind: "address" },
      { name: "amount", shift: 160, width: 96, kind: "big" },
    ],
  },
  book: {
    bits: 256,
    lanes: [
      { name: "amount", shift: 0, width: 255, kind: "big" },
      { name: "used", shift: 255, width: 1, kind: "bool" },
    ],
  },
  fields: {
    bits: 28,
    lanes: [
      { name: "outcome", shift: 0, width: 4, kind: "number" },
      { name: "seconds", shift: 4, width: 24, kind: "number" },
    ],
  },
  submitter: {
    bits: 256,
    lanes: [
      { name: "account", shift: 0, width: 160, kind: "address" },
      { name: "salt", shift: 160, width: 96, kind: "big" },
    ],
  },
  money: {
    bits: 160,
    lanes: [
      { name: "ceiling", shift: 0, width: 80, kind: "big" },
      { name: "keeperFee", shift: 80, width: 80, kind: "big" },
    ],
  },
  limits: {
    bits: 212,
    lanes: [
      { name: "maxSeconds", shift: 0, width: 24, kind: "number" },
      { name: "deadline", shift: 24, width: 40, kind: "number" },
      { name: "units", shift: 64, width: 24, kind: "number" },
      { name: "chunk", shift: 88, width: 16, kind: "number" },
      { name: "replicas", shift: 104, width: 4, kind: "number" },
      { name: "quorum", shift: 108, width: 4, kind: "number" },
      { name: "matchWindow", shift: 112, width: 12, kind: "number" },
      { name: "challengeWindow", shift: 124, width: 24, kind: "number" },
      { name: "checkpointEvery", shift: 148, width: 24, kind: "number" },
      { name: "maxAttempts", shift: 172, width: 4, kind: "number" },
      { name: "billing", shift: 176, width: 4, kind: "number" },
      { name: "flags", shift: 180, width: 8, kind: "number" },
      { name: "bondBps", shift: 188, width: 24, kind: "number" },
    ],
  },
  judge: { bits: 160, lanes: [{ name: "account", shift: 0, width: 160, kind: "address" }] },
  policy: {
    bits: 256,
    lanes: [
      { name: "version", shift: 0, width: 8, kind: "number" },
      { name: "feeBps", shift: 8, width: 10, kind: "number" },
      { name: "minBondBps", shift: 18, width: 16, kind: "number" },
      { name: "claimRamp", shift: 34, width: 12, kind: "number" },
      { name: "freshDelay", shift: 46, width: 16, kind: "number" },
      { name: "fetchFloor", shift: 62, width: 12, kind: "number" },
      { name: "reserved", shift: 74, width: 8, kind: "number" },
      { name: "minPrice", shift: 82, width: 15, kind: "code" },
      { name: "minKeeperFee", shift: 97, width: 15, kind: "code" },
      { name: "probationPrice", shift: 112, width: 15, kind: "code" },
      { name: "minMatchWindow", shift: 127, width: 9, kind: "number" },
      { name: "ackTime", shift: 136, width: 10, kind: "number" },
      { name: "openClaimAfter", shift: 146, width: 12, kind: "number" },
      { name: "cancelNotice", shift: 158, width: 12, kind: "number" },
      { name: "graceFloor", shift: 170, width: 12, kind: "number" },
      { name: "startFeeSeconds", shift: 182, width: 12, kind: "number" },
      { name: "minChallengeWindow", shift: 194, width: 20, kind: "number" },
      { name: "keyTimeout", shift: 214, width: 16, kind: "number" },
      { name: "reservedHigh", shift: 230, width: 16, kind: "number" },
      { name: "minCheckpoint", shift: 246, width: 10, kind: "number" },
    ],
  },
  amount: {
    bits: 15,
    lanes: [
      { name: "mantissa", shift: 0, width: 10, kind: "big" },
      { name: "exponent", shift: 10, width: 5, kind: "number" },
    ],
  },
  totals: {
    bits: 256,
    lanes: [
      { name: "nextId", shift: 0, width: 32, kind: "number" },
      { name: "hour", shift: 32, width: 32, kind: "number" },
      { name: "burnt", shift: 64, width: 96, kind: "big" },
      { name: "total", shift: 160, width: 96, kind: "big" },
    ],
  },
} as const;

export const HEADER_STATE = 15 as const;
