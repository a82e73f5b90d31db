// The reader's own names for addresses: kept in this browser, and shown beside the whole address, never in its place.

import type { Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import { addressOf } from "../core/recipient";
import { shownLine } from "../core/text";
import { recallOwn, rememberOwn } from "./own-storage";

const KEY = "addresses";
export const MOST_ADDRESSES = 100;
export const LONGEST_NAME = 40;

export interface Labelled {
  readonly address: Hex;
  readonly name: string;
}

type Here = Pick<Location, "pathname">;

let read: { readonly text: string | null; readonly found: readonly Labelled[] } = { text: null, found: [] };

// The addresses that have a name, as they were named; none at an origin that is shared with other sites.
export function labelled(here: Here): readonly Labelled[] {
  const text = recallOwn(KEY, here);
  if (text !== read.text) read = { text, found: text === null ? [] : parsed(text) };
  return read.found;
}

export const labelOf = (address: Hex, here: Here): string | undefined => labelled(here).find((one) => one.address === address)?.name;

// Name an address, anew where it has a name. Throws BAD_NAME for an empty or a long one, and where there are too many.
export function label(address: Hex, name: string, here: Here): void {
  const line = shownLine(name.trim(), LONGEST_NAME);
  if (line === "" || name.trim().length > LONGEST_NAME) {
    throw new HearthError("BAD_NAME", `a name has 1 to ${LONGEST_NAME} characters`, "write another name");
  }
  const others = labelled(here).filter((one) => one.address !== address);
  if (others.length >= MOST_ADDRESSES) throw new HearthError("BAD_NAME", `${MOST_ADDRESSES} addresses have names already`, "forget one of them");
  keep([...others, { address, name: line }], here);
}

export const unlabel = (address: Hex, here: Here): void => keep(labelled(here).filter((one) => one.address !== address), here);

function keep(all: readonly Labelled[], here: Here): void {
  rememberOwn(KEY, all.length === 0 ? null : JSON.stringify(all.map(({ address, name }) => [address, name])), here);
}

// What is malformed is left out: another version of the page may have written it.
function parsed(text: string): readonly Labelled[] {
  try {
    const all: unknown = JSON.parse(text);
    return (Array.isArray(all) ? all : []).slice(0, MOST_ADDRESSES).flatMap(one);
  } catch {
    return [];
  }
}

function one(value: unknown): Labelled[] {
  if (!Array.isArray(value)) return [];
  const [address, name] = value as readonly unknown[];
  if (typeof address !== "string" || typeof name !== "string") return [];
  try {
    return [{ address: addressOf(address), name: shownLine(name, LONGEST_NAME) }];
  } catch {
    return [];
  }
}
