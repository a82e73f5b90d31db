// Which request is answered from the copy, and which is none of its business.

import { type Copy, INDEX } from "./copy";

// In the address of a page that was opened from the copy, so that all it loads comes from there too: two builds never mix.
const KEPT = "kept";

// What the server has for the reader alone, or of others: never looked at here.
const NEVER = /^(?:local\.json$|networks\/|ipfs\/)/;

// The name of the page's file that a request is for; undefined for anything else.
export function nameIn(base: string, { method, url }: Pick<Request, "method" | "url">): string | undefined {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  if (method !== "GET" || !path.startsWith(base)) return undefined;
  const name = path.slice(base.length);
  return NEVER.test(name) ? undefined : name === "" ? INDEX : name;
}

export const isKept = (url: string): boolean => new URL(url).searchParams.has(KEPT);

// Answer a person's opening of the page: its server comes first, the copy where nobody answers, and the address says which.
// `fresh` hears that the server answered.
export async function opened(
  base: string,
  url: string,
  copy: Pick<Copy, "file">,
  ask: () => Promise<Response>,
  fresh: () => void,
): Promise<Response> {
  const kept = isKept(url);
  let answer: Response;
  try {
    answer = await ask();
  } catch {
    const index = await copy.file(INDEX);
    if (index === undefined) return Response.error();
    return kept ? index : Response.redirect(`${base}?${KEPT}`);
  }
  fresh();
  return kept ? Response.redirect(base) : answer;
}

// Answer for a file that a page loads: one that was opened from the copy gets it from there, any other from the server.
export async function loaded(name: string, client: string | undefined, copy: Pick<Copy, "file">, ask: () => Promise<Response>): Promise<Response> {
  if (client === undefined || !isKept(client)) return ask();
  return (await copy.file(name)) ?? Response.error();
}
