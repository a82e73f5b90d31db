// What a market's Steward may be asked for, its times in seconds, and the fields of a policy (changes.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/changes.py.

export const CHANGE_OP = {
  SET_POLICY: 1,
  SET_MINIMUM_STAKE: 2,
  OFFER_POSTS: 3,
  OFFER_REGISTRATIONS: 4,
  OFFER_COUNCIL: 5,
  SEAT_GUARDIAN: 6,
} as const;

export const ADDRESS_OPS = [3, 4, 5, 6] as const;

export const OFFERS = { 3: "posts", 4: "registrations" } as const;

export const DROPPED = 1 as const;

export const EXECUTED = 2 as const;

export const LIFE = 1209600 as const;

export const POLICY_GRACE = 86400 as const;

export const PAUSE_TIME = 604800 as const;

export const PAUSE_EVERY = 2592000 as const;

export const KINDS = {
  1: "policy",
  2: "minimum-stake",
  3: "governor posts",
  4: "governor registrations",
  5: "council",
  6: "guardian",
} as const;

export const OVER = 10 as const;

export const MAX_LOOKED = 10000 as const;

export const POLICY_FIELDS = [
  ["version", "version"],
  ["fee_bps", "feeBps"],
  ["min_bond_bps", "minBondBps"],
  ["claim_ramp", "claimRamp"],
  ["fresh_delay", "freshDelay"],
  ["fetch_floor", "fetchFloor"],
  ["reserved", "reserved"],
  ["min_price", "minPrice"],
  ["min_keeper_fee", "minKeeperFee"],
  ["probation_price", "probationPrice"],
  ["min_match_window", "minMatchWindow"],
  ["ack_time", "ackTime"],
  ["open_claim_after", "openClaimAfter"],
  ["cancel_notice", "cancelNotice"],
  ["grace_floor", "graceFloor"],
  ["start_fee_seconds", "startFeeSeconds"],
  ["min_challenge_window", "minChallengeWindow"],
  ["key_timeout", "keyTimeout"],
  ["reserved_high", "reservedHigh"],
  ["min_checkpoint", "minCheckpoint"],
] as const;
