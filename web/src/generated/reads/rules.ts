// The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const RULES_READS = [
  {
    selector: "0xae32305b",
    type: "function",
    name: "paused_until",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    selector: "0x0c340a24",
    type: "function",
    name: "governor",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x0ea811ef",
    type: "function",
    name: "offered_governor",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
] as const;
