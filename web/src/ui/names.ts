// What this browser knows jobs by: the names of those that it posted, and of those whose documents it has read. Nobody is asked.

import type { Hex } from "../core/bytes";
import type { Network } from "../core/network";
import { isName, keptNames } from "../data/names";
import { sharedOrigin } from "../data/origin";
import { entryOf, everPosted } from "../wallet/journal";

// Names by the digests of the jobs' documents.
export async function namesOf(network: Network): Promise<ReadonlyMap<Hex, string>> {
  // What lies there may be another site's.
  if (sharedOrigin(location)) return new Map();
  const names = keptNames(location);
  // A browser that keeps no record has no names of its own.
  const records = await everPosted().catch(() => []);
  for (const raw of records) {
    const entry = entryOf(raw, network);
    if (entry !== undefined && isName(entry.kept.name) && !names.has(entry.terms.spec)) names.set(entry.terms.spec, entry.kept.name);
  }
  return names;
}
