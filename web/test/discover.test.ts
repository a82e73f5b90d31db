import { describe, expect, it } from "vitest";

import { HearthError } from "../src/core/errors";
import { announcedOf, type Announced, discover } from "../src/wallet/discover";
import { type Place, requireOwnPlace } from "../src/wallet/signing-place";

const provider = { request: async () => undefined };
const INFO = { uuid: "a", name: "Wallet", icon: "data:image/png;base64,AA==", rdns: "org.wallet" };

function announce(target: EventTarget, detail: unknown): void {
  const event = new Event("eip6963:announceProvider");
  Object.defineProperty(event, "detail", { value: detail });
  target.dispatchEvent(event);
}

describe("a wallet", () => {
  it("is asked for, and found each once", () => {
    const target = new EventTarget();
    target.addEventListener("eip6963:requestProvider", () => announce(target, { info: INFO, provider }));
    let found: readonly Announced[] = [];
    const end = discover(target, (all) => {
      found = all;
    });
    expect(found.map((one) => one.name)).toEqual(["Wallet"]);
    announce(target, { info: { ...INFO, uuid: "b", name: "Late" }, provider });
    // Whoever comes later cannot take the place of one that is shown.
    announce(target, { info: { ...INFO, name: "Thief" }, provider: { request: async () => "mine" } });
    expect(found.map((one) => one.name)).toEqual(["Wallet", "Late"]);
    expect(found[0]?.provider).toBe(provider);
    end();
    announce(target, { info: { ...INFO, uuid: "c" }, provider });
    expect(found).toHaveLength(2);
  });

  it("of a page that announces without end is cut off", () => {
    const target = new EventTarget();
    let found: readonly Announced[] = [];
    discover(target, (all) => {
      found = all;
    });
    for (let at = 0; at < 1_000; at += 1) announce(target, { info: { ...INFO, uuid: String(at) }, provider });
    expect(found).toHaveLength(32);
  });

  it("may call itself anything, and is shown as what it is", () => {
    const name = `\u202eksaMateM\u0000\n${"x".repeat(100)}`;
    const found = announcedOf({ info: { ...INFO, name }, provider });
    expect(found?.name.startsWith("U+202EksaMateMU+0000U+000A")).toBe(true);
    expect(found?.name.length).toBeLessThan(70);
    expect(announcedOf({ info: { ...INFO, name: " \t" }, provider })?.name).toBe("a wallet without a name");
    expect(announcedOf({ info: { ...INFO, name: 7 }, provider })?.name).toBe("a wallet without a name");
  });

  it.each([
    "https://evil.example/x.png",
    "javascript:alert(1)",
    "data:text/html,<script>",
    " data:image/png,",
    "data:image/pngx,",
    `data:image/png,${"x".repeat(300_000)}`,
    7,
  ])("has no icon %j", (icon) => {
    expect(announcedOf({ info: { ...INFO, icon }, provider })?.icon).toBe("");
  });

  it.each([
    undefined,
    null,
    {},
    { info: INFO },
    { info: { ...INFO, uuid: "" }, provider },
    { info: { ...INFO, uuid: "x".repeat(200) }, provider },
    { info: { ...INFO, uuid: 3 }, provider },
    { info: INFO, provider: {} },
    {
      get info(): never {
        throw new Error("boom");
      },
    },
  ])("is none that announces badly (%#)", (detail) => {
    expect(announcedOf(detail)).toBeUndefined();
  });
});

describe("the page", () => {
  const place = (pathname: string, framed = false): Place => {
    const self = {};
    return { location: { pathname } as Location, self, top: framed ? {} : self };
  };
  const codeOf = (one: Place): string => {
    try {
      requireOwnPlace(one);
      return "";
    } catch (error) {
      return (error as HearthError).code;
    }
  };

  it("signs at an address of its own, in no frame", () => {
    expect(codeOf(place("/"))).toBe("");
    expect(codeOf(place("/ipfs/bafy/"))).toBe("SHARED_ORIGIN");
    expect(codeOf(place("/ipns/name/"))).toBe("SHARED_ORIGIN");
    expect(codeOf(place("/", true))).toBe("IN_A_FRAME");
  });
});
