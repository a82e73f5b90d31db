// The ABI of the calls that wallets sign and the page decodes, of one contract (tools/web_tables/_abi.py:SIGNED).
// Written by `python -m tools.web_tables`: change tools/web_tables/calls.py.

export const TOKEN_CALLS = [
  {
    type: "function",
    name: "approve",
    stateMutability: "nonpayable",
    inputs: [{ name: "spender", type: "address" }, { name: "amount", type: "uint256" }],
    outputs: [{ name: "", type: "bool" }],
  },
] as const;
