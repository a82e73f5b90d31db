import { describe, expect, it } from "vitest";

import { codeOf } from "../src/core/errors";
import { laddersOf, type Offered, offersOf, tilesOf, wantedOf } from "../src/core/offers";
import { statusOf } from "../src/core/status";
import { NATIVE } from "../src/core/units";
import { STATUS } from "../src/generated/states";
import { ZONES } from "../src/generated/zones";
import { big, type Json, type NodeFields, nodeOf, written } from "./lanes";
import { vectors } from "./vectors";

type Asked = readonly [string, string, string];

interface Vectors {
  readonly now: number;
  readonly deadAfter: number;
  readonly minimumStake: string;
  readonly fleets: readonly { readonly nodes: readonly NodeFields[]; readonly asked: readonly { readonly asked: Asked; readonly offers: Json }[] }[];
  readonly amiss: readonly { readonly asked: Asked; readonly code: string }[];
}

const DATA = vectors<Vectors>("offers");
const RULES = { deadAfter: DATA.deadAfter, minimumStake: big(DATA.minimumStake) };
const wanted = ([gpu, vram, most]: Asked, zone = "") => wantedOf({ gpu, vram, most, zone }, ZONES, NATIVE);

const told = (one: Offered): Json => ({
  node: one.node,
  ask: String(one.ask),
  runtimes: one.runtimes,
  gpus: one.gpus,
  tier: one.tier,
  vram_gib: one.vramGib,
  cores: one.cores,
  ram_gib: one.ramGib,
  zone: ZONES[one.zone]?.slug ?? "",
  slots: one.slots,
  free: one.free,
  probation: one.probation,
  quarantined_until: one.quarantined,
  reputation_bps: Number(one.reputation),
});

describe("offers", () => {
  it.each(DATA.fleets.map((fleet, at) => [at, fleet] as const))("are those of the command, by what is asked for (%i)", (_, fleet) => {
    const nodes = fleet.nodes.map(nodeOf);
    for (const { asked, offers } of fleet.asked) {
      expect(offersOf(nodes, DATA.now, RULES, wanted(asked)).map(told), asked.join()).toEqual(offers);
    }
  });

  it("refuse what is asked for amiss, as the command does", () => {
    for (const { asked, code } of DATA.amiss) expect(refusal(() => wanted(asked)), asked.join()).toBe(code);
    expect(refusal(() => wanted(["", "", ""], "<img>"))).toBe("UNKNOWN_ZONE");
  });

  it("stand by tier as a ladder that rises to all free slots", () => {
    for (const fleet of DATA.fleets) {
      const offers = offersOf(fleet.nodes.map(nodeOf), DATA.now, RULES);
      const ladders = laddersOf(offers);
      expect(ladders.flatMap(({ rungs }) => rungs.map(({ node }) => node)).sort()).toEqual(offers.map(({ node }) => node).sort());
      for (const { rungs, free, slots } of ladders) {
        expect(free).toBe(rungs.reduce((sum, one) => sum + one.free, 0));
        expect(slots).toBe(rungs.reduce((sum, one) => sum + one.slots, 0));
        rungs.forEach((rung, at) => {
          expect(rung.ask >= (rungs[at - 1]?.ask ?? 0n)).toBe(true);
          expect(rung.upTo - (rungs[at - 1]?.upTo ?? 0)).toBe(rung.free);
        });
      }
    }
  });

  it("stand by zone with what is live, silent and free there", () => {
    for (const fleet of DATA.fleets) {
      const nodes = fleet.nodes.map(nodeOf);
      const tiles = tilesOf(nodes, DATA.now, RULES);
      expect(tiles.map(({ zone }) => zone)).toEqual(ZONES.map(({ number }) => number));
      for (const { zone, slug } of ZONES.map(({ number, slug }) => ({ zone: number, slug }))) {
        const here = offersOf(nodes, DATA.now, RULES, wanted(["", "", ""], slug));
        const silent = nodes.filter((node) => node.offer.zone === zone && statusOf(node, DATA.now, DATA.deadAfter, RULES.minimumStake) === STATUS.INACTIVE);
        const free = here.reduce((sum, one) => sum + one.free, 0);
        expect(tiles[zone]).toEqual({ zone, live: here.length, silent: silent.length, free, cheapest: here[0]?.ask });
      }
    }
    expect(DATA.fleets.some((fleet) => tilesOf(fleet.nodes.map(nodeOf), DATA.now, RULES).some(({ silent }) => silent > 0))).toBe(true);
  });
});

function refusal(call: () => unknown): string {
  try {
    return String(written(call()));
  } catch (error) {
    return codeOf(error);
  }
}
