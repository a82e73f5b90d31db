import { createHash } from "node:crypto";

import { describe, expect, it } from "vitest";

import { keepPage, mayKeep, type Place, scriptUrl } from "../src/data/offline";
import { Copy } from "../src/offline/copy";
import { loaded, nameIn, opened } from "../src/offline/routes";

const BASE = "http://127.0.0.1:7373/";
const BUILD = { "index.html": "<!doctype html>", "index.js": "1", "part/inner.js": "2" };

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const withList = (files: Record<string, string>): Record<string, string> => ({
  ...files,
  "files.json": JSON.stringify(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, digest(text)]))),
});

// A server whose files a test changes, and the caches of a browser.
class Browser {
  readonly caches = new Map<string, Map<string, Response>>();
  readonly asked: string[] = [];
  readonly copy: Copy;

  constructor(public files: Record<string, string>) {
    const store = {
      keys: async () => [...this.caches.keys()],
      delete: async (key: string) => this.caches.delete(key),
      open: async (key: string) => {
        const held = this.caches.get(key) ?? new Map<string, Response>();
        this.caches.set(key, held);
        return { match: async (url: string) => held.get(url)?.clone(), put: async (url: string, said: Response) => void held.set(url, said) };
      },
    };
    this.copy = new Copy(BASE, store as never, async (url, init) => {
      expect(init).toEqual({ cache: "no-store", credentials: "omit", redirect: "error" });
      this.asked.push(url.slice(BASE.length));
      const text = this.files[url.slice(BASE.length)];
      return text === undefined ? new Response("", { status: 404 }) : new Response(text, { headers: { "Content-Security-Policy": "x" } });
    });
  }

  async texts(...names: string[]): Promise<(string | undefined)[]> {
    return Promise.all(names.map(async (name) => (await this.copy.file(name))?.text()));
  }
}

describe("a copy of the build", () => {
  it("holds what the list names, with its headers, and nothing else", async () => {
    const browser = new Browser({ ...withList(BUILD), "local.json": "{}" });
    expect(await browser.copy.sync()).toBe(false);
    expect(await browser.texts("index.html", "part/inner.js", "local.json")).toEqual(["<!doctype html>", "2", undefined]);
    expect((await browser.copy.file("index.js"))?.headers.get("Content-Security-Policy")).toBe("x");
    browser.asked.length = 0;
    expect(await browser.copy.sync()).toBe(false);
    expect(browser.asked).toEqual(["files.json"]);
  });

  it("is one build: another one takes its place, and says so", async () => {
    const browser = new Browser(withList(BUILD));
    await browser.copy.sync();
    browser.files = withList({ ...BUILD, "index.js": "3" });
    expect(await browser.copy.sync()).toBe(true);
    expect(await browser.texts("index.js", "part/inner.js")).toEqual(["3", "2"]);
    expect(browser.caches.size).toBe(1);
  });

  it.each([
    ["a file is of another build", (files: Record<string, string>) => ({ ...files, "index.js": "4" })],
    ["a file is gone", ({ "index.js": _, ...files }: Record<string, string>) => files],
  ])("is none, and the old one gone, where %s", async (_, change) => {
    const browser = new Browser(withList(BUILD));
    await browser.copy.sync();
    browser.files = change(withList({ ...BUILD, "index.js": "3" }));
    await expect(browser.copy.sync()).rejects.toThrow();
    expect(browser.caches.size).toBe(0);
    expect(await browser.texts("index.html")).toEqual([undefined]);
    // It is there once all of it can be had.
    browser.files = withList(BUILD);
    await browser.copy.sync();
    expect(await browser.texts("index.js")).toEqual(["1"]);
  });

  it.each([
    ["no JSON", "<html>"],
    ["a list without an index", JSON.stringify({ "a.js": digest("") })],
    ["a list with a path out of the folder", JSON.stringify({ "index.html": digest(""), "../x": digest("") })],
    ["a list without digests", JSON.stringify({ "index.html": "1" })],
    ["an old list", JSON.stringify(["index.html"])],
  ])("stays where another program answers at the address: %s", async (_, list) => {
    const browser = new Browser(withList(BUILD));
    await browser.copy.sync();
    browser.files = { ...withList(BUILD), "files.json": list };
    expect(await browser.copy.sync()).toBe(false);
    expect(await browser.texts("index.js")).toEqual(["1"]);
    browser.files = {};
    await expect(browser.copy.sync()).rejects.toThrow();
    expect(await browser.texts("index.js")).toEqual(["1"]);
  });

  it("leaves alone what lies beside it at the same host", async () => {
    const browser = new Browser(withList(BUILD));
    const beside = [`hearth.build.${BASE}other/ 00`, "somebody's"];
    for (const key of beside) browser.caches.set(key, new Map([[`${BASE}files.json`, new Response("x")]]));
    expect(await browser.copy.sync()).toBe(false);
    expect([...browser.caches.keys()].slice(0, 2)).toEqual(beside);
    expect(await browser.texts("index.js")).toEqual(["1"]);
  });

  it("is none while it is not whole", async () => {
    const browser = new Browser(withList(BUILD));
    await browser.copy.sync();
    for (const held of browser.caches.values()) held.delete(`${BASE}files.json`);
    expect(await browser.texts("index.html")).toEqual([undefined]);
    await browser.copy.sync();
    expect(await browser.texts("index.html")).toEqual(["<!doctype html>"]);
  });
});

