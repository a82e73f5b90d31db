// What a file is signed by stands at `#/sign` whole: nothing of it hangs on a provider's word, and no document is signed unseen.
import { encodeFunctionData } from "viem/utils";
import { describe, expect, it } from "vitest";

import { sha256, toHex, utf8, type Hex } from "../src/core/bytes";
import { changeOf } from "../src/core/changes";
import { codeOf } from "../src/core/errors";
import { announced, changeText } from "../src/core/governed";
import { firstManifest, manifestRows } from "../src/core/manifest";
import { price } from "../src/core/money";
import { networkOf } from "../src/core/network";
import { offerOf } from "../src/core/offer";
import { documentText, type Prepared, preparedOf, termsIn } from "../src/core/prepared";
import { parentsHash } from "../src/core/parents";
import { type CallSummary, summaryOf } from "../src/core/call-summary";
import type { Terms } from "../src/core/types";
import { formatAmount } from "../src/core/units";
import { packPolicy, unpackPolicy } from "../src/core/words";
import { STEWARD_CALLS } from "../src/generated/calls/steward";
import { POLICY_FIELDS } from "../src/generated/changes";
import { MANIFEST_BYTES } from "../src/generated/owners";
import { WORDS } from "../src/generated/words";
import { type Call, postCall } from "../src/wallet/calls";
import { registerCall, updateOfferCall } from "../src/wallet/owner-calls";
import { vectors } from "./vectors";

interface Other {
  readonly network: string;
  readonly function: string;
  readonly document: Readonly<Record<string, unknown>>;
}

const DATA = vectors<{ readonly networks: Readonly<Record<"coin", unknown>>; readonly others: readonly Other[] }>("prepared");
const NETWORK = networkOf(DATA.networks.coin);
const POLICY = BigInt(vectors<{ cases: readonly { terms: readonly string[] }[] }>("fleet").cases[0]?.terms[7] ?? 0);
const REAL = unpackPolicy(POLICY);
const ME: Hex = `0x${"aa".repeat(20)}`;
const OFFER = offerOf(
  { price: "0.1/h", country: "de", slots: "1", runtimes: ["wasm"], gpus: "0", model: "", vram: "", cores: "2", memory: "4GiB", disk: "10GiB" },
  NETWORK.asset,
);

async function read(call: Call, from: Hex = ME): Promise<Prepared> {
  const [found] = await preparedOf(documentText(call, { from, approve: 0n, key: "", chainId: NETWORK.chainId }), NETWORK);
  return found as Prepared;
}

const tell = async (call: Call, from: Hex = ME): Promise<CallSummary> => summaryOf(await read(call, from), NETWORK, null);

describe("a policy that is announced or carried out", () => {
  // A field that differs from today's, so that a provider's "today" has something to hide.
  const announcedWord = packPolicy({ ...REAL, ackTime: REAL.ackTime + 1, openClaimAfter: REAL.openClaimAfter + 7 });

  it.each(["queue", "execute"] as const)("by %s stands there whole, whatever a provider says of today's", async (functionName) => {
    const data = encodeFunctionData({ abi: STEWARD_CALLS, functionName, args: [1n, announcedWord, 0n] });
    const call = await read({ to: NETWORK.contracts.Steward, data, value: 0n, label: `steward.${functionName}` });
    const change = changeOf(1n, announcedWord, 0n);
    const names = POLICY_FIELDS.map(([name]) => name);
    for (const today of [unpackPolicy(announcedWord), REAL, null]) {
      const told = summaryOf(call, NETWORK, today);
      // The difference keeps the library's words.
      expect(told.what.endsWith(changeText(change, "waiting", today, NETWORK.asset))).toBe(true);
      expect(told.rows.slice(1).map(([name]) => name)).toEqual(names);
      expect(told.rows).toContainEqual(["ack_time", announced(change, NETWORK.asset).find(([name]) => name === "ack_time")?.[1]]);
    }
  });

  it("has a row for each lane of the word that may be set", () => {
    const lanes = WORDS.policy.lanes.map(({ name }) => name);
    expect(POLICY_FIELDS.map(([, field]) => String(field)).sort()).toEqual([...lanes].map(String).sort());
  });

  it("is the only change with such rows", () => {
    expect(announced(changeOf(2n, 5n, 0n), NETWORK.asset)).toEqual([]);
  });
});

