// The page without its server: a service worker that keeps a copy of the build (src/offline). It is registered where the page has an
// origin of its own alone: at a path gateway every other site of it would share the copy, and in a frame somebody else decides.

import type { Opened } from "./opened-with";
import { sharedOrigin } from "./origin";

const SCRIPT = "./service-worker.js";
const CACHES = "hearth.build.";
const FORM = "hearth.build/1";
const POLICY = "hearth-offline";

interface Types {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

// What of a window is looked at.
export interface Place {
  readonly location: Pick<Location, "pathname">;
  readonly self: unknown;
  readonly top: unknown;
  readonly isSecureContext: boolean;
  readonly navigator: { readonly serviceWorker?: Pick<ServiceWorkerContainer, "register" | "addEventListener"> };
  readonly trustedTypes?: Types;
}

// Say whether a copy may be kept here.
export const mayKeep = ({ location, self, top, isSecureContext, navigator }: Place, { by }: Opened): boolean =>
  isSecureContext && navigator.serviceWorker !== undefined && !sharedOrigin(location) && top === self && (by === "hearth web" || by === "host");

// Keep a copy of the build, and hear when another build has taken its place while this tab was open. Whatever goes wrong means
// that the page does not open without its server.
export async function keepPage(place: Place, opened: Opened, other: () => void): Promise<void> {
  const workers = place.navigator.serviceWorker;
  if (workers === undefined || !mayKeep(place, opened)) return;
  workers.addEventListener("message", ({ data }) => {
    if (typeof data === "object" && data !== null && (data as Record<string, unknown>)["form"] === FORM) other();
  });
  await workers.register(scriptUrl(place.trustedTypes) as string, { scope: "./", updateViaCache: "none" }).catch(() => undefined);
}

// The one URL of a script that this page ever names; the policy lets no other one be one.
export function scriptUrl(types: Types | undefined): unknown {
  const rules = {
    createScriptURL: (url: string): string => {
      if (url !== SCRIPT) throw new TypeError("this page loads no such script");
      return url;
    },
  };
  return types === undefined ? SCRIPT : types.createPolicy(POLICY, rules).createScriptURL(SCRIPT);
}

// Remove the copy and whatever would make it again before the page is loaded anew.
export async function forgetPage(): Promise<void> {
  const base = new URL("./", location.href).href;
  try {
    const worker = await navigator.serviceWorker.getRegistration(base);
    if (worker?.scope === base) await worker.unregister();
    for (const key of await caches.keys()) if (key.startsWith(`${CACHES}${base} `)) await caches.delete(key);
  } catch {
    // The browser keeps no such thing.
  }
}
