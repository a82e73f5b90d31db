// The manifest of before, which an owner signs again: a log that somebody made up names none, whoever made it up.
import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import type { Market } from "../src/chain/market";
import { readManifest } from "../src/chain/owning";
import { sha256, toHex, utf8, type Hex } from "../src/core/bytes";
import { manifestRows } from "../src/core/manifest";
import { codeOf } from "../src/core/errors";
import { topicOf } from "../src/core/events";
import type { Log } from "../src/core/logs";
import { networkOf } from "../src/core/network";
import { offerOf } from "../src/core/offer";
import { packOffer } from "../src/core/words";
import { updateOfferCall } from "../src/wallet/owner-calls";
import { vectors } from "./vectors";

const NETWORK = networkOf(vectors<{ networks: Record<string, unknown> }>("calls").networks["coin"]);
const NODE = 7;
const word = (value: bigint | number): string => BigInt(value).toString(16).padStart(64, "0");
const hash = (digit: string): Hex => `0x${digit.repeat(64)}`;
const AT: Block = { number: 900, hash: hash("c"), parent: hash("b"), time: 1_760_000_000 };
const OFFER = offerOf(
  { price: "0.1/h", country: "de", slots: "1", runtimes: ["wasm"], gpus: "0", model: "", vram: "", cores: "2", memory: "4GiB", disk: "10GiB" },
  NETWORK.asset,
);
const DOCUMENT = toHex(utf8('{"country":"de","gateways":["https://gateway.example"],"gpus":[],"software":"","version":1}'));

type Json = Readonly<Record<string, unknown>>;

async function chain() {
  const digest = toHex(await sha256(utf8(Buffer.from(DOCUMENT.slice(2), "hex").toString())));
  const log: Log = {
    address: NETWORK.contracts.NodeRegistry,
    topics: [topicOf("OfferChanged"), `0x${word(NODE)}`],
    data: `0x${word(packOffer({ ...OFFER, ask: 0n }))}${digest.slice(2)}`,
    blockNumber: 800,
    blockHash: hash("f"),
    txHash: hash("7"),
    logIndex: 3,
  };
  const { data } = updateOfferCall(NETWORK, NODE, OFFER, { digest, document: DOCUMENT });
  const call: Json = { hash: log.txHash, blockHash: log.blockHash, to: log.address, input: data };
  const said: Json = { ...log, blockNumber: "0x320", logIndex: "0x3", transactionHash: log.txHash };
  const mined: Json = { transactionHash: log.txHash, blockNumber: said["blockNumber"], blockHash: log.blockHash, from: `0x${"7f".repeat(20)}`, gasUsed: "0x1", logs: [said] };
  return { log, call, said, mined };
}

function read(log: Log, call: Json | null, mined: Json | null): Promise<Hex | undefined> {
  const market = {
    network: NETWORK,
    rpc: { one: async (method: string) => (method === "eth_getTransactionByHash" ? call : mined) },
    past: {
      async *logs() {
        yield { from: 0, to: 900, logs: [log] };
      },
    },
  } as unknown as Market;
  return readManifest(market, NODE, AT);
}

describe("the rows of a manifest", () => {
  it("show each GPU with its figures, and quote a stranger's texts", () => {
    const gpu = '{"driver":"570, vram_gib 99","measured":{"at":1796000000,"half_gflops":149999},"name":"RTX 4090","vram_gib":24}';
    const told = `{"country":"","gateways":[],"gpus":[${gpu},{"a b":1,"name":"L4"}],"software":"","version":1}`;
    const rows = manifestRows(toHex(utf8(told)));
    expect(rows?.filter(([name]) => name.startsWith("manifest: gpus"))).toEqual([
      ["manifest: gpus 1", 'driver "570, vram_gib 99", measured at 1796000000, half_gflops 149999, name "RTX 4090", vram_gib 24'],
      ["manifest: gpus 2", '"a b" 1, name "L4"'],
    ]);
  });
});

describe("the manifest of a node", () => {
  it("is the document of the call that wrote its log", async () => {
    const { log, call, mined } = await chain();
    expect(await read(log, call, mined)).toBe(DOCUMENT);
  });

  it("is found in a wallet's own call that holds the owner's", async () => {
    const { log, call, mined } = await chain();
    const inside = { ...call, to: `0x${"5a".repeat(20)}`, input: `0xdeadbeef${String(call["input"]).slice(2)}00` };
    expect(await read(log, inside, mined)).toBe(DOCUMENT);
  });

  it("is not known where a provider has forgotten the transaction", async () => {
    const { log, call, mined } = await chain();
    expect([await read(log, null, mined), await read(log, call, null)]).toEqual([undefined, undefined]);
  });

  it("is none of a transaction in another block than the log's, or of another hash", async () => {
    const { log, call, mined } = await chain();
    for (const other of [{ blockHash: hash("1") }, { blockHash: null }, { hash: hash("8") }]) {
      expect(await read(log, { ...call, ...other }, mined).then(() => "taken", codeOf)).toBe("RPC_LIES");
    }
  });

  it("is none of a transaction that wrote no such log", async () => {
    const { log, call, said, mined } = await chain();
    const elsewhere = { ...said, address: `0x${"0e".repeat(20)}` };
    const another = { ...said, topics: [topicOf("OfferChanged"), `0x${word(8)}`] };
    for (const logs of [[], [elsewhere], [another], [{ ...said, data: `0x${word(0)}${word(0)}` }]]) {
      expect(await read(log, call, { ...mined, logs }).then(() => "taken", codeOf)).toBe("RPC_LIES");
    }
  });
});
