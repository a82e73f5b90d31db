// The ABI of the views that the page asks for, of one contract (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const STEWARD_READS = [
  {
    type: "function",
    name: "DELAY",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    type: "function",
    name: "council",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    type: "function",
    name: "offered_council",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    type: "function",
    name: "guardian",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    type: "function",
    name: "changes",
    stateMutability: "view",
    inputs: [{ name: "arg0", type: "bytes32" }],
    outputs: [{ name: "", type: "uint256" }],
  },
] as const;
