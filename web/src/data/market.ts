// A market that no `hearth web` names: the one of the host that served this page, or the one that its reader picked.
//
// A network file is a stranger's. It says which contracts are the market and whom the page asks; that they agree with the chain is
// checked as ever, that they are the ones that the reader means is nothing that a page can know.

import { gathered } from "../chain/body";
import { HearthError } from "../core/errors";
import { askable, type Network, networkOf } from "../core/network";
import { shownLine } from "../core/text";
import { fetched, streamed } from "./fetched";
import { recallOwn, rememberOwn } from "./own-storage";
import { remember } from "./remember";

const KEY = "market";
const HOSTS_FILE = "./network.json";
const MAX_FILE = 2 ** 16;
const LOOPBACK = ["127.0.0.1", "localhost"];
const LONGEST_LINE = 200;

// What a network file says, before and after it was read.
export interface NetworkFile {
  readonly raw: Readonly<Record<string, unknown>>;
  readonly network: Network;
}

export interface Named extends NetworkFile {
  readonly by: "reader" | "host";
}

type Here = Pick<Location, "pathname" | "origin">;

// The market of this copy of the page: what its reader picked, else what its host names beside it, undefined for none. Throws
// BAD_NETWORK and WRONG_VERSION for a file that is no more read, TOO_LARGE.
export async function namedMarket(here: Here): Promise<Named | undefined> {
  const kept = recallOwn(KEY, here);
  if (kept !== null) return named(parsed(kept), "reader", here);
  const answer = await fetch(HOSTS_FILE, { credentials: "omit", redirect: "error" }).catch(() => undefined);
  // Many hosts answer with some page whatever they are asked for.
  const json = answer?.ok === true && (answer.headers.get("Content-Type") ?? "").startsWith("application/json");
  if (!json || answer.body === null) return undefined;
  return named(parsed(await textOf(streamed(answer.body))), "host", here);
}

const named = (file: NetworkFile, by: Named["by"], here: Here): Named => ({ raw: file.raw, network: reached(file, here).network, by });

// Take a market, or another choice of whom to ask of it, from now on; at an origin that is shared with other sites until the page is left.
export function pickMarket({ raw, network }: NetworkFile, here: Here): Named {
  rememberOwn(KEY, JSON.stringify({ ...raw, rpc: network.rpc, gateways: network.gateways }), here);
  return { raw, network, by: "reader" };
}

// Forget what was picked: the host's own market stands again.
export function unpickMarket(): void {
  remember(KEY, null);
}

// Read a network file that was picked. Throws BAD_NETWORK, WRONG_VERSION, TOO_LARGE, UNREADABLE.
export const ofFile = async (file: File): Promise<NetworkFile> => parsed(await textOf(streamed(file.stream())));

// Read one from an address. Throws besides URL_DOWN.
export async function ofAddress(address: string, here: Here): Promise<NetworkFile> {
  const [url] = addressesOf(address, here);
  if (url === undefined) throw new HearthError("BAD_NETWORK", "no address is written", "write the address of a network file");
  return parsed(await textOf(await fetched(new URL(url))));
}

// The network with other RPCs and gateways, each in a line of its own. Throws BAD_NETWORK for what this page cannot ask.
export function asking({ raw, network }: NetworkFile, rpc: string, gateways: string, here: Here): NetworkFile {
  return { raw, network: { ...network, rpc: addressesOf(rpc, here), gateways: addressesOf(gateways, here) } };
}

// The network without the RPCs and gateways that this page cannot ask, and these.
export function reached({ raw, network }: NetworkFile, here: Here): NetworkFile & { readonly barred: readonly string[] } {
  const may = (url: string): boolean => reachable(url, here) !== undefined;
  const [rpc, gateways] = [network.rpc.filter(may), network.gateways.filter(may)];
  const barred = [...network.rpc, ...network.gateways].filter((url) => !may(url));
  return { raw, network: { ...network, rpc, gateways }, barred };
}

// Whether an address is this machine's own, which a browser asks for a page from elsewhere only where its owner lets it.
export function needsConsent(url: string, { origin }: Here): boolean {
  const from = new URL(origin);
  return isLoopback(new URL(url)) && !isLoopback(from) && !from.hostname.endsWith(".localhost");
}

// What the page's own policy lets it ask at a static host: https, this machine, and its own origin.
function reachable(text: string, { origin }: Here): URL | undefined {
  const url = askable(text);
  return url !== undefined && (url.protocol === "https:" || isLoopback(url) || url.origin === origin) ? url : undefined;
}

const isLoopback = ({ hostname }: URL): boolean => LOOPBACK.includes(hostname);

function addressesOf(text: string, here: Here): string[] {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return lines.map((line) => {
    if (reachable(line, here) !== undefined) return line;
    const why = "is no address that this page may ask";
    throw new HearthError("BAD_NETWORK", `${shownLine(line, LONGEST_LINE)} ${why}`, "write one that begins with https://, or with http://127.0.0.1");
  });
}

function parsed(text: string): NetworkFile {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new HearthError("BAD_NETWORK", "the network file is no JSON", "use another network file");
  }
  const network = networkOf(raw);
  return { raw: raw as NetworkFile["raw"], network };
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const found = await gathered(bytes, MAX_FILE);
  if (found === undefined) throw new HearthError("TOO_LARGE", `the network file has more than ${MAX_FILE} bytes`, "use another network file");
  return new TextDecoder().decode(found);
}
