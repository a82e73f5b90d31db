import { describe, expect, it } from "vitest";

import type { Block } from "../src/chain/answers";
import { Jobs, progressOf, type Standing, standingAt, stateOfStanding, verdictOfStanding } from "../src/chain/jobs";
import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { unpackParents } from "../src/core/parents";
import type { Posted } from "../src/core/posted";
import { type Chain, chainOf, HEAD, hashOf, isPost, type Lie, only } from "./chain";
import { type Params, rangeOf, type RawLog, told } from "./chain";

const head: Block = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };
const refusal = (promise: Promise<unknown>): Promise<string> => promise.then(() => "taken", codeOf);
const newestFirst = told.jobs.map(({ job }) => job).reverse();

interface Read extends Chain {
  readonly jobs: Jobs;
}

function reader(lie?: Lie): Read {
  const made = chainOf(lie);
  return { ...made, jobs: new Jobs(made.market) };
}

async function everything({ jobs }: Read, count = 1_000): Promise<readonly Posted[]> {
  const [overview] = await jobs.market.read(head, jobs.market.overview());
  return (await jobs.page(jobs.end(overview, head), count)).jobs;
}

// Serve so many blocks of logs at once.
const atMost = (blocks: number): Lie =>
  only("eth_getLogs", (params, logs) => {
    const [from, to] = rangeOf(params);
    return to - from + 1 > blocks ? new Error("the range is too wide") : logs;
  });

// Change the logs that post a job, in every answer.
const posts = (change: (log: RawLog) => RawLog | null, job?: Hex): Lie =>
  only("eth_getLogs", (_, logs: RawLog[]) =>
    logs.flatMap((log) => (isPost(log) && (job === undefined || log.topics[1] === job) ? (change(log) ?? []) : log)),
  );

const ranges = (asked: readonly [string, Params][]): (readonly [number, number])[] =>
  asked.filter(([method]) => method === "eth_getLogs").map(([, params]) => rangeOf(params));

// A word of the data, changed in its last digit.
function altered(log: RawLog, word: number): RawLog {
  const at = 2 + 64 * (word + 1) - 1;
  const digit = (Number.parseInt(log.data.charAt(at), 16) ^ 1).toString(16);
  return { ...log, data: `${log.data.slice(0, at)}${digit}${log.data.slice(at + 1)}` as Hex };
}

const ENDS = ["done", "failed", "refunded", "cancelled", "expired"];
const LAST = newestFirst[0] as Hex;
const FIRST = newestFirst.at(-1) as Hex;

