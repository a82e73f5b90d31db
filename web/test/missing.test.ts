// Every field of a provider's answers missing, null, zero and garbled: what each comes to in the page. What is missing is never
// 0. tests/chain/test_missing.py has the table of the library.

import { describe, expect, it } from "vitest";

import { block, receipt } from "../src/chain/answers";
import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { logsOf } from "../src/core/logs";
import { refusal } from "./refusal";
import { vectors } from "./vectors";

interface Receipts {
  readonly receipt: Whole & { readonly transactionHash: Hex };
  readonly cases: readonly { readonly changes: Whole; readonly out: unknown }[];
}

const RECEIPTS = vectors<Receipts>("receipts");
const HASH = `0x${"cd".repeat(32)}` as const;
const ADDRESS = `0x${"ab".repeat(20)}` as const;
const BLOCK = { number: "0x7", hash: HASH, parentHash: HASH, timestamp: "0x64" };
const LOG = {
  ...{ address: ADDRESS, topics: [HASH], data: "0x12", blockNumber: "0x7", blockHash: HASH, transactionHash: HASH },
  ...{ transactionIndex: "0x1", logIndex: "0x2", removed: false },
};
const RECEIPT = {
  ...{ transactionHash: HASH, blockNumber: "0x7", blockHash: HASH, gasUsed: "0x64", effectiveGasPrice: "0x4", from: ADDRESS, logs: [LOG] },
  ...{ l1Fee: "0x9", operatorFee: "0x8" },
};

type Whole = Readonly<Record<string, unknown>>;
const READS: Readonly<Record<string, readonly [Whole, (raw: unknown) => unknown]>> = {
  block: [BLOCK, (raw) => block(raw).time],
  log: [LOG, (raw) => logsOf([raw]).length],
  receipt: [
    RECEIPT,
    (raw) => {
      const found = receipt(raw, HASH);
      return found === undefined ? "not mined" : (found.fee ?? "not said");
    },
  ],
};
const LIES = "RPC_LIES";
const BROKEN = "RPC_BROKEN";
const DIGEST = `0x${"00".repeat(32)}`;
const NOBODY = `0x${"00".repeat(20)}`;

// What a field comes to that is missing, null, zero (or empty: the value before) and garbled.
const ROWS: readonly (readonly [string, string, unknown, unknown, unknown, unknown, unknown])[] = [
  ["block", "number", "0x0", LIES, LIES, 100, LIES],
  ["block", "hash", DIGEST, LIES, LIES, 100, LIES],
  ["block", "parentHash", DIGEST, LIES, LIES, 100, LIES],
  ["block", "timestamp", "0x0", LIES, LIES, 0, LIES],
  ["log", "address", NOBODY, BROKEN, BROKEN, 1, BROKEN],
  ["log", "topics", [], BROKEN, BROKEN, 1, BROKEN],
  ["log", "data", "0x", BROKEN, BROKEN, 1, BROKEN],
  ["log", "blockNumber", "0x0", BROKEN, BROKEN, 1, BROKEN],
  ["log", "blockHash", DIGEST, BROKEN, BROKEN, 1, BROKEN],
  ["log", "transactionHash", DIGEST, BROKEN, BROKEN, 1, BROKEN],
  ["log", "transactionIndex", "0x0", 1, 1, 1, BROKEN],
  ["log", "logIndex", "0x0", BROKEN, BROKEN, 1, BROKEN],
  ["log", "removed", false, 1, 1, 1, BROKEN],
  ["receipt", "transactionHash", DIGEST, LIES, LIES, LIES, LIES],
  ["receipt", "blockNumber", "0x0", "not mined", "not mined", 417n, LIES],
  ["receipt", "blockHash", DIGEST, LIES, LIES, LIES, LIES],
  ["receipt", "gasUsed", "0x0", LIES, LIES, 17n, LIES],
  ["receipt", "effectiveGasPrice", "0x0", "not said", "not said", "not said", LIES],
  ["receipt", "from", NOBODY, LIES, LIES, 417n, LIES],
  ["receipt", "logs", [], BROKEN, BROKEN, 417n, BROKEN],
  ["receipt", "l1Fee", "0x0", 408n, 408n, 408n, LIES],
  ["receipt", "operatorFee", "0x0", 409n, 409n, 409n, LIES],
];

describe("an answer", () => {
  it.each(ROWS)("whose %s has an odd %s comes to what the table says", (kind, field, zero, ...expected) => {
    const [whole, read] = READS[kind] as (typeof READS)[string];
    const { [field]: _, ...without } = whole;
    const found = [without, { ...whole, [field]: null }, { ...whole, [field]: zero }, { ...whole, [field]: "0xzz" }].map((raw) => {
      try {
        return read(raw);
      } catch (error) {
        return codeOf(error);
      }
    });
    expect(found).toEqual(expected);
  });

  it.each(RECEIPTS.cases.map((one) => [JSON.stringify(one.changes), one] as const))("of a receipt with %s comes to what the library says", (_, { changes, out }) => {
    const told = (): unknown => {
      const found = receipt({ ...RECEIPTS.receipt, ...changes }, RECEIPTS.receipt.transactionHash);
      return found === undefined ? "not mined" : { gas: Number(found.gas), fee: found.fee === undefined ? null : Number(found.fee) };
    };
    const code = refusal(told);
    expect(code === null ? told() : "refused").toEqual(out);
    expect([null, LIES]).toContain(code);
  });

  it("whose time is in milliseconds is none", () => {
    expect(() => block({ ...BLOCK, timestamp: `0x${(1_800_000_000_000).toString(16)}` })).toThrow("milliseconds");
  });

  it("that only the pool has is of no block yet", () => {
    expect(receipt({ ...RECEIPT, blockNumber: null, blockHash: null, status: null }, HASH)).toBeUndefined();
    expect(receipt(null, HASH)).toBeUndefined();
  });
});
