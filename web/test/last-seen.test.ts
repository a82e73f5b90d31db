import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { marketKey } from "../src/chain/cache";
import { Jobs, type Standing, stateOfStanding, verdictOfStanding } from "../src/chain/jobs";
import { type Kind, LastSeenJobs, MOST_ALONE } from "../src/chain/last-seen";
import { BOUNDS, VisitStore } from "../src/chain/visit-store";
import type { Log } from "../src/core/logs";
import { chainOf, HEAD, hashOf, network, told } from "./chain";
import { FakeStore } from "./scripted-chain";

const at: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };
const LIST: Kind = "last/jobs";
const SEEN = 1_700_000_000_123;

async function all(): Promise<{ jobs: readonly Standing[]; eventsOf: (one: Standing) => Promise<Log[]> }> {
  const reader = new Jobs(chainOf().market);
  const [overview] = await reader.market.read(at, reader.market.overview());
  const { jobs } = await reader.page(reader.end(overview, at), 1_000);
  const eventsOf = async ({ posted }: Standing): Promise<Log[]> => (await reader.events(posted, at)).map(({ log }) => log);
  return { jobs: await reader.standing(jobs, at), eventsOf };
}

const { jobs, eventsOf } = await all();
const [first, second] = jobs as [Standing, Standing];

function visit(store: FakeStore, of = network): LastSeenJobs {
  return new LastSeenJobs(of, marketKey(of), new VisitStore(store, { ...BOUNDS, patience: 50 }));
}

async function kept(most = jobs.length): Promise<FakeStore> {
  const store = new FakeStore();
  await visit(store).keep(LIST, { at, seen: SEEN, jobs: jobs.slice(0, most), events: [] });
  return store;
}

// Change what a store holds, by its text or by what that says.
function alter(store: FakeStore, change: (said: any) => unknown, size = true): void {
  for (const [id, text] of store.texts) {
    const changed = change(JSON.parse(text as string));
    const written = typeof changed === "string" ? changed : JSON.stringify(changed);
    store.texts.set(id, written);
    if (size) store.kept.set(id, { ...(store.kept.get(id) as object), size: written.length });
  }
}

