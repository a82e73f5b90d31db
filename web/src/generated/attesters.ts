// What bounds a set of attesters and its file (protocol.md "Attesters"; hearth/client/judges/attester_files.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/attesters.py.

export const MAX_KEYS = 16 as const;

export const MAX_SET_BYTES = 16384 as const;

export const SET_HINT = "write {keys: [\"0x...\", \"0x...\"], quorum: 2}; docs/JOB.md" as const;
