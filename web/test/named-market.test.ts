import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { codeOf } from "../src/core/errors";
import { asking, namedMarket, needsConsent, ofAddress, ofFile, pickMarket, reached, unpickMarket } from "../src/data/market";
import { forgetWords, recall, remember } from "../src/data/remember";
import { stubStorage } from "./storage";
import { vectors } from "./vectors";

const OWN = { pathname: "/", origin: "https://page.example" };
// A name of this machine, at which a page is served without TLS.
const LOCAL = { pathname: "/", origin: "http://page.localhost:1" };
const SHARED = { pathname: "/ipfs/bafy/", origin: "https://gateway.example" };
const FILE = vectors<{ in: Record<string, unknown>; code?: string }[]>("network").find(({ code }) => code === undefined)?.in ?? {};

const file = (name: string, more: Record<string, unknown> = {}): File => new File([JSON.stringify({ ...FILE, name, rpc: [], gateways: [], ...more })], "x.json");
const hosted = (body: string, kind = "application/json", status = 200): void => {
  vi.stubGlobal("fetch", async () => new Response(body, { status, headers: { "Content-Type": kind } }));
};
const refusal = async (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) => codeOf(error),
  );

beforeEach(() => {
  stubStorage();
  hosted("<html>", "text/html", 404);
});
afterEach(() => {
  forgetWords();
  vi.unstubAllGlobals();
});

describe("the market of a static host's page", () => {
  it("is nobody's where neither host nor reader names one", async () => {
    expect(await namedMarket(OWN)).toBeUndefined();
    hosted("<html>", "text/html");
    expect(await namedMarket(OWN)).toBeUndefined();
    vi.stubGlobal("fetch", async () => {
      throw new TypeError("fetch failed");
    });
    expect(await namedMarket(OWN)).toBeUndefined();
  });

  it("is its reader's before its host's, until that is forgotten", async () => {
    hosted(await file("hosts").text());
    expect(await namedMarket(OWN)).toMatchObject({ by: "host", network: { name: "hosts" } });
    expect(pickMarket(await ofFile(file("mine")), OWN)).toMatchObject({ by: "reader", network: { name: "mine" } });
    expect(await namedMarket(OWN)).toMatchObject({ by: "reader", network: { name: "mine" } });
    unpickMarket();
    expect(await namedMarket(OWN)).toMatchObject({ by: "host", network: { name: "hosts" } });
  });

  it("is kept with the RPCs and gateways that its reader wrote", async () => {
    const mine = asking(await ofFile(file("mine", { rpc: ["https://theirs.example/"] })), "https://mine.example/key\n", " https://gw.example ", OWN);
    pickMarket(mine, OWN);
    expect((await namedMarket(OWN))?.network).toMatchObject({ rpc: ["https://mine.example/key"], gateways: ["https://gw.example"] });
  });

  it("may be asked of others later, by what its file says: a host's file is its reader's then", async () => {
    hosted(await file("hosts", { rpc: ["https://theirs.example/"], deploy_block: 7 }).text());
    const found = await namedMarket(OWN);
    if (found === undefined) throw new Error("no market");
    expect(pickMarket(asking(found, "https://mine.example/", "", OWN), OWN)).toMatchObject({ by: "reader", network: { name: "hosts", rpc: ["https://mine.example/"] } });
    // The host's file is another one by now.
    hosted(await file("another").text());
    const kept = await namedMarket(OWN);
    expect(kept).toMatchObject({ by: "reader", network: { name: "hosts", rpc: ["https://mine.example/"], contracts: found.network.contracts, deployBlock: 7 } });
  });

  it("is neither kept nor recalled at an origin that is shared with others", async () => {
    expect(pickMarket(await ofFile(file("mine")), SHARED).network.name).toBe("mine");
    expect(recall("market")).toBeNull();
    remember("market", await file("planted").text());
    expect(await namedMarket(SHARED)).toBeUndefined();
  });

  it("refuses a host's or a kept file that is none", async () => {
    hosted("{}");
    expect(await refusal(namedMarket(OWN))).toBe("BAD_NETWORK");
    hosted(`"${"x".repeat(70_000)}"`);
    expect(await refusal(namedMarket(OWN))).toBe("TOO_LARGE");
    remember("market", "{");
    expect(await refusal(namedMarket(OWN))).toBe("BAD_NETWORK");
  });
});

describe("whom such a page asks", () => {
  const BARRED = ["http://rpc.example/", "ftp://x", "https://a:b@rpc.example/", "javascript:alert(1)", "rpc.example", ""];
  const ASKED = ["https://rpc.example/", "http://127.0.0.1:8545", "http://localhost:1/x", "https://page.example/rpc"];

  it("is what its policy lets it ask", async () => {
    const found = reached(await ofFile(file("x", { rpc: [...ASKED, "http://rpc.example/"], gateways: ["http://gw.example/"] })), OWN);
    expect(found.network.rpc).toEqual(ASKED);
    expect([found.network.gateways, found.barred]).toEqual([[], ["http://rpc.example/", "http://gw.example/"]]);
    // Its own origin without TLS; the same name at another port is somebody else's.
    const [own, beside] = ["http://page.localhost:1/rpc", "http://page.localhost:2/rpc"];
    const local = reached(await ofFile(file("x", { rpc: [own, beside], gateways: [own] })), LOCAL);
    expect([local.network.rpc, local.network.gateways, local.barred]).toEqual([[own], [own], [beside]]);
    expect(reached(await ofFile(file("x", { rpc: [own] })), OWN).network.rpc).toEqual([]);
    hosted(await file("hosts", { rpc: ["http://rpc.example/"] }).text());
    expect((await namedMarket(OWN))?.network.rpc).toEqual([]);
  });

  it.each(BARRED.slice(0, -1))("is not %s", async (url) => {
    expect(() => asking({ raw: {}, network: {} as never }, url, "", OWN)).toThrow(/no address that this page may ask/);
    expect(await refusal(ofAddress(url, OWN))).toBe("BAD_NETWORK");
  });

  it("is a file's address only where one is written", async () => {
    expect(await refusal(ofAddress(" ", OWN))).toBe("BAD_NETWORK");
    expect(await refusal(ofAddress("https://rpc.example/x", OWN))).toBe("URL_DOWN");
  });

  it("needs its browser's word for this machine alone, and not from this machine", () => {
    expect(needsConsent("http://127.0.0.1:8545", OWN)).toBe(true);
    expect(needsConsent("https://rpc.example/", OWN)).toBe(false);
    expect(needsConsent("http://127.0.0.1:8545", { pathname: "/", origin: "http://localhost:1" })).toBe(false);
    expect(needsConsent("http://127.0.0.1:8545", LOCAL)).toBe(false);
    // Whose name only begins or ends like it is from elsewhere.
    for (const origin of ["https://localhost.example", "https://notlocalhost"]) expect(needsConsent("http://127.0.0.1:8545", { pathname: "/", origin })).toBe(true);
  });
});
