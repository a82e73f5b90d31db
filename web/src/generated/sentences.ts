// Words for outcomes and for conditions, and bounds of what is said of times (hearth/client/views.py, parents.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/sentences.py.

export const OUTCOME_LABELS = {
  0: "without an outcome",
  1: "ok",
  2: "failed: the program ended with an error or without its outputs",
  3: "failed: the program trapped",
  4: "failed: out of memory",
  5: "failed: out of time or fuel",
  6: "given back: bad input",
  7: "given back: bad key",
  8: "given back: image missing",
} as const;

export const ASKED = { 1: "to end well", 2: "to fail", 3: "to end" } as const;

export const FINISHED = "finished" as const;

export const YEAR_10000 = 253402300800 as const;

export const LONG_SECONDS = 60 as const;
