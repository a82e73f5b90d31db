// The contracts of a market in the order of deployment, their code, and what a network file holds (hearth/market/network.py). CODES are bytes and keccak of the runtime code that stands before a contract's immutables.
// Written by `python -m tools.web_tables`: change tools/web_tables/contracts.py.

export const CONTRACTS = ["Escrow", "NodeRegistry", "Rules", "JobRegistry", "Lens", "Attesters", "Steward"] as const;

export const CODES = {
  Escrow: { bytes: 1858, hash: "0x1c95054d832725e702e191975dc1b3ecb435b32ad91402dbf0008314aaf712f1" },
  NodeRegistry: { bytes: 14835, hash: "0x4f9fbf734896c81f2de742a52578a0179694f4b0ccea264b34b168651afe7496" },
  Rules: { bytes: 6557, hash: "0x0c0855fa383e19040900df84ab86ed287d151e660dbf5cff3748ff04f77556df" },
  JobRegistry: { bytes: 22983, hash: "0x4afd6470d8c7fb39f4a902625fc80b012b114ff3a855b532ded105b43857d7d4" },
  Lens: { bytes: 17379, hash: "0x323f005a5b469657b42b41d4e3955752ff1ee1bca377a36a233262ef92d762c7" },
  Attesters: { bytes: 1608, hash: "0x08c89c7e1f1f5aaa32ab24f8814e16a206265bcaea6408c11abfc3ef8db235b0" },
  Steward: { bytes: 2183, hash: "0x7a0e1552de77d7ac0b2ae75a90a4dccc68e0ce022fe465b2154913a9c680601e" },
} as const;

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
