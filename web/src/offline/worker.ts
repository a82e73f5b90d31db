// The service worker: it opens the page where its server does not answer, from the copy of the build that the server had last.

import { Copy, INDEX } from "./copy";
import { loaded, nameIn, opened } from "./routes";

// What of a service worker's scope is used; the page's own types have none of it.
interface Later extends Event {
  waitUntil(done: Promise<unknown>): void;
}
interface Asked extends Later {
  readonly request: Request;
  readonly clientId: string;
  readonly resultingClientId: string;
  respondWith(answer: Promise<Response>): void;
}
interface Client {
  readonly id: string;
  readonly url: string;
  postMessage(message: unknown): void;
}
interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: {
    claim(): Promise<void>;
    get(id: string): Promise<Client | undefined>;
    matchAll(): Promise<readonly Client[]>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(name: "install" | "activate", hear: (event: Later) => void): void;
  addEventListener(name: "fetch", hear: (event: Asked) => void): void;
}

const scope = self as unknown as Scope;
const base = scope.registration.scope;
const copy = new Copy(base, caches, (url, init) => fetch(url, init));

// Bring the copy up to date, and tell the other tabs where it was of another build: they run what is no longer served.
async function sync(except: string): Promise<void> {
  const other = await copy.sync().catch(() => false);
  if (!other) return;
  for (const client of await scope.clients.matchAll()) if (client.id !== except) client.postMessage({ form: "hearth.build/1" });
}

scope.addEventListener("install", (event) => {
  // No worker waits for an older one: what both answer is the server's, or one build's.
  event.waitUntil(Promise.all([scope.skipWaiting(), sync("")]));
});
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (event) => {
  const { request, clientId, resultingClientId } = event;
  const name = nameIn(base, request);
  if (name === undefined) return;
  const ask = (): Promise<Response> => fetch(request);
  if (request.mode === "navigate") {
    if (name === INDEX) event.respondWith(opened(base, request.url, copy, ask, () => event.waitUntil(sync(resultingClientId))));
    return;
  }
  event.respondWith(scope.clients.get(clientId).then((client) => loaded(name, client?.url, copy, ask)));
});
