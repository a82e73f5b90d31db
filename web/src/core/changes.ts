// What a market's Steward knows of a change: an operation, its word and a salt. Mirrors hearth/market/changes.py.

import { ADDRESS_OPS, CHANGE_OP, OFFERS } from "../generated/changes";
import { type Hex, hexAddress, hexNumber, hexWord } from "./bytes";
import { HearthError } from "./errors";
import { keccakOf } from "./terms";
import { type Asset, showAmount } from "./units";

export type ChangeOp = (typeof CHANGE_OP)[keyof typeof CHANGE_OP];

// One change: `word` is the policy, the stake in base units, or the address; another `salt` makes another one.
export interface Change {
  readonly op: ChangeOp;
  readonly word: bigint;
  readonly salt: bigint;
}

const OPS: ReadonlySet<bigint> = new Set(Object.values(CHANGE_OP).map(BigInt));
const WITH_ADDRESS: ReadonlySet<number> = new Set(ADDRESS_OPS);

// Return a change that a Steward would queue. Throws BAD_CHANGE for another operation, and for a word that is no
// address.
export function changeOf(op: bigint, word: bigint, salt: bigint): Change {
  if (!OPS.has(op)) throw new HearthError("BAD_CHANGE", `${op} is not a valid ChangeOp`);
  if (word < 0n || word >> 256n !== 0n || salt < 0n || salt >> 256n !== 0n) {
    throw new HearthError("BAD_CHANGE", "a word or a salt has more than 256 bits");
  }
  const change = { op: Number(op) as ChangeOp, word, salt };
  if (namesAnAddress(change.op) && word >> 160n !== 0n) {
    throw new HearthError("BAD_CHANGE", `${hexNumber(word)} is no address`);
  }
  return change;
}

// Say whether the word of such a change is an address.
const namesAnAddress = (op: ChangeOp): boolean => WITH_ADDRESS.has(op);

// Return what the Steward knows a change by.
export const changeId = (change: Change): Hex => keccakOf([BigInt(change.op), change.word, change.salt]);

// Return the address that a change's word is.
const changeAddress = (change: Change): Hex => hexAddress(change.word);

// Return what a change does, in one line that needs nothing else; amounts are of the market's asset.
export function changeInWords(change: Change, asset: Asset): string {
  const address = change.word === 0n ? "nobody" : changeAddress(change);
  switch (change.op) {
    case CHANGE_OP.SET_POLICY:
      return `policy ${hexWord(change.word)} for new jobs`;
    case CHANGE_OP.SET_MINIMUM_STAKE:
      return `new nodes stake at least ${showAmount(change.word, asset)}`;
    case CHANGE_OP.OFFER_POSTS:
    case CHANGE_OP.OFFER_REGISTRATIONS:
      return `the governor's rights over ${OFFERS[change.op]} are offered to ${address}`;
    case CHANGE_OP.OFFER_COUNCIL:
      return `the council's seat is offered to ${address}`;
    case CHANGE_OP.SEAT_GUARDIAN:
      return `${address} is the guardian`;
  }
}
