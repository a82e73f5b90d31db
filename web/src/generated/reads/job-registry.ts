// The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const JOB_REGISTRY_READS = [
  {
    selector: "0xfe358169",
    type: "function",
    name: "job_id_of",
    stateMutability: "view",
    inputs: [
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
    ],
    outputs: [{ name: "", type: "bytes32" }],
  },
  {
    selector: "0xe681c4aa",
    type: "function",
    name: "ESCROW",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x863191b8",
    type: "function",
    name: "NODES",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x09148a24",
    type: "function",
    name: "RULES",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
  {
    selector: "0x4800d97f",
    type: "function",
    name: "ASSET",
    stateMutability: "view",
    inputs: [],
    outputs: [{ name: "", type: "address" }],
  },
] as const;
