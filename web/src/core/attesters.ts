// The attesters that a job names: keys, and how many of them must sign. Mirrors AttesterSet of hearth/protocol/attest.py, and what
// hearth/client/posting/preflight.py says of them.

import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { slashOf } from "./money";
import { moment } from "./moments";
import { keccakOf } from "./terms";
import type { Policy, Terms } from "./types";
import { type Asset, showAmount } from "./units";

// 1 to 16 distinct addresses in lower case, ascending, and how many of them must sign.
export interface AttesterSet {
  readonly keys: readonly Hex[];
  readonly quorum: number;
}

// Where a job file names its set.
export const FIELD = "verify.attesters";

// What workers name to accept a set: keccak256(abi_encode(address[] keys, uint256 quorum)).
export function digestOf({ keys, quorum }: AttesterSet): Hex {
  const placeOfKeys = 64n;
  return keccakOf([placeOfKeys, BigInt(quorum), BigInt(keys.length), ...keys.map(BigInt)]);
}

// The same as the word of the terms that commits to it.
export const judgeDataOf = (set: AttesterSet): bigint => BigInt(digestOf(set));

// Refuse a job whose attesters nobody has named yet. Throws NO_ATTESTERS.
export function requireSet(set: AttesterSet | undefined, name: string): AttesterSet {
  if (set !== undefined) return set;
  const message = `${FIELD}: ${name} names the attesters, and no set of it is read`;
  throw new HearthError("NO_ATTESTERS", message, "pick that file below the job file", { field: FIELD });
}

// Say who decides whether a result is paid for, by when, and what happens else.
export function judgedWords(terms: Terms, policy: Policy, set: AttesterSet | undefined, asset: Asset): string {
  if (set === undefined) return "nobody can challenge this result, and it is paid for whatever it is: the job names no attesters";
  const slash = showAmount(slashOf(terms, policy), asset);
  return (
    `paid for once ${set.quorum} of the ${set.keys.length} attesters have signed its result (hearth job attest JOB) or you accept ` +
    `it; what nobody has confirmed by ${moment(terms.deadline + terms.challengeWindow)} is refunded, and costs its worker ` +
    `${slash}; workers must accept the set ${digestOf(set)}`
  );
}
