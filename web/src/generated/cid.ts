// What a CID may be made of, and the bases that its text may be in (SPEC, "Job spec"; hearth/storage/cid.py). The bases are those of libipld but base256emoji, whose table would weigh more than all others together and which no tool writes unasked; and the identity base, which has no alphabet. `bits` is how many bits a character holds, 0 where the whole text is one number.
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

export const BASES = [
  { code: "0", bits: 1, alphabet: "01", padded: false, any_case: false },
  { code: "7", bits: 3, alphabet: "01234567", padded: false, any_case: false },
  { code: "f", bits: 4, alphabet: "0123456789abcdef", padded: false, any_case: true },
  { code: "F", bits: 4, alphabet: "0123456789ABCDEF", padded: false, any_case: true },
  {
    code: "v",
    bits: 5,
    alphabet: "0123456789abcdefghijklmnopqrstuv",
    padded: false,
    any_case: true,
  },
  {
    code: "V",
    bits: 5,
    alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUV",
    padded: false,
    any_case: true,
  },
  { code: "t", bits: 5, alphabet: "0123456789abcdefghijklmnopqrstuv", padded: true, any_case: true },
  { code: "T", bits: 5, alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUV", padded: true, any_case: true },
  {
    code: "b",
    bits: 5,
    alphabet: "abcdefghijklmnopqrstuvwxyz234567",
    padded: false,
    any_case: true,
  },
  {
    code: "B",
    bits: 5,
    alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    padded: false,
    any_case: true,
  },
  { code: "c", bits: 5, alphabet: "abcdefghijklmnopqrstuvwxyz234567", padded: true, any_case: true },
  { code: "C", bits: 5, alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", padded: true, any_case: true },
  {
    code: "h",
    bits: 5,
    alphabet: "ybndrfg8ejkmcpqxot1uwisza345h769",
    padded: false,
    any_case: false,
  },
  {
    code: "m",
    bits: 6,
    alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    padded: false,
    any_case: false,
  },
  {
    code: "M",
    bits: 6,
    alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    padded: true,
    any_case: false,
  },
  {
    code: "u",
    bits: 6,
    alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    padded: false,
    any_case: false,
  },
  {
    code: "U",
    bits: 6,
    alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    padded: true,
    any_case: false,
  },
  { code: "9", bits: 0, alphabet: "0123456789", padded: false, any_case: false },
  {
    code: "k",
    bits: 0,
    alphabet: "0123456789abcdefghijklmnopqrstuvwxyz",
    padded: false,
    any_case: true,
  },
  {
    code: "K",
    bits: 0,
    alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    padded: false,
    any_case: true,
  },
  {
    code: "Z",
    bits: 0,
    alphabet: "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ",
    padded: false,
    any_case: false,
  },
  {
    code: "z",
    bits: 0,
    alphabet: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    padded: false,
    any_case: false,
  },
] as const;
