// The ABI of the calls that wallets sign and the page decodes, of one contract (tools/web_tables/_abi.py:SIGNED).
// Written by `python -m tools.web_tables`: change tools/web_tables/calls.py.

export const STEWARD_CALLS = [
  {
    type: "function",
    name: "queue",
    stateMutability: "nonpayable",
    inputs: [
      { name: "op", type: "uint256" },
      { name: "word", type: "uint256" },
      { name: "salt", type: "uint256" },
    ],
    outputs: [{ name: "", type: "bytes32" }],
  },
  {
    type: "function",
    name: "drop",
    stateMutability: "nonpayable",
    inputs: [{ name: "change", type: "bytes32" }],
    outputs: [],
  },
  {
    type: "function",
    name: "drop_previous_policy",
    stateMutability: "nonpayable",
    inputs: [],
    outputs: [],
  },
  {
    type: "function",
    name: "pause",
    stateMutability: "nonpayable",
    inputs: [{ name: "posts", type: "bool" }, { name: "registrations", type: "bool" }],
    outputs: [],
  },
  {
    type: "function",
    name: "accept_council",
    stateMutability: "nonpayable",
    inputs: [],
    outputs: [],
  },
  {
    type: "function",
    name: "execute",
    stateMutability: "nonpayable",
    inputs: [
      { name: "op", type: "uint256" },
      { name: "word", type: "uint256" },
      { name: "salt", type: "uint256" },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "accept_governor",
    stateMutability: "nonpayable",
    inputs: [{ name: "posts", type: "bool" }, { name: "registrations", type: "bool" }],
    outputs: [],
  },
] as const;
