// What posting takes beside the job's money, and words for parents (hearth/client, hearth/chain/fees.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/posting.py.

export const POST_GAS = 160000n as const;

export const APPROVE_GAS = 70000n as const;

export const WITHDRAW_GAS = 100000n as const;

export const CANCEL_GAS = 150000n as const;

export const GOV_GAS = 200000n as const;

export const LEAST_TIP = 1000000n as const;

export const MOST_TIP = 1000000000n as const;

export const ASKED = { 1: "to end well", 2: "to fail", 3: "to end" } as const;

export const MAX_INPUT_ENTRIES = 100000 as const;
