// The contracts of a market in the order of deployment, and what a network file holds (hearth/market/network.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/contracts.py.

export const CONTRACTS = ["Escrow", "NodeRegistry", "Rules", "JobRegistry", "Lens", "Attesters", "Steward"] as const;

export const NODE_PARAMETERS = [
  "dead_after",
  "ask_notice",
  "unbonding",
  "minimum_stake",
  "fee_reference",
  "liveness_fee",
  "ration_bps",
] as const;

export const PROTOCOL_VERSION = 1 as const;
