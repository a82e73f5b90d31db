// What is compared on another machine: by the library's own words for the same data, and of nothing but the data.
import { keccak256 } from "viem/utils";
import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { fourWords, fingerprintOf } from "../src/core/call-fingerprint";
import { networkOf } from "../src/core/network";
import { preparedOf } from "../src/core/prepared";
import { summaryOf } from "../src/core/call-summary";
import { vectors } from "./vectors";

interface Told {
  readonly what: string;
  readonly rows: readonly (readonly [string, string])[];
  readonly data_hash: Hex;
  readonly job: Hex | null;
  readonly four_words: string | null;
}
type Case = { readonly network: "coin" | "token" } & ({ readonly code: string } | { readonly calls: readonly Told[] });

const DATA = vectors<{
  readonly networks: Readonly<Record<"coin" | "token", unknown>>;
  readonly files: readonly (Case & { readonly text: string })[];
  readonly alone: readonly (Case & { readonly to: Hex; readonly data: Hex })[];
  readonly words: readonly { readonly job: Hex; readonly words: string }[];
}>("call_summary");
const NETWORKS = { coin: networkOf(DATA.networks.coin), token: networkOf(DATA.networks.token) };

describe("a file of prepared calls", () => {
  it.each(DATA.files.map((one, place) => [place, one] as const))("%i is told, or refused, as the library does", async (_, one) => {
    const network = NETWORKS[one.network];
    if ("code" in one) {
      await expect(preparedOf(one.text, network).then((calls) => calls.map((call) => summaryOf(call, network, null)))).rejects.toSatisfy((error) => codeOf(error) === one.code);
      return;
    }
    const calls = await preparedOf(one.text, network);
    const found = calls.map((call) => {
      const { what, rows } = summaryOf(call, network, null);
      const { hash, job, words } = fingerprintOf(call, network);
      return { what, rows, data_hash: hash, job: job ?? null, four_words: words ?? null };
    });
    expect(found).toEqual(one.calls);
  });
});

describe("data alone", () => {
  it.each(DATA.alone.map((one, place) => [place, one] as const))("%i has the library's hash and words", (_, one) => {
    const { hash, job, words } = fingerprintOf(one, NETWORKS[one.network]);
    // What the library tells nobody is about no job, and has its hash all the same.
    if ("code" in one) {
      expect([one.code, hash, job, words]).toEqual(["BAD_TX", keccak256(one.data), undefined, undefined]);
      return;
    }
    const [told] = one.calls;
    expect([hash, job ?? null, words ?? null]).toEqual([told?.data_hash, told?.job, told?.four_words]);
  });

  it("of another contract is of no job, whatever it says", () => {
    const [post] = DATA.alone;
    const elsewhere = { to: `0x${"99".repeat(20)}` as const, data: post?.data as Hex };
    expect(fingerprintOf(elsewhere, NETWORKS.coin).words).toBe(undefined);
  });

  it("that is no call has its hash all the same", () => {
    const data = "0x12345678ff" as const;
    expect(fingerprintOf({ to: NETWORKS.coin.contracts.JobRegistry, data }, NETWORKS.coin)).toMatchObject({ job: undefined, words: undefined });
  });
});

it.each(DATA.words)("the words of $job are the library's", ({ job, words }) => {
  expect(fourWords(job)).toBe(words);
});
