import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { carried, countryIn, firstManifest, movedManifest } from "../src/core/manifest";
import { networkOf } from "../src/core/network";
import { commandsOf, offerOf, type Wish, wishOf } from "../src/core/offer";
import { recipientOf } from "../src/core/recipient";
import { waitsOf } from "../src/core/obstacles";
import { packOffer, unpackOffer } from "../src/core/words";
import { approveOf, type Call } from "../src/wallet/calls";
import * as owner from "../src/wallet/owner-calls";
import { nodeOf, type NodeFields } from "./lanes";
import { vectors } from "./vectors";

interface Said {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: string;
  readonly label: string;
}

interface Told {
  readonly networks: Readonly<Record<"coin" | "token", unknown>>;
  readonly offers: readonly { readonly wish: Wish; readonly word?: string; readonly field?: string }[];
  readonly manifests: readonly {
    readonly data: Hex;
    readonly digest: Hex;
    readonly carried: Hex | null;
    readonly country: string;
    readonly first: { readonly document: Hex; readonly digest: Hex };
  }[];
  readonly recipients: readonly { readonly text: string; readonly address?: Hex; readonly code?: string }[];
  readonly calls: readonly {
    readonly network: "coin" | "token";
    readonly offer: string;
    readonly node: number;
    readonly account: Hex;
    readonly amount: string;
    readonly ask: string;
    readonly document: Hex;
    readonly digest: Hex;
    readonly made: Readonly<Record<string, Said>>;
    readonly approve: Said | null;
  }[];
  readonly waits: readonly { readonly node: NodeFields; readonly now: number; readonly waits: readonly unknown[] }[];
}

const TOLD = vectors<Told>("owners");
const COIN = networkOf(TOLD.networks.coin);

const fieldOf = (read: () => unknown): unknown => {
  try {
    return read();
  } catch (error) {
    if (error instanceof HearthError && error.code === "BAD_OFFER") return error.details["field"];
    throw error;
  }
};

const said = (call: Call): Said => ({ ...call, value: String(call.value) });

describe("an offer", () => {
  it("is that of worker.toml, and is refused for the same field", () => {
    for (const { wish, word, field } of TOLD.offers) {
      const found = fieldOf(() => `0x${packOffer(offerOf(wish, COIN.asset)).toString(16)}`);
      expect([wish, found]).toEqual([wish, word ?? field]);
    }
  });

  it("is written as it is read", () => {
    for (const { wish, word } of TOLD.offers) {
      if (word === undefined) continue;
      const offer = unpackOffer(BigInt(word));
      const again = offerOf(wishOf(offer, offer.ask, wish.country, COIN.asset), COIN.asset);
      expect({ ...again, ask: 0n }).toEqual({ ...offer, ask: 0n });
    }
  });

  it("keeps a GPU whose model the table lacks, of either vendor", () => {
    const [{ wish }] = TOLD.offers as [Told["offers"][0]];
    const bare = { ...wish, gpus: "1", vram: "20", runtimes: ["docker" as const] };
    for (const model of ["nvidia tier-1", "amd tier-1", "nvidia tier-1023"]) {
      const offer = offerOf({ ...bare, model }, COIN.asset);
      expect(wishOf(offer, offer.ask, wish.country, COIN.asset).model).toBe(model);
    }
    for (const model of ["", "tier-1", "nvidia tier-0", "nvidia tier-1024", "intel tier-1", "nvidia rtx-4090"]) {
      expect(fieldOf(() => offerOf({ ...bare, model }, COIN.asset))).toBe("offer.gpus");
    }
  });

  it("comes with the commands for its machine", () => {
    const [{ wish }] = TOLD.offers as [Told["offers"][0]];
    expect(commandsOf(wish, "0xab")).toEqual([
      'hearth worker init --price "0.60/h" --country de --payout 0xab --slots 2 --runtimes wasm --gpus none --cores 4 --memory "16GiB" --disk "100GiB"',
      "hearth worker doctor",
      "hearth worker start",
    ]);
  });
});

describe("a manifest", () => {
  it("is read out of the call that carries it", async () => {
    for (const one of TOLD.manifests) expect(await carried(one.data, one.digest)).toBe(one.carried ?? undefined);
  });

  it("of a node whose machine has not spoken names its country", async () => {
    for (const { country, first } of TOLD.manifests) expect(await firstManifest(country.toUpperCase())).toEqual(first);
  });

  it("keeps what it says when its node moves, and is begun anew where it says nothing", async () => {
    for (const { carried: document, country, first } of TOLD.manifests) {
      if (document === null) continue;
      const moved = await movedManifest(document, "fr");
      expect(countryIn(moved.document)).toBe("fr");
      expect((await movedManifest(moved.document, country)).document).toBe(document);
      expect(await movedManifest("0x7b7d", country)).toEqual(first);
      expect([countryIn(document), countryIn("0xff"), countryIn(undefined)]).toEqual([country, "", ""]);
    }
  });
});

describe("an address", () => {
  it("is taken and refused as by the commands", () => {
    for (const { text, address, code } of TOLD.recipients) {
      const found = (): string => {
        try {
          return recipientOf(text, COIN);
        } catch (error) {
          return (error as HearthError).code;
        }
      };
      expect([text, found()]).toEqual([text, address ?? code]);
    }
  });
});

describe("an owner's calls", () => {
  it("are the library's", () => {
    for (const one of TOLD.calls) {
      const network = networkOf(TOLD.networks[one.network]);
      const offer = unpackOffer(BigInt(one.offer));
      const { node, account, made } = one;
      const amount = BigInt(one.amount);
      const manifest = { document: one.document, digest: one.digest };
      const found = {
        register: owner.registerCall(network, account, offer, manifest, amount),
        add_stake: owner.addStakeCall(network, node, account, amount),
        update_offer: owner.updateOfferCall(network, node, offer, manifest),
        set_ask: owner.setAskCall(network, node, BigInt(one.ask)),
        set_operator: owner.setOperatorCall(network, node, account),
        offer_owner: owner.offerOwnerCall(network, node, account),
        accept_owner: owner.acceptOwnerCall(network, node),
        exit_start: owner.exitStartCall(network, node),
        exit_cancel: owner.exitCancelCall(network, node),
        exit_finish: owner.exitFinishCall(network, node),
      };
      expect(Object.fromEntries(Object.entries(found).map(([name, call]) => [name, said(call)]))).toEqual(made);
      const { address } = network.asset;
      const approve = address === null ? null : said(approveOf(address, network.contracts.NodeRegistry, amount));
      expect(approve).toEqual(one.approve);
      expect(owner.ownerGas(found.register)).toBe(300_000n + 40n * BigInt((found.register.data.length - 2) / 2 - 256 > 0 ? (found.register.data.length - 2) / 2 - 256 : 0));
    }
  });
});

describe("what keeps a node from work", () => {
  it("is what the commands say", () => {
    for (const { node, now, waits } of TOLD.waits) {
      expect(waitsOf(nodeOf(node), now, COIN.nodeParameters, COIN.asset)).toEqual(waits);
    }
  });
});
