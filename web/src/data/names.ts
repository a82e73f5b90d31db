// Names of jobs, by the digests of their documents: what this browser has read, so that a list can say it without asking anybody.

import { fromHex, type Hex } from "../core/bytes";
import { decode } from "../core/canonical";
import { type Bytes, cidOfDigest } from "../core/cid";
import { SPEC_PATTERNS } from "../generated/spec";
import { recallOwn, rememberOwn } from "./own-storage";

const UNDER = "names";
// The newest of them.
const MOST = 500;
const NAME = new RegExp(SPEC_PATTERNS.name);
const DIGEST = /^0x[0-9a-f]{64}$/;

type Here = Pick<Location, "pathname">;

// Return what a document calls its job, undefined where that is no name. Throws BLOCK_CORRUPT where these are not the bytes of that
// digest: a name is believed by nothing else. Throws BAD_DOCUMENT.
export async function nameIn(digest: Hex, document: Bytes): Promise<string | undefined> {
  const value = decode(await cidOfDigest(fromHex(digest)).verify(document));
  const name = typeof value === "object" && value !== null && "name" in value ? value["name"] : undefined;
  return isName(name) ? name : undefined;
}

// Keep the name in a document that was read, unless this origin is shared with other sites. Throws as `nameIn`.
export async function learnName(digest: Hex, document: Bytes, here: Here): Promise<void> {
  const name = await nameIn(digest, document);
  if (name === undefined) return;
  const known = keptNames(here);
  // The one that was read last is forgotten last.
  known.delete(digest);
  known.set(digest, name);
  rememberOwn(UNDER, JSON.stringify([...known].slice(-MOST)), here);
}

// The names that are kept, by digest; what is of another form is left out. At a shared origin there are none: what lies there
// may be another site's.
export function keptNames(here: Here): Map<Hex, string> {
  try {
    const raw: unknown = JSON.parse(recallOwn(UNDER, here) ?? "[]");
    const all = Array.isArray(raw) ? (raw as unknown[]).slice(-MOST) : [];
    return new Map(all.flatMap((one) => {
      const [digest, name] = Array.isArray(one) ? (one as unknown[]) : [];
      return typeof digest === "string" && DIGEST.test(digest) && isName(name) ? [[digest as Hex, name] as const] : [];
    }));
  } catch {
    return new Map();
  }
}

// What a job may be called: anything else in a document is a stranger's text, and stays out of lists.
export const isName = (value: unknown): value is string => typeof value === "string" && NAME.test(value);
