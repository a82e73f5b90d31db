// Which workers could take a job, at what price, and what keeps the others from it, counted and in words. Mirrors
// hearth/client/job/gates.py. Rates are base units x 1e6 per second.

import { ZERO_ADDRESS } from "../generated/bounds";
import { FLEET_LABELS, GATE, PASSING_GATES, RUNTIME } from "../generated/states";
import { askOf, type Immutables, nodeGate } from "./gates";
import { hasTime } from "./lapse";
import { unitPrice } from "./money";
import { maxBig, minBig } from "./numbers";
import { autoKeeperFee } from "./plan";
import { askInForce } from "./status";
import type { Gate, Node, Policy, Terms } from "./types";
import { type Asset, parseRate, rateAtMost } from "./units";

// The nodes of a market that were not left, at one block, whose second is `now`; read once, then asked as often as needed.
export interface Fleet extends Immutables {
  readonly nodes: readonly Node[];
  readonly now: number;
}

// Workers by the first gate that keeps them from a job.
export type Gates = ReadonlyMap<Gate, number>;

export function fleetOf(nodes: readonly Node[], now: number, immutables: Immutables): Fleet {
  return { nodes: nodes.filter((node) => node.operator !== ZERO_ADDRESS), now, ...immutables };
}

// Count the workers by the first gate that keeps them from a job.
export function gatesOf(fleet: Fleet, terms: Terms, policy: Policy): Gates {
  const found = new Map<Gate, number>();
  for (const { gate } of looked(fleet, terms, policy, false)) found.set(gate, (found.get(gate) ?? 0) + 1);
  return found;
}

// Return the asks in force of the workers that can take a job now or later, cheapest first. With `anyPrice`, each is looked at
// as if the job paid what it asks: with the bond and the probation of that price, where it is above the job's own.
export function asksOf(fleet: Fleet, terms: Terms, policy: Policy, anyPrice = false): bigint[] {
  return looked(fleet, terms, policy, anyPrice)
    .filter(({ gate }) => takes(gate))
    .map(({ rate }) => rate)
    .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

// Return the highest price at which free stake covers the bond, where for want of it no worker can take a job; undefined where
// a worker can take it, or where another price is no help.
export function backed(fleet: Fleet, terms: Terms, policy: Policy, asset: Asset): string | undefined {
  if (takers(gatesOf(fleet, terms, policy)) > 0) return undefined;
  const at = (ceiling: bigint): Terms => {
    // A bond covers keeper fees as well, which go by the price where nobody names one.
    const lower = { ...terms, ceiling };
    return { ...lower, keeperFee: minBig(terms.keeperFee, autoKeeperFee(unitPrice(lower), policy)) };
  };
  const fits = (node: Node, ceiling: bigint): boolean =>
    nodeGate(idle(node), askOf(at(ceiling), policy), fleet.now, fleet) === GATE.FITS;
  let best = 0n;
  for (const node of fleet.nodes) {
    // A bond grows with the price, so that what fits at its ask fits up to some price.
    let [low, high] = [maxBig(best, askInForce(node, fleet.now)), terms.ceiling];
    if (node.operator === terms.submitter || low >= high || fits(node, high) || !fits(node, low)) continue;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (fits(node, middle)) low = middle;
      else high = middle;
    }
    best = low;
  }
  const text = rateAtMost(best, asset);
  return best > 0n && takers(gatesOf(fleet, at(parseRate(text, asset)), policy)) > 0 ? text : undefined;
}

// Count the workers that can take a job now, or when they are free again.
export const takers = (gates: Gates): number =>
  [...gates].reduce((sum, [gate, count]) => sum + (takes(gate) ? count : 0), 0);

// Return "14 workers: 9 short of VRAM, 2 above your price -> 3 can take it". Of a job with a judge or an image, whose
// `terms` are given, that is less than it seems: whose settings accept that judge and that image, the chain does not say.
export function workersInWords(gates: Gates, terms?: Terms): string {
  const total = [...gates.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) return "no worker is registered on this network";
  const kept = [...gates]
    .filter(([gate, count]) => gate !== GATE.FITS && count > 0)
    .sort(([a], [b]) => a - b)
    .map(([gate, count]) => `${count} ${wordsOf(gate)}`)
    .join(", ");
  const settings = terms === undefined || takers(gates) === 0 ? [] : settingsOf(terms);
  const where = settings.length === 0 ? "" : ` where ${settings.join(", and ")}`;
  return `${total} ${total === 1 ? "worker" : "workers"}${kept === "" ? "" : `: ${kept}`} -> ${takers(gates)} can take it${where}`;
}

function settingsOf({ judge, needs }: Terms): string[] {
  return [
    ...(judge === ZERO_ADDRESS ? [] : ["accept.attesters or accept.judges of its settings names the job's judge"]),
    ...(needs.runtimes & RUNTIME.DOCKER ? ["docker.registries and accept.images of its settings allow the image"] : []),
  ];
}

const takes = (gate: Gate): boolean => gate === GATE.FITS || (PASSING_GATES as readonly Gate[]).includes(gate);

const wordsOf = (gate: Gate): string => (FLEET_LABELS as Readonly<Record<number, string>>)[gate] ?? "";

// Each node's ask in force and the first gate that keeps it from the job. A gate that only time opens is named where no
// other is shut: a node that is busy may be too dear as well.
function looked(fleet: Fleet, terms: Terms, policy: Policy, anyPrice: boolean): { readonly rate: bigint; readonly gate: Gate }[] {
  const own = askOf(terms, policy);
  return fleet.nodes.map((node) => {
    const rate = askInForce(node, fleet.now);
    const ask = anyPrice && rate > terms.ceiling ? askOf({ ...terms, ceiling: rate }, policy) : own;
    let gate = nodeGate(idle(node), ask, fleet.now, fleet);
    if (gate === GATE.FITS && node.operator === terms.submitter) gate = GATE.SUBMITTER;
    if (gate === GATE.FITS) {
      gate = nodeGate(node, ask, fleet.now, fleet);
      // What an idle node passes opens again when its leases end.
      if (gate === GATE.PROBATION || gate === GATE.STAKE_SHORT) gate = GATE.NO_SLOT;
      if (gate === GATE.QUARANTINED && !hasTime(terms, policy, node.state.quarantine)) gate = GATE.NO_TIME;
    }
    // A worker without GPUs often has no containers either; the GPUs are what the author asked for.
    if (gate === GATE.RUNTIME && node.offer.gpuCount < terms.needs.gpuCount) gate = GATE.GPU_COUNT;
    return { rate, gate };
  });
}

// A node as it is when its leases and its quarantine are over.
const idle = (node: Node): Node => ({ ...node, state: { ...node.state, busy: 0, bond: 0n, quarantine: 0 } });