describe("the list of jobs", () => {
  it("has every job once, newest first, as the library tells of each", async () => {
    const read = reader();
    const found = await everything(read);
    expect(found.map((one) => one.jobId)).toEqual(newestFirst);
    const standing = await read.jobs.standing(found, head);
    const facts = new Map(told.jobs.map((one) => [one.job, one.facts]));
    for (const one of standing) {
      const { state, verdict, tally } = facts.get(one.posted.jobId) ?? { state: "", verdict: "", tally: {} };
      expect([stateOfStanding(one), verdictOfStanding(one)], one.posted.jobId).toEqual([state, verdict]);
      const sum = (of: readonly (readonly [string, number])[]): number => of.reduce((all, [, count]) => all + count, 0);
      const over = Object.entries(tally).filter(([name]) => ENDS.includes(name));
      expect(progressOf(one)).toEqual({ ended: sum(over), of: sum(Object.entries(tally)) });
    }
    expect(new Set(standing.filter((one) => one.header !== null).map(verdictOfStanding)).size).toBe(3);
  });

  it("goes on where a page ended", async () => {
    const read = reader();
    const [overview] = await read.jobs.market.read(head, read.jobs.market.overview());
    const found: Hex[] = [];
    let next = read.jobs.end(overview, head);
    while (next !== undefined) {
      const page = await read.jobs.page(next, 4);
      expect(page.jobs.length).toBeLessThanOrEqual(4);
      found.push(...page.jobs.map((one) => one.jobId));
      next = page.next;
    }
    expect(found).toEqual(newestFirst);
  });

  it.each([1, 3, 5, 40])("is whole where %i blocks are served, and asked for around posts alone", async (most) => {
    const read = reader(atMost(most));
    expect((await everything(read)).map((one) => one.jobId)).toEqual(newestFirst);
    const served = ranges(read.asked).filter(([from, to]) => to - from + 1 <= most);
    const blocks = told.logs.filter(([, topics]) => isPost({ topics } as RawLog)).map(([, , , block]) => block);
    for (const [from, to] of served) {
      expect(blocks.some((block) => block >= from && block <= to), `${from}..${to}`).toBe(true);
    }
    expect(served.length).toBeLessThanOrEqual(new Set(blocks).size);
  });

  it.each([
    ["a submitter", 0],
    ["a spec", 1],
    ["needs", 2],
    ["money", 3],
    ["limits", 4],
    ["a judge's data", 5],
    ["a policy", 7],
  ])("believes no terms with %s altered", async (_, word) => {
    const read = reader(posts((log) => altered(log, word), LAST));
    expect(await refusal(everything(read))).toBe("RPC_LIES");
    expect(read.jobs.strays.inWords()).toContain(LAST.slice(0, 14));
  });

  it.each([
    ["hides the newest job", posts(() => null, LAST)],
    ["hides one in the middle", posts(() => null, newestFirst[9])],
    ["gives one another id", posts((log) => ({ ...log, topics: log.topics.with(1, hashOf(9)) }), LAST)],
    ["gives one another number", posts((log) => altered(log, 10), newestFirst[9])],
    [
      "leads a job to another block than that before it",
      (method, params, result) =>
        atMost(1)(method, params, posts((log) => altered(log, 11), newestFirst[2])(method, params, result)),
    ],
    ["gives one other parents", posts((log) => altered(log, 14), newestFirst[6])],
  ] satisfies [string, Lie][])("of a provider that %s is a lie", async (_, lie) => {
    expect(await refusal(everything(reader(lie)))).toBe("RPC_LIES");
  });

  // As on Arbitrum, whose contracts see Ethereum's numbers: `jobs` had RPC_LIES there.
  it.each([1, 3, 40])("is whole where contracts see other numbers of blocks, and %i blocks are served", async (most) => {
    const elsewhere: Lie = (method, params, result) =>
      atMost(most)(method, params, posts((log) => altered(log, 11))(method, params, result));
    const read = async (lie: Lie): Promise<readonly Hex[]> => {
      const { jobs } = reader(lie);
      const [overview] = await jobs.market.read(head, jobs.market.overview());
      const found: Hex[] = [];
      let next = jobs.end({ ...overview, number: overview.number + 1_000_000 }, head);
      while (next !== undefined) {
        const page = await jobs.page(next, 4);
        found.push(...page.jobs.map((one) => one.jobId));
        next = page.next;
      }
      return found;
    };
    expect(await read(elsewhere)).toEqual(newestFirst);
    const hides: Lie = (method, params, result) => elsewhere(method, params, posts(() => null, newestFirst[9])(method, params, result));
    expect(await refusal(read(hides))).toBe("RPC_LIES");
  });

  it("of a market without jobs is empty", () => {
    expect(reader().jobs.end({ posted: 0n } as never, head)).toBeUndefined();
  });
});

