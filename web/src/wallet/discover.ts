// The wallets of this browser, by EIP-6963 alone: each announces itself, and the reader picks. Nothing of what they say of
// themselves is believed: a name is a stranger's text, an icon is shown only where it is in the page already, and the
// reverse domain name proves nothing.

import { shownLine } from "../core/text";

// A wallet's own side, by EIP-1193. What it answers and throws may be anything.
export interface Provider {
  request(ask: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
  on?(event: string, hear: (value: unknown) => void): unknown;
  removeListener?(event: string, hear: (value: unknown) => void): unknown;
}

// A wallet as it is shown: `icon` is a data URL, "" for none.
export interface Announced {
  readonly id: string;
  readonly name: string;
  readonly icon: string;
  readonly domain: string;
  readonly provider: Provider;
}

const ANNOUNCE = "eip6963:announceProvider";
const REQUEST = "eip6963:requestProvider";
const MOST = 32;
const MAX_ICON = 200_000;
const ICON = /^data:image\/(?:png|jpeg|webp|gif|svg\+xml)[;,]/;

// Hear which wallets there are, each once, in the order in which they came: the first that uses an id keeps it. Returns
// what ends the listening.
export function discover(target: EventTarget, tell: (wallets: readonly Announced[]) => void): () => void {
  const found = new Map<string, Announced>();
  const heard = (event: Event): void => {
    const one = announcedOf((event as CustomEvent<unknown>).detail);
    if (one === undefined || found.has(one.id) || found.size >= MOST) return;
    found.set(one.id, one);
    tell([...found.values()]);
  };
  target.addEventListener(ANNOUNCE, heard);
  target.dispatchEvent(new Event(REQUEST));
  return () => target.removeEventListener(ANNOUNCE, heard);
}

// Read an announcement; undefined for what is none. Reading a stranger's object runs its code: it may throw.
export function announcedOf(detail: unknown): Announced | undefined {
  try {
    const { info, provider } = detail as { info: Record<string, unknown>; provider: Provider };
    const { uuid, name, icon, rdns } = info;
    if (typeof uuid !== "string" || uuid === "" || uuid.length > 100 || typeof provider.request !== "function") return undefined;
    const called = typeof name === "string" ? shownLine(name.trim(), 40) : "";
    return {
      id: uuid,
      name: called === "" ? "a wallet without a name" : called,
      icon: typeof icon === "string" && icon.length <= MAX_ICON && ICON.test(icon) ? icon : "",
      domain: typeof rdns === "string" ? shownLine(rdns, 60) : "",
      provider,
    };
  } catch {
    return undefined;
  }
}
