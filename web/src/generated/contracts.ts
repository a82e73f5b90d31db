// The contracts of a market in the order of deployment, their code, and what a network file holds (hearth/market/network.py). CODES are bytes and keccak of the runtime code that stands before a contract's immutables.
// Written by `python -m tools.web_tables`: change tools/web_tables/contracts.py.

export const CONTRACTS = ["Escrow", "NodeRegistry", "Rules", "JobRegistry", "Lens", "Attesters", "Steward"] as const;

export const CODES = {
  Escrow: { bytes: 1858, hash: "0x1c95054d832725e702e191975dc1b3ecb435b32ad91402dbf0008314aaf712f1" },
  NodeRegistry: { bytes: 14748, hash: "0xc44c19d691f0a6e1abb80cf54510ab689255f6c2ac1b94593098c1d5824a45de" },
  Rules: { bytes: 6555, hash: "0x35ad75e28a0e8a33b84f1523897c3609d17a7bf4f6dd444c38d7f18225ea380e" },
  JobRegistry: { bytes: 22983, hash: "0x4afd6470d8c7fb39f4a902625fc80b012b114ff3a855b532ded105b43857d7d4" },
  Lens: { bytes: 17379, hash: "0xed75745c56e6feb36951fce4c5f1d0d6c8684c28aee9a53094947be1524dcaf6" },
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
