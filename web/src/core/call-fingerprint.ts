// What two people at two machines compare of a call: keccak256 of its data, and four words of the job that it is about. Mirrors
// `Read.digest` and `four_words` of hearth/client/explain/calldata.py; `hearth job explain` prints both.
//
// It reads nothing but the data that a wallet is given. It is loaded when something is signed: the list of words is long.

import { decodeFunctionData, keccak256 } from "viem/utils";

import { JOB_REGISTRY_CALLS } from "../generated/calls/job-registry";
import { WORDLIST } from "../generated/wordlist";
import type { Hex } from "./bytes";
import type { Network } from "./network";
import { wordsOf } from "./prepared";
import { jobIdOfWords } from "./terms";

export interface CallFingerprint {
  readonly hash: Hex;
  // Undefined for a call that is about no job.
  readonly job: Hex | undefined;
  readonly words: string | undefined;
}

// Whose first argument is the terms of one job.
const OF_A_JOB: ReadonlySet<string> = new Set(JOB_REGISTRY_CALLS.flatMap(({ name, inputs: [first] }) => (first.name === "terms" ? [name] : [])));
const BITS = 11n;
const MASK = (1n << BITS) - 1n;
const PLACES = [3n, 2n, 1n, 0n];

export function fingerprintOf({ to, data }: { readonly to: Hex; readonly data: Hex }, network: Network): CallFingerprint {
  const job = to === network.contracts.JobRegistry ? jobIn(data, network) : undefined;
  return { hash: keccak256(data), job, words: job === undefined ? undefined : fourWords(job) };
}

// The last 44 bits of an id as words. They tell a mistake, and not a forger.
export function fourWords(job: Hex): string {
  const listed = WORDLIST.split(" ");
  const number = BigInt(job);
  return PLACES.map((place) => listed[Number((number >> (BITS * place)) & MASK)]).join(" ");
}

function jobIn(data: Hex, { jobChainId, contracts }: Network): Hex | undefined {
  try {
    const { functionName, args } = decodeFunctionData({ abi: JOB_REGISTRY_CALLS, data });
    return OF_A_JOB.has(functionName) ? jobIdOfWords(jobChainId, contracts.JobRegistry, wordsOf(args?.[0])) : undefined;
  } catch {
    // Whatever it is, it is about no job that can be named.
    return undefined;
  }
}
