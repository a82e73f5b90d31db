// The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const TOKEN_READS = [
  {
    selector: "0x70a08231",
    type: "function",
    name: "balanceOf",
    stateMutability: "view",
    inputs: [{ name: "owner", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    selector: "0xdd62ed3e",
    type: "function",
    name: "allowance",
    stateMutability: "view",
    inputs: [{ name: "owner", type: "address" }, { name: "spender", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    selector: "0x313ce567",
    type: "function",
    name: "decimals",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "uint8" }],
  },
] as const;