describe("a job", () => {
  it.each([
    ["anywhere", undefined],
    ["in the block that its link names", 160],
    ["elsewhere than its link says, after a reorg", 20],
    ["though its link names a block to come", 10_000],
  ])("is found %s", async (_, hint) => {
    const read = reader();
    const job = told.jobs[29]?.job as Hex;
    expect((await read.jobs.find(job, head, hint)).jobId).toBe(job);
    if (hint === 160) expect(ranges(read.asked)).toEqual([[160, 160]]);
  });

  it("that nobody posted is none", async () => {
    expect(await refusal(reader().jobs.find(hashOf(1), head))).toBe("NOT_FOUND");
  });

  it.each([
    ["hides its log", posts(() => null, FIRST)],
    ["alters its terms", posts((log) => altered(log, 3), FIRST)],
  ] satisfies [string, Lie][])("is not said to be none by a provider that %s", async (_, lie) => {
    expect(await refusal(reader(lie).jobs.find(FIRST, head))).toBe("RPC_LIES");
  });

  it("that the chain does not have is a lie", async () => {
    const read = reader();
    const [posted] = await everything(read);
    const unknown = { ...(posted as Posted), jobId: hashOf(3) };
    expect(await refusal(read.jobs.standing([unknown], head))).toBe("RPC_LIES");
  });

  it("changes with time alone as a later reading would say", async () => {
    const read = reader();
    const standing = await read.jobs.standing(await everything(read), head);
    const later = await read.jobs.standing(await everything(read), { ...head, time: head.time + 90_000 });
    expect(standing.map((one) => standingAt(one, head.time + 90_000))).toEqual(later);
  });

  it("has its events, and no others", async () => {
    const lie: Lie = only("eth_getLogs", (_, logs: RawLog[]) =>
      logs.map((log) => (isPost(log) ? log : { ...log, topics: log.topics.with(2, hashOf(200)) })),
    );
    const posted = await reader().jobs.find(FIRST, head);
    const events = await reader().jobs.events(posted, head);
    expect(events[0]?.name).toBe("JobPosted");
    expect(events.length).toBeGreaterThan(2);
    const misled = reader(lie);
    expect((await misled.jobs.events(posted, head)).map(({ name }) => name)).toEqual(["JobPosted"]);
    expect(misled.jobs.strays.inWords()).toContain("has no unit 200");
  });
});

describe("arrays in a list", () => {
  const arrays = (standing: readonly Standing[]): Standing[] => standing.filter((one) => one.header !== null);

  it("that have ended are read once", async () => {
    const read = reader();
    const known = new Set(told.jobs.filter(({ header }) => header !== null).map(({ job }) => job));
    const posted = (await everything(read)).filter((one) => known.has(one.jobId));
    const first = await read.jobs.standing(posted, head);
    const before = read.asked.length;
    expect(await read.jobs.standing(posted, head)).toEqual(first);
    const again = read.asked.slice(before).filter(([method]) => method === "eth_call");
    // How all of them stand, and the units of the one that goes on.
    expect(again).toHaveLength(2);
  });

  it("of many units that go on are not read, and said to be pending", async () => {
    const read = reader();
    const standing = arrays(await read.jobs.standing(await everything(read), head, 1));
    const going = standing.filter((one) => stateOfStanding(one) !== "ended");
    const said = going.map((one) => [one.partial, stateOfStanding(one), verdictOfStanding(one)]);
    expect(said).toContainEqual([true, "running", "pending"]);
    expect(standing.filter((one) => one.partial && !going.includes(one))).toEqual([]);
    for (const { posted } of going) expect((await read.jobs.whole(posted, head)).partial).toBe(false);
  });
});

describe("the parents of a job", () => {
  const withParents = async (read: Read): Promise<Posted> => {
    const posted = (await everything(read)).find((one) => one.parents.length > 0);
    return posted as Posted;
  };

  it("are read with their words and terms", async () => {
    const read = reader();
    const posted = await withParents(read);
    const parents = await read.jobs.parents(posted, head);
    expect(parents.map(({ parent }) => parent)).toEqual(unpackParents(posted.parents));
    for (const { parent, word, terms } of parents) {
      const known = told.jobs.find(({ job }) => job === parent.job);
      expect(word).toBe(BigInt(known?.header ?? known?.units[0]?.words[0] ?? "0"));
      expect(terms === null).toBe(known === undefined);
    }
    const before = read.asked.length;
    await read.jobs.parents(posted, head);
    expect(read.asked.slice(before).map(([method]) => method)).toEqual(["eth_call"]);
  });

  it("of a job without any are none", async () => {
    const read = reader();
    const posted = (await everything(read)).find((one) => one.parents.length === 0) as Posted;
    expect(await read.jobs.parents(posted, head)).toEqual([]);
  });
});
