// The enumerations of the chain's values, and words for them (hearth/protocol/state_labels.py, client/job/gates.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/states.py.

export const STATE = {
  NONE: 0,
  BLOCKED: 1,
  OPEN: 2,
  RUNNING: 3,
  CLOSING: 4,
  SUBMITTED: 5,
  DISPUTED: 6,
  SETTLED: 7,
  REFUNDED: 8,
  CANCELLED: 9,
  EXPIRED: 10,
} as const;

export const OUTCOME = {
  NONE: 0,
  OK: 1,
  EXIT: 2,
  TRAP: 3,
  OUT_OF_MEMORY: 4,
  TIMEOUT: 5,
  BAD_INPUT: 6,
  BAD_KEY: 7,
  IMAGE_MISSING: 8,
} as const;

export const BILLING = { FIXED: 0, FUEL: 1, METERED: 2 } as const;

export const VERDICT = { RELEASE: 0, CONFIRM: 1, REJECT: 2, VOID: 3 } as const;

export const STATUS = { PENDING: 0, ACTIVE: 1, INACTIVE: 2, SLASHED: 3, EXITING: 4, EXITED: 5 } as const;

export const GATE = {
  FITS: 0,
  NOT_LIVE: 1,
  NOT_ACTIVE: 2,
  EXITING: 3,
  QUARANTINED: 4,
  NO_SLOT: 5,
  STAKE_SHORT: 6,
  RUNTIME: 7,
  GPU_COUNT: 8,
  VRAM: 9,
  CORES: 10,
  RAM: 11,
  DISK: 12,
  TIER: 13,
  ZONE: 14,
  PRICE: 15,
  PROBATION: 16,
  SUBMITTER: 17,
  EXCLUDED: 18,
  NO_TIME: 19,
  NOT_OPEN: 20,
} as const;

export const RUNTIME = { WASM: 1, DOCKER: 2, NVIDIA: 4, JUROR: 8, AMD: 16 } as const;

export const TERMS_FLAG = { CONFIDENTIAL: 1, PREEMPTIBLE: 2, NEWCOMERS: 4, PROVEN: 8, KEEP: 16 } as const;

export const UNIT_FLAG = { FUEL: 1, STORE: 2, KEYED: 4, NOTICED: 8, ACCUSED: 16, ARRAY: 32, ACKED: 64, FRESH: 128 } as const;

export const NODE_FLAG = { LAPSED: 1, EXITING: 2, SLASHED: 4 } as const;

export const FLEET_LABELS = {
  1: "silent",
  2: "short of the minimum stake",
  3: "leaving",
  4: "quarantined",
  5: "busy",
  6: "short of free stake for the bond",
  7: "without the runtime",
  8: "with too few GPUs",
  9: "short of VRAM",
  10: "short of cores",
  11: "short of memory",
  12: "short of disk",
  13: "with weaker or other GPUs",
  14: "in other regions",
  15: "above your price",
  16: "on probation",
  17: "your own",
  18: "excluded, since it had the unit last",
  19: "quarantined until too late for the deadline",
  20: "waiting for open claims, since it let the unit pass",
} as const;

export const GATE_SENTENCES = {
  1: "it is silent",
  2: "it is short of the minimum stake",
  3: "it is leaving",
  4: "it is quarantined",
  5: "every slot that it may fill is taken",
  6: "it is short of free stake for the bond",
  7: "it is without the runtime",
  8: "it is with too few GPUs",
  9: "it is short of VRAM",
  10: "it is short of cores",
  11: "it is short of memory",
  12: "it is short of disk",
  13: "it is with weaker or other GPUs",
  14: "the job excludes its region",
  15: "it asks more than the job's ceiling",
  16: "it is on probation: leases of a low price, and few before they are settled",
  17: "its operator posted the job",
  18: "it is excluded, since it had the unit last",
  19: "no attempt can end before the job's deadline",
  20: "the unit is not open",
} as const;

export const PASSING_GATES = [4, 5, 20] as const;

export const STATE_LABELS = {
  1: "waiting for other jobs",
  2: "waiting for a machine",
  3: "running",
  4: "stopping",
  5: "result in",
  6: "under review",
  7: "done",
  8: "refunded",
  9: "cancelled",
  10: "expired",
} as const;

export const JOB_LABELS = [
  "waiting for other jobs",
  "waiting for a machine",
  "running",
  "stopping",
  "result in",
  "under review",
  "done",
  "failed",
  "refunded",
  "cancelled",
  "expired",
] as const;

export const STATUS_LABELS = { 0: "not ready", 1: "live", 2: "silent", 3: "quarantined", 4: "leaving", 5: "left" } as const;

export const END_LABELS = {
  Settled: "done",
  Submitted: "result in",
  Closed: "stopped",
  Reclaimed: "taken away",
  Declined: "given back",
  GaveUp: "gave up",
  Rejected: "rejected",
  Unproven: "unproven",
  Lapsed: "let it pass",
} as const;

export const DONE = "done" as const;

export const FAILED = "failed" as const;
