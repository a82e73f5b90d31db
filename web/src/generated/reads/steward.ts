// The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const STEWARD_READS = [
  {
    selector: "0x69b41170",
    type: "function",
    name: "DELAY",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    selector: "0xe2c6d41c",
    type: "function",
    name: "council",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0xbcc56bef",
    type: "function",
    name: "offered_council",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x452a9320",
    type: "function",
    name: "guardian",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x0443efb7",
    type: "function",
    name: "changes",
    stateMutability: "view",
    inputs: [{ name: "arg0", type: "bytes32" }],
    outputs: [{ name: "", type: "uint256" }],
  },
] as const;
