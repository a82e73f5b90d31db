// The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ).
// Written by `python -m tools.web_tables`: change tools/web_tables/reads.py.

export const LENS_READS = [
  {
    selector: "0x16dbf7db",
    type: "function",
    name: "nodes",
    stateMutability: "view",
    inputs: [{ name: "first", type: "uint256" }, { name: "count", type: "uint256" }],
    outputs: [
      {
        name: "",
        type: "tuple[]",
        components: [
          { name: "owner", type: "address" },
          { name: "operator", type: "address" },
          { name: "stake", type: "uint256" },
          { name: "offer", type: "uint256" },
          { name: "hot", type: "uint256" },
          { name: "next_ask", type: "uint256" },
          { name: "exit_at", type: "uint256" },
        ],
      },
    ],
  },
  {
    selector: "0x2a10eee2",
    type: "function",
    name: "gates",
    stateMutability: "view",
    inputs: [
      {
        name: "ask",
        type: "tuple",
        components: [
          { name: "needs", type: "uint256" },
          { name: "ceiling", type: "uint256" },
          { name: "bond", type: "uint256" },
          { name: "probation", type: "uint256" },
        ],
      },
      { name: "first", type: "uint256" },
      { name: "count", type: "uint256" },
    ],
    outputs: [{ name: "", type: "uint256[]" }],
  },
  {
    selector: "0x3a2056f1",
    type: "function",
    name: "overview",
    stateMutability: "view",
    inputs: [],
    outputs: [
      {
        name: "",
        type: "tuple",
        components: [
          { name: "chain_id", type: "uint256" },
          { name: "number", type: "uint256" },
          { name: "time", type: "uint256" },
          { name: "asset", type: "address" },
          { name: "held", type: "uint256" },
          { name: "tracked", type: "uint256" },
          { name: "posted", type: "uint256" },
          { name: "totals", type: "uint256" },
          { name: "policy", type: "uint256" },
          { name: "previous_policy", type: "uint256" },
          { name: "previous_until", type: "uint256" },
          { name: "posts_paused_until", type: "uint256" },
          { name: "registrations_paused_until", type: "uint256" },
          { name: "minimum_stake", type: "uint256" },
        ],
      },
    ],
  },
  {
    selector: "0x6c894554",
    type: "function",
    name: "jobs",
    stateMutability: "view",
    inputs: [{ name: "job_ids", type: "bytes32[]" }],
    outputs: [{ name: "", type: "uint256[]" }],
  },
  {
    selector: "0x710bb4eb",
    type: "function",
    name: "locks",
    stateMutability: "view",
    inputs: [{ name: "controller", type: "address" }, { name: "keys", type: "bytes32[]" }],
    outputs: [{ name: "", type: "uint256[]" }],
  },
  {
    selector: "0xbe500fb9",
    type: "function",
    name: "credits",
    stateMutability: "view",
    inputs: [{ name: "accounts", type: "address[]" }],
    outputs: [{ name: "", type: "uint256[]" }],
  },
  {
    selector: "0xb361ef31",
    type: "function",
    name: "status",
    stateMutability: "view",
    inputs: [
      {
        name: "places",
        type: "tuple[]",
        components: [{ name: "job_id", type: "bytes32" }, { name: "index", type: "uint256" }],
      },
    ],
    outputs: [
      {
        name: "",
        type: "tuple[]",
        components: [
          { name: "job", type: "uint256" },
          { name: "word", type: "uint256" },
          { name: "second", type: "uint256" },
          { name: "accused", type: "uint256" },
          { name: "kept", type: "uint256[]" },
        ],
      },
    ],
  },
] as const;
