// The ids and keys that follow from a job's terms. Mirrors the section "ids" of hearth/protocol/formulas.py.

import { keccak256 } from "viem/utils";

import { ZERO_HASH } from "../generated/bounds";
import { concat, fromHex, type Hex, hexWord } from "./bytes";
import { HearthError } from "./errors";
import type { Terms } from "./types";
import { packTerms, type TermsWords } from "./words";

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;

// Terms without any: their id tells with which chain id ids are made, and they stand where a call takes terms and goes by none.
export const NO_TERMS: TermsWords = [0n, ZERO_HASH, 0n, 0n, 0n, 0n, 0n, 0n, ZERO_HASH];

// Return keccak256(abi_encode(chain_id, registry, terms)), the id of a job; `chainId` is that at deployment.
export function jobId(chainId: bigint, registry: string, terms: Terms): Hex {
  return jobIdOfWords(chainId, registry, packTerms(terms));
}

// Return the id of a job from its nine packed words. Throws BAD_WORD for what is no word, hash or address.
export function jobIdOfWords(chainId: bigint, registry: string, words: TermsWords): Hex {
  return keccakOf([chainId, addressWord(registry), ...words]);
}

// Return the storage key of a lease: the job's own id for a one-lease job, else keccak256(job id, index).
export function unitKey(job: Hex, index: number, leases: number): Hex {
  return leases === 1 ? job : keccakOf([job, BigInt(index)]);
}

// Return what Escrow keeps the money of all of a submitter's jobs under: the address, to 32 bytes.
export const lockKey = (submitter: string): Hex => wordHex(addressWord(submitter));

// Return keccak256 of the ABI encoding of static values, numbers as uint256 and hex as bytes32: one word each.
export function keccakOf(values: readonly (bigint | Hex)[]): Hex {
  return keccak256(concat(values.map((value) => fromHex(wordHex(value)))));
}

function wordHex(value: bigint | Hex): Hex {
  if (typeof value === "string") {
    if (!HASH.test(value)) throw new HearthError("BAD_WORD", "this is not 32 bytes");
    return value.toLowerCase() as Hex;
  }
  if (value < 0n || value >= 1n << 256n) throw new HearthError("BAD_WORD", "this does not fit in 256 bits");
  return hexWord(value);
}

function addressWord(address: string): bigint {
  if (!ADDRESS.test(address)) throw new HearthError("BAD_WORD", "this is no address");
  return BigInt(address);
}
