// The unit of each parameter of new jobs and of nodes (hearth/client/governance/parameters.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/parameters.py.

export const POLICY_UNITS = {
  version: "number",
  feeBps: "share",
  minBondBps: "share",
  claimRamp: "span",
  freshDelay: "span",
  fetchFloor: "span",
  reserved: "number",
  minPrice: "amount",
  minKeeperFee: "amount",
  probationPrice: "amount",
  minMatchWindow: "span",
  ackTime: "span",
  openClaimAfter: "span",
  cancelNotice: "span",
  graceFloor: "span",
  startFeeSeconds: "span",
  minChallengeWindow: "span",
  keyTimeout: "span",
  reservedHigh: "number",
  minCheckpoint: "span",
} as const;

export const NODE_UNITS = {
  dead_after: "span",
  ask_notice: "span",
  unbonding: "span",
  minimum_stake: "amount",
  fee_reference: "amount",
  liveness_fee: "amount",
  ration_bps: "share",
} as const;
