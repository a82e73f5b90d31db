// Upkeep as Lens takes it: its kinds by their numbers (hearth/market/calls.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/upkeep.py.

export const UPKEEP = { SETTLE: 1, CLOSE: 2, RECLAIM: 3, EXPIRE: 4, LIVENESS: 5 } as const;
