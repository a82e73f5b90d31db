import { keccak256 } from "viem/utils";
import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { networkOf } from "../src/core/network";
import type { Posted } from "../src/core/posted";
import { storedUnit } from "../src/core/stored";
import { byPay, inTurn, isWorth, silences, type Task, tasksOf, type Work } from "../src/core/upkeep";
import { packTerms, unpackHeader } from "../src/core/words";
import { SENTINEL } from "../src/generated/bounds";
import type { Call } from "../src/wallet/calls";
import { batchCall, canBatch, taskCall } from "../src/wallet/upkeep";
import { big, type Json, type NodeFields, nodeOf, policyOf, termsOf, written } from "./lanes";
import { vectors } from "./vectors";

type Said = { readonly to: string; readonly data: string; readonly label: string };

interface Case {
  readonly terms: readonly string[];
  readonly unit: string;
  readonly header: string | null;
  readonly parents: readonly Hex[];
  readonly words: readonly string[];
  readonly nodes: readonly NodeFields[];
  readonly deadAfter: number;
  readonly now: number;
  readonly tasks: readonly { readonly does: string; readonly index: string; readonly pay: Json; readonly gas: number; readonly worth: readonly boolean[]; readonly call: Said }[];
  readonly batch: Said;
  readonly silent: readonly number[];
  readonly silencesPay: Json;
  readonly silence: Said | null;
}

const DATA = vectors<{ readonly network: unknown; readonly payee: Hex; readonly fee: string; readonly prices: readonly string[]; readonly cases: readonly Case[] }>("upkeep");
const network = networkOf(DATA.network);

function postedOf(one: Case): Posted {
  const terms = termsOf(one.terms);
  const log = { address: network.contracts.JobRegistry, topics: [], data: "0x", blockNumber: 1, logIndex: 0 } as const;
  const zero = `0x${"00".repeat(32)}` as const;
  return { jobId: `0x${"07".repeat(32)}`, terms, packed: packTerms(terms), parents: one.parents, log: { ...log, blockHash: zero, txHash: zero } };
}

// What is due of a case: of its unit as that of a job, and of its header beside no unit.
function dueOf(one: Case): Task[] {
  const posted = postedOf(one);
  const parents = new Map(one.parents.slice(1).map((job, at) => [job, BigInt(one.words[at] as string)]));
  const beats = new Map(one.nodes.map((node) => [node.id, nodeOf(node).state.beat]));
  const work: Work = { posted, policy: policyOf(one.terms[7] as string), header: null, stored: [storedUnit(BigInt(one.unit), 0n, 0n)], parents };
  const found = tasksOf(work, one.now, beats, one.deadAfter);
  if (one.header === null) return found;
  return [...found, ...tasksOf({ ...work, stored: [], header: unpackHeader(BigInt(one.header)) }, one.now, beats, one.deadAfter)];
}

const plain = ({ to, data, label }: Call): Said => ({ to, data: keccak256(data), label });

describe("what a keeper finds to do", () => {
  it.each(DATA.cases.map((one, at) => [at, one] as const))("is the library's, and so are its calls (%i)", (_, one) => {
    const found = dueOf(one);
    const told = found.map((task) => ({
      does: task.does,
      index: String(task.index),
      pay: written(task.pay),
      gas: Number(task.gas),
      worth: DATA.prices.map((price) => isWorth(task, BigInt(price))),
      call: plain(taskCall(network, task, DATA.payee)),
    }));
    expect(told).toEqual(one.tasks);
    expect(plain(batchCall(network, found, DATA.payee))).toEqual(one.batch);
    const silent = silences(one.nodes.map(nodeOf), one.now, one.deadAfter, big(DATA.fee));
    expect(silent.map((task) => task.node)).toEqual(one.silent);
    expect(silent.reduce((sum, task) => sum + task.pay, 0n)).toBe(big(one.silencesPay));
    if (silent[0] !== undefined) expect(plain(taskCall(network, silent[0], DATA.payee))).toEqual(one.silence);
  });

  it("has each kind of work among its cases, of arrays' rests too", () => {
    const kinds = new Set(DATA.cases.flatMap((one) => one.tasks.map((task) => `${task.does} ${task.index === "0"}`)));
    expect([...kinds].sort()).toEqual(
      ["close true", "expire false", "expire true", "reclaim true", "settle true", "unlock false", "unlock true"].sort(),
    );
    expect(DATA.cases.filter((one) => one.silent.length > 0).length).toBeGreaterThan(0);
  });

  it("pays no less later, up to what it says", () => {
    for (const one of DATA.cases) {
      const later = new Map(dueOf({ ...one, now: one.now + 10_000 }).map((task) => [`${task.does} ${task.index}`, task]));
      for (const task of dueOf(one)) {
        expect(task.pay <= task.most).toBe(true);
        if (task.does !== "unlock") expect(later.get(`${task.does} ${task.index}`)?.pay).toBe(task.most);
      }
    }
  });

  it("records silence before it takes leases back, as the keeper does", () => {
    const [silence, lease] = [{ does: "check_liveness" }, { does: "reclaim" }] as unknown as readonly [Task, Task];
    expect(inTurn([lease, silence, lease])).toEqual([silence, lease, lease]);
  });

  it("is in the order of its pay, and what unlocks is never one of several", () => {
    const found = byPay(DATA.cases.flatMap(dueOf));
    found.slice(1).forEach((task, at) => expect((found[at] as Task).pay >= task.pay).toBe(true));
    expect(new Set(found.filter((task) => !canBatch(task)).map(({ does }) => does))).toEqual(new Set(["unlock"]));
    expect(found.some(({ index }) => index === SENTINEL)).toBe(true);
    const worths = DATA.cases.flatMap((one) => one.tasks.map(({ worth }) => worth.join()));
    expect(new Set(worths).size).toBeGreaterThan(2);
  });
});
