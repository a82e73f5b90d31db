// What an owner writes of a node, and the offer of one slot that it comes to. Mirrors the section [offer] of worker.toml and
// make_offer of worker/settings.py for a machine that has what is written; sizes are in whole GiB, rounded down.

import { GIB } from "../generated/bounds";
import { RUNTIME_NAMES, START } from "../generated/owners";
import { WORDS } from "../generated/words";
import { HearthError } from "./errors";
import type { Network } from "./network";
import { floorDiv, minBig, small } from "./numbers";
import { gpuName, gpuNamed, vendorOf } from "./tiers";
import type { Offer } from "./types";
import { trimmed } from "./unicode";
import { formatRate, parseRate, parseSize } from "./units";
import { zoneOf } from "./zones";

export type RuntimeName = keyof typeof RUNTIME_NAMES;

// The texts of a form. `gpus` are those of a slot, `model` is what `gpuNamed` reads, `vram` whole GiB.
export interface Wish {
  readonly price: string;
  readonly country: string;
  readonly slots: string;
  readonly runtimes: readonly RuntimeName[];
  readonly gpus: string;
  readonly model: string;
  readonly vram: string;
  readonly cores: string;
  readonly memory: string;
  readonly disk: string;
}

const GIB_BYTES = BigInt(GIB);

// The most that a lane of an offer holds.
const most = (name: string): number => {
  const lane = WORDS.offer.lanes.find((one) => one.name === name);
  return 2 ** (lane?.width ?? 0) - 1;
};
const MOST = { slots: most("slots"), gpus: most("gpuCount"), vram: most("vramGib"), cores: most("cores") };

// Return the offer. Throws BAD_OFFER, with the field of worker.toml in its details, for the first one that is none.
export function offerOf(wish: Wish, asset: Network["asset"]): Offer {
  const ask = askOf(wish.price, asset);
  const slots = whole("slots", wish.slots, 1, MOST.slots);
  const gpuCount = whole("gpus_per_slot", wish.gpus, 0, MOST.gpus);
  const zone = field("country", () => zoneOf(wish.country));
  if (wish.runtimes.length === 0) throw refuse("runtimes", "a node offers one runtime at least", "tick wasm, docker or both");
  const cores = whole("cores", wish.cores, 1, MOST.cores);
  const ramGib = gib("memory", wish.memory, most("ramGib"));
  const diskGib = gib("disk", wish.disk, most("diskGib"));
  const runtimes = wish.runtimes.reduce<number>((flags, name) => flags | RUNTIME_NAMES[name], 0);
  const bare = { runtimes, tier: 0, gpuCount: 0, vramGib: 0, cores, ramGib, diskGib, zone, slots, pending: false, ask };
  if (gpuCount === 0) return bare;
  const gpu = gpuNamed(wish.model);
  if (gpu === undefined) throw refuse("gpus", "it names no model of the table", "pick one");
  const vramGib = whole("gpus", wish.vram, 1, MOST.vram);
  return { ...bare, runtimes: runtimes | gpu.vendor.flag, tier: gpu.tier, gpuCount, vramGib };
}

// Return what an ask is in base units x 1e6 per second. Throws BAD_OFFER for none, and for one that no offer can say.
export function askOf(price: string, asset: Network["asset"]): bigint {
  const ask = field("price", () => parseRate(price, asset));
  if (ask <= 0n || ask >> 80n !== 0n) throw refuse("price", `"${price}" is outside what an offer can say`, 'write it as "0.60/h"');
  return ask;
}

// Return what an owner would write to get this offer, at the ask that is given.
export function wishOf(offer: Offer, ask: bigint, country: string, asset: Network["asset"]): Wish {
  const runtimes = (Object.keys(RUNTIME_NAMES) as RuntimeName[]).filter((name) => offer.runtimes & RUNTIME_NAMES[name]);
  return {
    price: formatRate(ask, asset),
    country,
    slots: String(offer.slots),
    runtimes,
    gpus: String(offer.gpuCount),
    model: offer.gpuCount === 0 ? "" : gpuName(vendorOf(offer.runtimes), offer.tier),
    vram: offer.gpuCount === 0 ? "" : String(offer.vramGib),
    cores: String(offer.cores),
    memory: `${offer.ramGib}GiB`,
    disk: `${offer.diskGib}GiB`,
  };
}

// Return the names of the runtimes in an offer: "wasm, docker".
export const runtimesOf = (offer: Offer): string =>
  Object.entries(RUNTIME_NAMES)
    .filter(([, flag]) => offer.runtimes & flag)
    .map(([name]) => name)
    .join(", ");

// The commands that make a machine work for a node: its settings, what they lack, its start. Of a wish that `offerOf` takes, whose
// texts hold nothing that a shell would read.
export function commandsOf(wish: Wish, owner: string): readonly string[] {
  const init = [
    `hearth worker init --price "${wish.price.trim()}" --country ${wish.country.trim()} --payout ${owner}`,
    `--slots ${wish.slots.trim()} --runtimes ${wish.runtimes.join(",")} --gpus ${wish.gpus.trim() === "0" ? "none" : "all"}`,
    `--cores ${wish.cores.trim()} --memory "${wish.memory.trim()}" --disk "${wish.disk.trim()}"`,
  ];
  return [init.join(" "), "hearth worker doctor", START];
}

function field<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof HearthError) throw refuse(name, error.message, error.hint);
    throw error;
  }
}

function whole(name: string, text: string, least: number, top: number): number {
  const digits = trimmed(text);
  const number = /^[0-9]{1,9}$/.test(digits) ? Number.parseInt(digits, 10) : -1;
  if (number < least || number > top) throw refuse(name, `it is a whole number of ${least} to ${top}`, "");
  return number;
}

function gib(name: string, text: string, top: number): number {
  const size = field(name, () => parseSize(text));
  const found = small(minBig(floorDiv(size, GIB_BYTES), BigInt(top)));
  if (found < 1) throw refuse(name, "a slot would have none of it", 'write "2GiB"');
  return found;
}

const refuse = (name: string, why: string, hint: string): HearthError =>
  new HearthError("BAD_OFFER", `offer.${name}: ${why}`, hint, { field: `offer.${name}` });
