import { afterEach, describe, expect, it, vi } from "vitest";

import { codeOf } from "../src/core/errors";
import { askLocal, takeToken, whoServes } from "../src/data/opened-with";
import { forgetWords, recall } from "../src/data/remember";
import { stubStorage } from "./storage";

interface Asked {
  readonly url: string;
  readonly init: RequestInit;
}

// A server, and what it was asked.
function served(answers: Readonly<Record<string, Response>>): Asked[] {
  const asked: Asked[] = [];
  stubStorage();
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    asked.push({ url, init });
    const found = answers[url];
    if (found === undefined) throw new TypeError("fetch failed");
    return found;
  });
  return asked;
}

const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });
const LOCAL = { served_by: "hearth web", network: "devnet", writable: true };

afterEach(() => {
  forgetWords();
  vi.unstubAllGlobals();
});

describe("the token", () => {
  it("is taken out of the address, and goes to this page's server alone", async () => {
    const asked = served({ "./local.json": json(LOCAL) });
    const replaced: string[] = [];
    const history = { replaceState: (_: unknown, __: string, url: string) => replaced.push(url) } as unknown as History;
    takeToken({ hash: "#token=secret", pathname: "/", search: "" } as Location, history);
    expect(replaced).toEqual(["/#/"]);
    await askLocal("local.json");
    const [one] = asked as [Asked];
    expect(one.url).toBe("./local.json");
    expect(new Headers(one.init.headers).get("X-Hearth-Token")).toBe("secret");
    expect([one.init.redirect, one.init.credentials]).toEqual(["error", "omit"]);
  });

  it("of another site's link takes nothing from the one that the server took", async () => {
    const history = { replaceState: () => undefined } as unknown as History;
    const at = (hash: string): Location => ({ hash, pathname: "/", search: "" }) as Location;
    const taken: (string | null)[] = [];
    served({});
    vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
      const token = new Headers(init.headers).get("X-Hearth-Token");
      taken.push(token);
      if (token !== "good") return json({ error: {} }, 403);
      return url === "./local.json" ? json(LOCAL) : json({ name: "devnet" });
    });
    takeToken(at("#token=good"), history);
    expect((await whoServes()).by).toBe("hearth web");
    takeToken(at("#token=bad"), history);
    expect((await whoServes()).by).toBe("hearth web");
    expect([taken, recall("token")]).toEqual([["good", "good", "bad", "good", "good"], "good"]);
  });

  it("is not looked for in a route", () => {
    served({});
    takeToken({ hash: "#/job/token=x" } as Location, {} as History);
    expect(recall("token")).toBeNull();
  });
});

describe("who serves the page", () => {
  it.each([
    ["nobody", {}, { by: "host" }],
    ["a host without it", { "./local.json": new Response("<html>", { status: 404 }) }, { by: "host" }],
    ["a host with another document", { "./local.json": json({ served_by: "other" }) }, { by: "host" }],
    ["a host that lies about its type", { "./local.json": json("no object") }, { by: "host" }],
  ] satisfies [string, Record<string, Response>, object][])("%s", async (_, answers, wanted) => {
    served(answers);
    expect(await whoServes()).toEqual(wanted);
  });

  it("hearth web, with its network", async () => {
    served({ "./local.json": json(LOCAL), "./networks/devnet.json": json({ name: "devnet" }) });
    expect(await whoServes()).toEqual({ by: "hearth web", local: LOCAL, network: { name: "devnet" } });
  });

  it("hearth web that asks for its token", async () => {
    served({ "./local.json": json({ error: {} }, 403) });
    expect((await whoServes()).by).toBe("stranger");
  });

  it("nobody any more", async () => {
    served({});
    expect(await askLocal("ipfs/x").then(() => "", codeOf)).toBe("OFFLINE");
  });
});
