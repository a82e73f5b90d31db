// The enumerations of the chain's values, and the gates' words (hearth/protocol/types.py, hearth/client/gates.py).
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

export const RUNTIME = { WASM: 1, DOCKER: 2, GPU: 4, JUROR: 8 } as const;

export const TERMS_FLAG = { CONFIDENTIAL: 1, PREEMPTIBLE: 2, NEWCOMERS: 4, PROVEN: 8, KEEP: 16 } as const;

export const UNIT_FLAG = { FUEL: 1, STORE: 2, KEYED: 4, NOTICED: 8, ACCUSED: 16, ARRAY: 32, ACKED: 64, FRESH: 128 } as const;

export const NODE_FLAG = { LAPSED: 1, EXITING: 2, SLASHED: 4 } as const;

export const GATE_WORDS = {
  1: "silent",
  2: "short of the minimum stake",
  3: "leaving",
  4: "in quarantine",
  5: "busy",
  6: "short of free stake for the bond",
  7: "without the runtime",
  8: "with too few GPUs",
  9: "short of VRAM",
  10: "short of cores",
  11: "short of memory",
  12: "short of disk",
  13: "with weaker GPUs",
  14: "in other regions",
  15: "above your price",
  16: "on probation",
  17: "your own",
  18: "excluded, since it had the unit last",
  19: "in quarantine until too late for the deadline",
} as const;

export const PASSING_GATES = [4, 5] as const;
