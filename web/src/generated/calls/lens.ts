// The ABI of the calls that wallets sign and the page decodes, of one contract (tools/web_tables/_abi.py:SIGNED).
// Written by `python -m tools.web_tables`: change tools/web_tables/calls.py.

export const LENS_CALLS = [
  {
    type: "function",
    name: "performUpkeep",
    stateMutability: "nonpayable",
    inputs: [
      {
        name: "candidates",
        type: "tuple[]",
        components: [
          { name: "op", type: "uint256" },
          {
            name: "terms",
            type: "tuple",
            components: [
              { name: "submitter", type: "uint256" },
              { name: "spec", type: "bytes32" },
              { name: "needs", type: "uint256" },
              { name: "money", type: "uint256" },
              { name: "limits", type: "uint256" },
              { name: "judge_data", type: "uint256" },
              { name: "judge", type: "uint256" },
              { name: "policy", type: "uint256" },
              { name: "parents_hash", type: "bytes32" },
            ],
          },
          { name: "index", type: "uint256" },
          { name: "count", type: "uint256" },
        ],
      },
      { name: "payee", type: "address" },
    ],
    outputs: [],
  },
] as const;
