// What this copy of the page was opened with: by `hearth web`, with its token, or from a static host, without.
//
// `hearth web` prints an address with the token behind the #. The page takes it out of the address at once, so that it
// stands in no bookmark and no copied link, and keeps it for other tabs of this origin; in the place of another one only once
// the server has taken it, since any site may link to this address with a token of its own. After the next start it opens nothing.

import { HearthError } from "../core/errors";
import { recall, remember } from "./remember";

const KEY = "token";
const HEADER = "X-Hearth-Token";
const FRAGMENT = "#token=";

export interface Local {
  readonly network: string;
  readonly writable: boolean;
}

// A token that stood in the address beside one that is kept, until the server has taken it.
let offered: string | undefined;

// Take the token out of the address. Call it once, before anything reads the route.
export function takeToken(location: Location, history: History): void {
  if (!location.hash.startsWith(FRAGMENT)) return;
  const token = location.hash.slice(FRAGMENT.length);
  if (recall(KEY) === null) remember(KEY, token);
  else offered = token;
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
}

// Ask the server that served this page, with the token. Throws OFFLINE where it does not answer.
export async function askLocal(path: string, init: RequestInit = {}): Promise<Response> {
  const token = offered ?? recall(KEY);
  const headers = new Headers(init.headers);
  if (token !== null) headers.set(HEADER, token);
  try {
    return await fetch(`./${path}`, { ...init, headers, credentials: "omit", redirect: "error" });
  } catch {
    throw new HearthError("OFFLINE", "the server that served this page does not answer", "start hearth web again");
  }
}

export type Opened =
  | { readonly by: "hearth web"; readonly local: Local; readonly network: unknown }
  | { readonly by: "stranger"; readonly why: string }
  // From this browser's copy, since its server does not answer.
  | { readonly by: "kept" }
  | { readonly by: "host" };

// Say whether the service worker opened this page from its copy: without one the address says nothing.
export const isKept = ({ search }: Pick<Location, "search">, { serviceWorker }: Partial<Pick<Navigator, "serviceWorker">>): boolean =>
  Boolean(serviceWorker?.controller) && new URLSearchParams(search).has("kept");

// Find out who serves this page. A static host knows no local.json; `hearth web` asks for its token.
export async function whoServes(): Promise<Opened> {
  const answer = await askLocal("local.json").catch(() => undefined);
  if (answer === undefined || !(answer.headers.get("Content-Type") ?? "").startsWith("application/json")) {
    return { by: "host" };
  }
  const said: unknown = await answer.json().catch(() => undefined);
  if (answer.status === 403) {
    if (offered === undefined || recall(KEY) === null) return { by: "stranger", why: "open the address that hearth web printed when it started" };
    offered = undefined;
    return whoServes();
  }
  if (!isLocal(said)) return { by: "host" };
  if (offered !== undefined) remember(KEY, offered);
  offered = undefined;
  const network = await askLocal(`networks/${encodeURIComponent(said.network)}.json`);
  return { by: "hearth web", local: said, network: await network.json() };
}

function isLocal(value: unknown): value is Local {
  const said = value as Partial<Record<string, unknown>> | null;
  return (
    typeof said === "object" &&
    said !== null &&
    said["served_by"] === "hearth web" &&
    typeof said["network"] === "string" &&
    typeof said["writable"] === "boolean"
  );
}
