// How a job ends, and the end that another one waits for (protocol.md "Parents"; hearth/protocol/parents.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/parents.py.

export const CONDITION = { SUCCESS: 1, FAILURE: 2, ALWAYS: 3 } as const;

export const ENDED = { NOT_YET: 0, WELL: 1, OTHERWISE: 2 } as const;

export const PROGRESS = { WAITS: 0, OPENS: 1, FAILS: 2 } as const;