describe("what was shown last", () => {
  it("comes back as it stood, each job by its terms", async () => {
    const last = await visit(await kept()).read(LIST);
    expect(last?.jobs.map((one) => [one.posted.jobId, stateOfStanding(one), verdictOfStanding(one), one.view])).toEqual(
      jobs.map((one) => [one.posted.jobId, stateOfStanding(one), verdictOfStanding(one), one.view]),
    );
    expect([last?.at.number, last?.at.time, last?.seen]).toEqual([HEAD, told.now, SEEN]);
    expect(jobs.length).toBeGreaterThan(3);
  });

  it("holds a job's events, and no other's", async () => {
    const store = new FakeStore();
    const kind: Kind = `last/job/${first.posted.jobId}`;
    const events = await eventsOf(first);
    await visit(store).keep(kind, { at, seen: SEEN, jobs: [first], events });
    expect((await visit(store).read(kind))?.events).toEqual(events);
    const others = await eventsOf(second);
    await visit(store).keep(kind, { at, seen: SEEN, jobs: [first], events: others });
    expect(await visit(store).read(kind)).toBeUndefined();
  });

  const last = <T>(found: readonly T[]): T => found[found.length - 1] as T;
  const ALTERED: Readonly<Record<string, (said: any) => unknown>> = {
    "terms of another id": (said) => {
      const { log } = last<any>(said.jobs);
      log.data = `${log.data.slice(0, 2 + 64 * 4 - 1)}${log.data[2 + 64 * 4 - 1] === "1" ? "2" : "1"}${log.data.slice(2 + 64 * 4)}`;
      return said;
    },
    "a log of another contract": (said) => {
      last<any>(said.jobs).log.address = network.contracts.Escrow;
      return said;
    },
    "a post after its block": (said) => {
      last<any>(said.jobs).log.blockNumber = `0x${(HEAD + 1).toString(16)}`;
      return said;
    },
    "a word that no contract writes": (said) => {
      said.jobs[0].units[0][0] = `0x${"f".repeat(64)}`;
      return said;
    },
    "more units than a job has": (said) => {
      said.jobs[0].units.push(said.jobs[0].units[0]);
      return said;
    },
    "no units": (said) => {
      said.jobs.find((one: any) => one.header === null).units = [];
      return said;
    },
    "a job twice": (said) => ({ ...said, jobs: [...said.jobs, said.jobs[0]] }),
    "a time of no form": (said) => ({ ...said, time: "0x1" }),
    "no time at all": (said) => ({ ...said, seen: -1 }),
    "no jobs": (said) => ({ ...said, jobs: null }),
    "a job of no form": (said) => ({ ...said, jobs: [null] }),
    "events of no form": (said) => ({ ...said, events: 7 }),
    "null": () => "null",
    "a list": () => "[]",
    "no JSON": () => "{",
  };
  for (const [what, change] of Object.entries(ALTERED)) {
    it(`is dropped whole where it holds ${what}`, async () => {
      const store = await kept();
      alter(store, change);
      expect(await visit(store).read(LIST)).toBeUndefined();
      expect(store.kept.size).toBe(0);
    });
  }

  it("is dropped where its text has another size than its head says", async () => {
    const store = await kept();
    alter(store, (said) => ({ ...said, more: 1 }), false);
    expect(await visit(store).read(LIST)).toBeUndefined();
  });

  it("is of the providers that said it", async () => {
    const store = await kept();
    expect(await visit(store, { ...network, rpc: ["http://127.0.0.1:2"] }).read(LIST)).toBeUndefined();
    expect(await visit(store).read(LIST)).toBeDefined();
  });

  it("is the newest where several tabs kept theirs", async () => {
    const store = await kept();
    const [one, other] = [visit(store), visit(store)];
    await Promise.all([one.read(LIST), other.read(LIST)]);
    await one.keep(LIST, { at: { ...at, number: HEAD + 1, hash: hashOf(HEAD + 1) }, seen: SEEN, jobs: [first], events: [] });
    await other.keep(LIST, { at: { ...at, number: HEAD + 2, hash: hashOf(HEAD + 2) }, seen: SEEN, jobs: [second], events: [] });
    expect((await visit(store).read(LIST))?.at.number).toBe(HEAD + 2);
  });

  it("is bounded: of a long list the newest jobs, of jobs the last that were looked at", async () => {
    const store = new FakeStore();
    const many = Array.from({ length: 2_000 }, () => first);
    await visit(store).keep(LIST, { at, seen: SEEN, jobs: many, events: [] });
    expect(store.size).toBeLessThanOrEqual(2 ** 20);
    expect(store.size).toBeGreaterThan(2 ** 18);
    // The newest job is the first.
    await visit(store).keep(LIST, { at, seen: SEEN, jobs: [second, ...many], events: [] });
    const { jobs: held } = JSON.parse([...store.texts.values()].at(-1) as string) as { jobs: { log: { topics: string[] } }[] };
    expect(held.length).toBeLessThan(many.length);
    expect(held.map(({ log }) => log.topics[1]).slice(0, 2)).toEqual([second, first].map(({ posted }) => posted.jobId));
  });

  it("is bounded: of jobs alone those that were looked at last", async () => {
    const store = new FakeStore();
    let now = 1_000;
    const shelf = new LastSeenJobs(network, marketKey(network), new VisitStore(store, { ...BOUNDS, patience: 50, now: () => now }));
    const look = async (place: number): Promise<void> => {
      now += 1;
      await shelf.keep(`last/job/${hashOf(place)}` as Kind, { at, seen: SEEN, jobs: [first], events: [] });
    };
    for (let place = 0; place < MOST_ALONE; place += 1) await look(place);
    // The first is looked at again, so that the second was looked at longest ago.
    await look(0);
    for (const place of [MOST_ALONE, MOST_ALONE + 1]) await look(place);
    const kinds = [...store.kept.values()].map((head) => (head as { kind: string }).kind);
    const places = [0, ...Array.from({ length: MOST_ALONE - 1 }, (_, one) => one + 3)];
    expect(kinds.sort()).toEqual(places.map((place) => `last/job/${hashOf(place)}`).sort());
  });

  it("is not read where it is longer than what this page keeps", async () => {
    const store = await kept();
    alter(store, (said) => ({ ...said, more: "x".repeat(2 ** 20) }));
    const asked: string[] = [];
    store.fault = (call) => void asked.push(call);
    expect(await visit(store).read(LIST)).toBeUndefined();
    expect([asked.includes("text"), store.kept.size]).toEqual([false, 0]);
  });

  it("holds events of one job alone", async () => {
    const events = await eventsOf(first);
    const one = { at, seen: SEEN, jobs: [first], events };
    const store = new FakeStore();
    await visit(store).keep(LIST, one);
    expect((await visit(store).read(LIST))?.events).toEqual(events);
    // The market's own events name a job each: beside two jobs none of them is anybody's.
    await visit(store).keep(LIST, { ...one, jobs: [first, second] });
    expect(await visit(store).read(LIST)).toBeUndefined();
  });

  it("is nothing where the store fails, and nobody hears of it", async () => {
    for (const call of ["heads", "text", "write"] as const) {
      const store = await kept();
      const before = [...store.texts];
      store.fault = (one) => {
        if (one === call) throw new Error("it is broken");
      };
      const own = visit(store);
      await own.keep(LIST, { at, seen: SEEN, jobs: [first], events: [] });
      expect(await own.read(LIST)).toBeUndefined();
      // What could not be written leaves what was kept before to the next visit.
      if (call !== "write") continue;
      expect([...store.texts]).toEqual(before);
      store.fault = () => undefined;
      expect((await visit(store).read(LIST))?.jobs.length).toBe(jobs.length);
    }
  });
});
