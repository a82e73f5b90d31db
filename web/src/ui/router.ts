// Routes are in the hash, so that any static host and any CID serves them: #/job/0x..@123?x=1.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  readonly parts: readonly string[];
  readonly query: ReadonlyMap<string, string>;
}

// Read a hash; what is no route is the first page. Nothing in it is believed: pages check their own parts.
export function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").slice(0, 2_048).split("?", 2);
  return {
    parts: path.split("/").filter((part) => part !== "").map(decoded),
    query: new Map([...new URLSearchParams(query)]),
  };
}

export function hrefOf(parts: readonly string[], query: ReadonlyMap<string, string> = new Map()): string {
  const asked = new URLSearchParams([...query]).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${asked === "" ? "" : `?${asked}`}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    // It may have changed since it was read.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(hash);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
