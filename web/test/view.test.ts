import { describe, expect, it } from "vitest";

import { codeOf } from "../src/core/errors";
import { nextStep, verification } from "../src/core/steps";
import { bestOf, jobOf, keptResult, resumedFrom, storedLease, storedUnit } from "../src/core/stored";
import type { Header } from "../src/core/types";
import { nameOf } from "../src/core/types";
import * as jobs from "../src/core/view";
import { packUnit, unpackHeader } from "../src/core/words";
import { STATE } from "../src/generated/states";
import { type Json, result, termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Job {
  readonly terms: readonly string[];
  readonly header: string | null;
  readonly stored: readonly (readonly [string, string, string])[];
  readonly seen: readonly (readonly [number, number])[];
  readonly deadAfter: number;
  readonly waits: string | null;
  readonly attesters: `0x${string}` | "";
  readonly verify: string;
  readonly looks: readonly {
    readonly now: number;
    readonly next: readonly string[];
    readonly facts: Readonly<Record<string, Json>>;
  }[];
}

interface Told {
  readonly out?: Json;
  readonly code?: string;
}

interface Vectors {
  readonly jobs: readonly Job[];
  readonly storage: {
    readonly jobs: readonly (Told & { readonly word: string })[];
    readonly headers: readonly string[];
    readonly leases: readonly (Told & { header: number; index: number; words: readonly [string, string, string] })[];
    readonly resumed: readonly (Told & { readonly resume: number; readonly words: readonly string[] })[];
    readonly results: readonly (Told & { readonly unit: string; readonly second: string })[];
  };
}

const data = vectors<Vectors>("views");
const hex = (value: bigint): string => `0x${value.toString(16)}`;
const wanted = (told: Told): unknown => ("code" in told ? { code: told.code } : told.out);

function viewOf(job: Job, now: number): jobs.JobView {
  const header = job.header === null ? null : unpackHeader(BigInt(job.header));
  const stored = job.stored.map(([word, second, accused]) => storedUnit(BigInt(word), BigInt(second), BigInt(accused)));
  return jobs.viewOf(termsOf(job.terms), header, stored, now);
}

describe("a job at a block", () => {
  it.each(data.jobs.map((job, at) => [at, job] as const))("is what the library says (%i)", (_, job) => {
    const seen = { lastSeen: new Map(job.seen), deadAfter: job.deadAfter, waits: job.waits, attesters: job.attesters };
    for (const { now, next, facts } of job.looks) {
      const view = viewOf(job, now);
      const found = {
        untouched: jobs.untouched(view),
        blocked: jobs.isBlocked(view),
        finished: jobs.isFinished(view),
        delivered: jobs.isDelivered(view),
        unpaidUntil: jobs.unpaidUntil(view),
        tally: Object.fromEntries(jobs.tallyOf(view)),
        told: jobs.labelOf(view),
        ok: jobs.okCount(view),
        failed: jobs.failedCount(view),
        verdict: jobs.verdictOf(view),
        state: jobs.stateOf(view),
      };
      expect(found, `at ${now}`).toEqual(facts);
      expect(next.map((_, index) => nextStep(view, index, seen)), `at ${now}`).toEqual(next);
    }
    expect(verification(termsOf(job.terms), job.attesters)).toBe(job.verify);
  });

  it("is told in every way", () => {
    const looks = data.jobs.flatMap((job) => job.looks);
    const said = looks.flatMap((look) => look.next);
    const ways = [/^finished/, /^no attempt/, /^better/, /^node \d+ may take/, /any fitting/, /accepts its judge/];
    const more = [/cheaper ones/, /is excluded/, /^anyone may propose/, /is late or silent/, /runs it/, /still submit/];
    const rest = [/notice is over/, /refund it/, /attesters may sign/, /may confirm it/, /may dispute it/, /probation/];
    for (const way of [...ways, ...more, ...rest, /^waits for other/, /^waits for job/, /looks at it/, /not ruled/]) {
      expect(said.some((one) => way.test(one)), String(way)).toBe(true);
    }
    expect(new Set(looks.map((look) => look.facts["verdict"])).size).toBe(4);
  });

  it("has no step of a unit that nobody touched, and no unit beyond its leases", () => {
    const view = viewOf(data.jobs[0] as Job, 0);
    const refused = (call: () => unknown): Json => result(call) as Json;
    const seen = { lastSeen: new Map<number, number>(), deadAfter: 1 };
    expect(refused(() => nextStep(view, view.units.length, seen))).toEqual({ code: "NOT_FOUND" });
    for (const unit of [-1, 0.5, 2 ** 24]) {
      expect(refused(() => jobs.requireUnit(view, unit, "0x00"))).toEqual({ code: "NOT_FOUND" });
    }
    expect(() => jobs.requireUnit(view, 0, "0x00")).not.toThrow();
  });
});

describe("storage", () => {
  it("says what a job's word is", () => {
    for (const one of data.storage.jobs) {
      const found = result(() => {
        const job = jobOf(BigInt(one.word));
        return job.header === null ? nameOf(STATE, job.unit.state) : "header";
      });
      expect(found, one.word).toEqual(wanted(one));
    }
  });

  it("says what a lease of an array is", () => {
    for (const one of data.storage.leases) {
      const header = unpackHeader(BigInt(data.storage.headers[one.header] as string)) as Header;
      const [word, second, accused] = one.words.map(BigInt) as [bigint, bigint, bigint];
      const found = result(() => {
        const lease = storedLease(header, one.index, word, second, accused);
        const best = bestOf(lease);
        return [hex(packUnit(lease.unit)), hex(lease.second), lease.accused.node, best.node, best.payee];
      });
      expect(found, JSON.stringify(one)).toEqual(wanted(one));
    }
  });

  it("says what an attempt was resumed from", () => {
    for (const one of data.storage.resumed) {
      let found: unknown;
      try {
        found = [...resumedFrom(one.resume, one.words.map(BigInt))].map(([at, kept]) => [
          at,
          { ...kept, rate: Number(kept.rate) },
        ]);
      } catch (error) {
        found = { code: codeOf(error) };
      }
      expect(found, JSON.stringify(one)).toEqual(wanted(one));
    }
  });

  it("keeps a result's digest where it is asked to", () => {
    for (const one of data.storage.results) {
      expect(keptResult(storedUnit(BigInt(one.unit), BigInt(one.second), 0n))).toEqual(wanted(one));
    }
  });
});
