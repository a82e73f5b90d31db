import { describe, expect, it } from "vitest";

import { Jobs, type Standing } from "../src/chain/jobs";
import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { askedIn, filterOf } from "../src/ui/jobs-asked";
import { routeOf } from "../src/ui/router";
import { chainOf, HEAD, hashOf, told } from "./chain";

const OWN = { pathname: "/" };
const at = { number: HEAD, hash: hashOf(HEAD), parent: hashOf(HEAD - 1), time: told.now };
const asked = (query: string) => askedIn(routeOf(`#/jobs?${query}`).query);

async function standings(): Promise<readonly Standing[]> {
  const { market } = chainOf();
  const reader = new Jobs(market);
  const [overview] = await market.read(at, market.overview());
  return reader.standing((await reader.page(reader.end(overview, at), 1_000)).jobs, at);
}

describe("what an address asks for", () => {
  it("is everything where it asks for nothing", () => {
    expect(asked("")).toEqual({ state: "", submitter: "", name: "" });
    expect(asked("state=running&submitter=0x12&name=a%20b")).toEqual({ state: "running", submitter: "0x12", name: "a b" });
  });

  it("never filters by what its reader cannot see", () => {
    expect(asked("state=none-such").state).toBe("");
    expect(asked("state=constructor").state).toBe("");
    expect(asked("name=%20%09%20").name).toBe("");
    for (const unseen of ["%E2%80%8B", "%E2%81%A0", "%E3%85%A4", "%00", "%E2%80%AE"]) expect(asked(`name=${unseen}`).name).toMatch(/^U\+[0-9A-F]{4}$/);
    expect(asked(`name=${"a".repeat(2_000)}`).name.length).toBeLessThan(200);
  });
});

describe("the jobs that are asked for", () => {
  it("are those whose name is known and holds the letters, in either case", async () => {
    const all = await standings();
    const [one, other] = [...new Set(all.map(({ posted }) => posted.terms.spec))] as [Hex, Hex];
    const names = new Map([[one, "Payroll model"], [other, "other"]]);
    const found = all.filter(filterOf(asked("name=ROLL"), names, OWN));
    expect(found.length).toBeGreaterThan(0);
    expect(found).toEqual(all.filter(({ posted }) => posted.terms.spec === one));
    expect(all.filter(filterOf(asked("name=payroll"), new Map(), OWN))).toEqual([]);
    expect(all.filter(filterOf(asked(""), undefined, OWN))).toEqual(all);
  });

  it("are those of a submitter, and a text that is no address is refused", async () => {
    const all = await standings();
    const by = (all[0] as Standing).posted.terms.submitter;
    expect(all.filter(filterOf(asked(`submitter=${by}`), undefined, OWN))).toEqual(all.filter(({ posted }) => posted.terms.submitter === by));
    const refused = (): unknown => {
      try {
        return filterOf(asked("submitter=0x12"), undefined, OWN);
      } catch (error) {
        return codeOf(error);
      }
    };
    expect(refused()).toBe("BAD_ADDRESS");
  });
});
