import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { escrowAtPost } from "../src/core/money";
import { networkOf } from "../src/core/network";
import { packTerms } from "../src/core/words";
import { acceptCall, approveOf, type Call, cancelCall, postCall, withdrawCall } from "../src/wallet/calls";
import { termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Said {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: string;
  readonly label: string;
}

interface Case {
  readonly network: "coin" | "token";
  readonly terms: readonly string[];
  readonly parents: readonly Hex[];
  readonly index: string;
  readonly to: Hex;
  readonly amount: string;
  readonly post: Said;
  readonly approve: Said | null;
  readonly cancel: Said;
  readonly accept: Said;
  readonly withdraw: Said;
}

const DATA = vectors<{ readonly networks: Readonly<Record<string, unknown>>; readonly cases: readonly Case[] }>("calls");

const said = (call: Call): Said => ({ ...call, value: String(call.value) });

describe("calls", () => {
  it("are the library's", () => {
    for (const one of DATA.cases) {
      const network = networkOf(DATA.networks[one.network]);
      const { address } = network.asset;
      const terms = termsOf(one.terms);
      const index = BigInt(one.index);
      expect(said(postCall(network, terms, one.parents))).toEqual(one.post);
      expect(said(cancelCall(network, packTerms(terms), index))).toEqual(one.cancel);
      expect(said(acceptCall(network, packTerms(terms), index))).toEqual(one.accept);
      expect(said(withdrawCall(network, one.to, BigInt(one.amount)))).toEqual(one.withdraw);
      const approve = address === null ? null : said(approveOf(address, network.contracts.JobRegistry, escrowAtPost(terms)));
      expect(approve).toEqual(one.approve);
    }
  });

  it("pay with the call in a coin, and with an exact approval in a token", () => {
    for (const { network, post, approve } of DATA.cases) {
      if (network === "coin") expect(BigInt(post.value)).toBeGreaterThan(0n);
      else expect([post.value, BigInt(approve?.value ?? -1), approve?.data.length]).toEqual(["0", 0n, 138]);
    }
  });
});
