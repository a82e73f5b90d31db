// Bounds and constants of the arithmetic: hearth/protocol/types.py, formulas.py, reputation.py, gas.py, units.py.
// Written by `python -m tools.web_tables`: change tools/web_tables/bounds.py.

export const ZERO_ADDRESS = "0x0000000000000000000000000000000000000000" as const;

export const ZERO_HASH = "0x0000000000000000000000000000000000000000000000000000000000000000" as const;

export const SENTINEL = 115792089237316195423570985008687907853269984665640564039457584007913129639935n as const;

export const LOCAL_CHAIN_ID = 31337 as const;

export const MAX_PARENTS = 15 as const;

export const RATE_SCALE = 1000000n as const;

export const BPS = 10000n as const;

export const MAX_LAPSES = 2 as const;

export const BUCKET = 500000 as const;

export const SLASH_DIVISOR = 10n as const;

export const MAX_RESUMED = 8 as const;

export const STALE_SECONDS = 2592000 as const;

export const MAX_FETCH = 3600 as const;

export const MAX_UINT = 115792089237316195423570985008687907853269984665640564039457584007913129639935n as const;

export const ZONE_COUNT = 16 as const;

export const ANY_ZONE = 65535 as const;

export const SHOWN_DIGITS = 6 as const;

export const MIB = 1048576 as const;

export const GIB = 1073741824 as const;

export const CHECKPOINT_SHARE = [8n, 10n] as const;

export const REPUTATION = {
  ONE: 1048576n,
  MEMORY: 52428800n,
  HALF_LIFE: 2592000n,
  STEP: 10125n,
  SEASONED_AT: 5242880n,
  BREAKER: 192n,
  AFTER_TRIP: 128n,
  FAILURE: 64n,
  SUCCESS: 16n,
  VERDICT: 10485760n,
  SUCCESSES_A_TRIP: 32n,
  ACCUSATION_TIME: 3600n,
  QUARANTINE_BASE: 3600n,
  QUARANTINE_MAX: 604800n,
} as const;

export const GAS = {
  BEAT_GAS: 27200,
  PROPOSE_GAS: 77000,
  PROPOSE_NEXT_GAS: 103000,
  IMPROVE_GAS: 60000,
  ACK_GAS: 75000,
  CLAIM_GAS: 78000,
  SUBMIT_GAS: 44000,
  SUBMIT_JUDGED_GAS: 67000,
  CHECKPOINT_GAS: 58000,
  SETTLE_GAS: 104000,
  PAID_CHECKPOINT_GAS: 36500,
  FINISH_GAS: 102000,
  FINISH_CLAIMS_GAS: 135000,
  LEASE_GAS: 226000,
  SETTLE_BATCH_GAS: 41000,
  SETTLE_ITEM_GAS: 55000,
  MAX_SETTLE: 64,
  CLOSE_GAS: 89000,
  RECLAIM_GAS: 114000,
  EXPIRE_GAS: 60500,
  UNLOCK_GAS: 58500,
  UNLOCK_PARENT_GAS: 3250,
  LIVENESS_BATCH_GAS: 35000,
  LIVENESS_ITEM_GAS: 25000,
  WITHDRAW_GAS: 36600,
  TOP_UP_GAS: 70000,
} as const;

export const SECONDS_OF = { d: 86400, h: 3600, m: 60, s: 1 } as const;

export const RATE_SECONDS_OF = { h: 3600, min: 60, s: 1, d: 86400 } as const;

export const BYTES_OF = {
  B: 1n,
  KiB: 1024n,
  MiB: 1048576n,
  GiB: 1073741824n,
  TiB: 1099511627776n,
  Ki: 1024n,
  Mi: 1048576n,
  Gi: 1073741824n,
  Ti: 1099511627776n,
} as const;

export const ETHER_DECIMALS = { wei: 0, gwei: 9, ether: 18 } as const;