describe("a post", () => {
  const plain = DATA.others.find((one) => one.function === "post" && one.network === "coin")?.document;

  async function posting(change: (terms: Terms) => Partial<Terms>, parents: readonly Hex[] = []): Promise<readonly [CallSummary, Terms]> {
    const [given] = await preparedOf(JSON.stringify(plain), NETWORK);
    const old = termsIn(given?.args ?? {});
    const base = { ...old, maxAttempts: 7, parentsHash: parentsHash(parents) };
    const terms = { ...base, ...change(base) };
    return [await tell(postCall(NETWORK, terms, [...parents]), given?.from), terms];
  }

  it("says what it pays to keepers, who may be anybody", async () => {
    const [{ rows }, { keeperFee }] = await posting((terms) => ({ keeperFee: price(terms) % 2n ** 80n, units: 2, chunk: 1, replicas: 1 }));
    const [sum, fee] = [14n * keeperFee, keeperFee].map((one) => formatAmount(one, NETWORK.asset));
    expect(rows).toContainEqual(["keeper fees", `at most ${sum}: 7 attempts a unit, of ${fee}`]);
    expect(rows.map(([name]) => name)).not.toContain("for its start");
  });

  it("that waits says what its start pays besides", async () => {
    const [{ rows }, { keeperFee }] = await posting(() => ({}), [`0x${"0".repeat(63)}1`, `0x${"e".repeat(64)}`]);
    expect(rows).toContainEqual(["for its start", `${formatAmount(keeperFee, NETWORK.asset)} for whoever starts it`]);
  });
});

describe("the document of a registration or an offer", () => {
  const theirs = '{"country":"de","gateways":["https://a.example","https://gateway.attacker.example"],"gpus":[],"software":"","version":1}';

  async function calls(document: string, digestOf = document): Promise<readonly Call[]> {
    const manifest = { digest: toHex(await sha256(utf8(digestOf))), document: document === "" ? ("0x" as const) : toHex(utf8(document)) };
    return [registerCall(NETWORK, ME, OFFER, manifest, 10n ** 18n), updateOfferCall(NETWORK, 7, OFFER, manifest)].map((call) => call);
  }

  it("is shown: each gateway whole", async () => {
    for (const call of await calls(theirs)) {
      expect((await tell(call)).rows.filter(([name]) => name.startsWith("manifest: "))).toEqual([
        ["manifest: country", "de"],
        ["manifest: gateways 1", "https://a.example"],
        ["manifest: gateways 2", "https://gateway.attacker.example"],
        ["manifest: gpus", "none"],
        ["manifest: software", "none"],
        ["manifest: version", "1"],
      ]);
    }
  });

  it("is shown whole as long as it may be, and what hides in it is made visible", () => {
    const long = "a".repeat(MANIFEST_BYTES - 100);
    const rows = manifestRows(toHex(utf8(`{"gateways":["https://\u202e${long}"],"other\u200b":{"a":1},"version":1}`)));
    expect(rows).toEqual([
      ["manifest: gateways", `https://U+202E${long}`],
      ['manifest: "otherU+200B", which no program reads', "a 1"],
      ["manifest: version", "1"],
    ]);
  });

  it("is told to be missing where the call carries none", async () => {
    for (const call of await calls("", theirs)) {
      expect((await tell(call)).rows.at(-1)?.[1]).toMatch(/^not in this call/);
    }
  });

  it.each([
    ["of nothing but text", "x".repeat(400)],
    ["of another version", '{"version":2}'],
    ["of gateways that are no list", '{"gateways":"https://a.example","version":1}'],
    ["of no canonical form", '{ "version":1}'],
    ["that is longer than one", `{"software":"${"x".repeat(MANIFEST_BYTES)}","version":1}`],
  ])("%s is refused", async (_, document) => {
    for (const call of await calls(document)) expect(await read(call).then(() => "taken", codeOf)).toBe("BAD_TX");
  });

  it("of another digest than the call's is refused, and behind a call that names none", async () => {
    const { document } = await firstManifest("de");
    for (const call of await calls(theirs, "another")) expect(await read(call).then(() => "taken", codeOf)).toBe("BAD_TX");
    const data = encodeFunctionData({ abi: STEWARD_CALLS, functionName: "accept_council" });
    const call = { to: NETWORK.contracts.Steward, data: `${data}${document.slice(2)}` as Hex, value: 0n, label: "steward.accept_council" };
    expect(await read(call).then(() => "taken", codeOf)).toBe("BAD_TX");
  });
});
