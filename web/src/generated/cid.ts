// What a CID may be made of (protocol.md "Job spec"; hearth/storage/cid.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/cid.py.

export const RAW = 85 as const;

export const DAG_PB = 112 as const;

export const DAG_CBOR = 113 as const;

export const CODECS = { 85: "raw", 112: "dag-pb", 113: "dag-cbor" } as const;

export const IDENTITY = 0 as const;

export const SHA2_256 = 18 as const;

export const BLAKE3 = 30 as const;

export const HASHES = { 0: "identity", 18: "sha2-256", 30: "blake3" } as const;

export const DIGEST_BYTES = 32 as const;

export const MAX_INLINE_BYTES = 128 as const;

export const MAX_BLOCK_BYTES = 2097152 as const;

export const MAX_TEXT = 256 as const;
