import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { escrowAtPost } from "../src/core/money";
import { networkOf } from "../src/core/network";
import { creditFor, requirePrice } from "../src/core/posting";
import { preparedOf } from "../src/core/prepared";
import { jobIdOfWords } from "../src/core/terms";
import { type TermsWords, unpackTerms } from "../src/core/words";
import { fileOf } from "../src/wallet/credit";
import type { Entry } from "../src/wallet/journal";
import { vectors } from "./vectors";

interface Purse {
  readonly coin: string;
  readonly asset: string;
  readonly credit: string;
  readonly use: boolean;
  readonly pays: string | null;
  readonly message: string;
}

interface Told {
  readonly network: unknown;
  readonly fees: { readonly base: string; readonly tip: string };
  readonly terms: readonly string[];
  readonly purses: readonly Purse[];
  readonly signed: readonly { readonly credit: string; readonly documents: readonly unknown[] }[];
}

// The command says "this job and its gas take" of nothing but gas too.
const plain = (message: string): string => message.replace(/, and (?:the gas of )?(.*?),?(?: and its gas)? takes? /, ", and $1 takes ");

describe.each(vectors<readonly Told[]>("credit").map((one) => [(one.network as { asset: { symbol: string } }).asset.symbol, one] as const))("credit in a market of %s", (_, told) => {
  const network = networkOf(told.network);
  const words = told.terms.map((word, at) => (at === 1 || at === 8 ? word : BigInt(word))) as unknown as TermsWords;
  const terms = unpackTerms(words);
  const escrow = escrowAtPost(terms);

  it.each(told.purses)("of $credit beside $coin and $asset pays what the command takes: $use", ({ coin, asset, credit, use, pays, message }) => {
    const purse = { coin: BigInt(coin), asset: BigInt(asset), credit: BigInt(credit), allowance: 0n };
    const chosen = use ? creditFor(purse.credit, escrow) : 0n;
    let said = "";
    try {
      requirePrice(terms.submitter, network, purse, escrow, chosen, { base: BigInt(told.fees.base), tip: BigInt(told.fees.tip) });
    } catch (error) {
      said = (error as HearthError).message;
      expect((error as HearthError).code).toBe("FUNDS_SHORT");
    }
    expect(plain(said)).toBe(plain(message));
    if (pays !== null) expect(String(chosen)).toBe(pays);
  });

  it.each(told.signed)("of $credit is withdrawn before the post, in the command's documents", async ({ credit, documents }) => {
    const job = jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, words);
    const entry = { kept: { job, parents: [] as readonly Hex[] }, terms } as unknown as Entry;
    const text = fileOf({ entry, posted: false, credit: BigInt(credit) }, network);
    const found = JSON.parse(text) as Record<string, unknown>;
    expect(found["prepared"] ?? [found]).toEqual(documents);
    // Whoever signs it here reads it as what it is.
    const read = await preparedOf(text, network);
    expect(read.map((one) => one.function)).toEqual(credit === "0" ? ["post"] : ["withdraw", "post"]);
  });
});
