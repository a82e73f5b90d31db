// The ABI of the calls that wallets sign and the page decodes, of one contract (tools/web_tables/_abi.py:SIGNED).
// Written by `python -m tools.web_tables`: change tools/web_tables/calls.py.

export const NODE_REGISTRY_CALLS = [
  {
    type: "function",
    name: "register",
    stateMutability: "payable",
    inputs: [
      { name: "operator", type: "address" },
      { name: "offer", type: "uint256" },
      { name: "manifest", type: "bytes32" },
      { name: "stake", type: "uint256" },
    ],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    type: "function",
    name: "add_stake",
    stateMutability: "payable",
    inputs: [
      { name: "node", type: "uint256" },
      { name: "owner", type: "address" },
      { name: "amount", type: "uint256" },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "update_offer",
    stateMutability: "nonpayable",
    inputs: [
      { name: "node", type: "uint256" },
      { name: "offer", type: "uint256" },
      { name: "manifest", type: "bytes32" },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "set_ask",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }, { name: "ask", type: "uint256" }],
    outputs: [],
  },
  {
    type: "function",
    name: "set_operator",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }, { name: "operator", type: "address" }],
    outputs: [],
  },
  {
    type: "function",
    name: "offer_owner",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }, { name: "owner", type: "address" }],
    outputs: [],
  },
  {
    type: "function",
    name: "accept_owner",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }],
    outputs: [],
  },
  {
    type: "function",
    name: "exit_start",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }],
    outputs: [],
  },
  {
    type: "function",
    name: "exit_cancel",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }],
    outputs: [],
  },
  {
    type: "function",
    name: "exit_finish",
    stateMutability: "nonpayable",
    inputs: [{ name: "node", type: "uint256" }],
    outputs: [],
  },
  {
    type: "function",
    name: "check_liveness",
    stateMutability: "nonpayable",
    inputs: [{ name: "nodes", type: "uint256[]" }, { name: "payee", type: "address" }],
    outputs: [],
  },
] as const;