describe("a request", () => {
  it.each([
    ["GET", "", "index.html"],
    ["GET", "?kept", "index.html"],
    ["GET", "index.js?x", "index.js"],
    ["GET", "local.json", undefined],
    ["GET", "networks/devnet.json", undefined],
    ["GET", "ipfs/bafy?format=raw", undefined],
    ["PUT", "index.js", undefined],
  ])("%s %s is for %s", (method, path, name) => expect(nameIn(BASE, { method, url: BASE + path })).toBe(name));

  it("to another origin is none of its business", () => expect(nameIn(BASE, { method: "GET", url: "http://127.0.0.1:8545/" })).toBe(undefined));

  const copy = { file: async (name: string) => new Response(`copy of ${name}`) };
  const gone = async (): Promise<Response> => {
    throw new TypeError("refused");
  };
  const server = async (): Promise<Response> => new Response("server");
  const told = async (said: Response): Promise<string> => (said.status === 302 ? `to ${said.headers.get("Location")}` : said.type === "error" ? "error" : said.text());

  it.each([
    ["", server, "server", 1],
    ["?kept", server, `to ${BASE}`, 1],
    ["", gone, `to ${BASE}?kept`, 0],
    ["?kept", gone, "copy of index.html", 0],
  ] as const)("that opens the page at %s goes to its server first", async (path, ask, wanted, fresh) => {
    let heard = 0;
    expect(await told(await opened(BASE, BASE + path, copy, ask, () => (heard += 1)))).toBe(wanted);
    expect(heard).toBe(fresh);
    const none = { file: async () => undefined };
    if (ask === gone) expect(await told(await opened(BASE, BASE + path, none, ask, () => undefined))).toBe("error");
  });

  it("of a page from the copy gets the copy's files, and of any other page the server's: two builds never mix", async () => {
    expect(await told(await loaded("index.js", `${BASE}?kept#/jobs`, copy, server))).toBe("copy of index.js");
    expect(await told(await loaded("index.js", `${BASE}?kept`, { file: async () => undefined }, server))).toBe("error");
    expect(await told(await loaded("index.js", `${BASE}#/jobs`, copy, server))).toBe("server");
    expect(await told(await loaded("index.js", undefined, copy, server))).toBe("server");
    await expect(loaded("index.js", BASE, copy, gone)).rejects.toThrow();
  });
});

describe("keeping a copy", () => {
  const placeOf = (changes: Partial<Place> = {}): Place & { readonly asked: unknown[][]; readonly hear: (data: unknown) => void } => {
    const asked: unknown[][] = [];
    let hear: (event: { data: unknown }) => void = () => undefined;
    const serviceWorker = {
      register: async (...given: unknown[]) => void asked.push(given),
      addEventListener: (_: string, heard: typeof hear) => (hear = heard),
    };
    const own = {};
    const place = { location: { pathname: "/" }, self: own, top: own, isSecureContext: true, navigator: { serviceWorker } as never, ...changes };
    return { ...place, asked, hear: (data) => hear({ data }) };
  };
  const WEB = { by: "hearth web", local: { network: "devnet", writable: true }, network: {} } as const;

  it.each([
    ["a path gateway", { location: { pathname: "/ipfs/bafy/" } }, WEB],
    ["a frame", { top: {} }, WEB],
    ["a page that is not secure", { isSecureContext: false }, WEB],
    ["a browser without workers", { navigator: {} }, WEB],
    ["one that does not know this page", {}, { by: "stranger", why: "" }],
    ["the copy itself", {}, { by: "kept" }],
  ] as const)("is not asked for at %s", async (_, changes, by) => {
    const place = placeOf(changes);
    expect(mayKeep(place, by)).toBe(false);
    await keepPage(place, by, () => undefined);
    expect(place.asked).toEqual([]);
  });

  it("asks for one script, and hears of another build", async () => {
    const place = placeOf();
    let heard = 0;
    await keepPage(place, WEB, () => (heard += 1));
    expect(place.asked).toEqual([["./service-worker.js", { scope: "./", updateViaCache: "none" }]]);
    for (const data of [null, "x", { form: "other" }, { form: "hearth.build/1" }]) place.hear(data);
    expect(heard).toBe(1);
  });

  it("names that script by a policy that takes no other", () => {
    let rules = { createScriptURL: (url: string): string => url };
    const types = {
      createPolicy: (name: string, given: typeof rules) => {
        expect(name).toBe("hearth-offline");
        rules = given;
        return { createScriptURL: (url: string): unknown => ({ trusted: given.createScriptURL(url) }) };
      },
    };
    expect(scriptUrl(types)).toEqual({ trusted: "./service-worker.js" });
    for (const other of ["./index.js", "data:text/javascript,1", ""]) expect(() => rules.createScriptURL(other)).toThrow(TypeError);
  });
});
