// The names that this browser knows jobs by, on a page that shows jobs; nobody is asked for them.

import type { Hex } from "../core/bytes";
import type { Network } from "../core/network";
import { useLoad } from "./load";
import type { Loaded } from "./unreachable";

// By the digests of the jobs' documents; undefined until they were read.
export type Names = ReadonlyMap<Hex, string> | undefined;

// Read them, and again whenever one of `inputs` changes.
export function useNames(network: Network | undefined, ...inputs: readonly unknown[]): Loaded<ReadonlyMap<Hex, string>> {
  const read = network === undefined ? undefined : async () => (await import("./names")).namesOf(network);
  return useLoad(read, network?.name ?? "", [network, ...inputs]);
}
