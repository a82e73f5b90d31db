// Which gate keeps a node from a unit. Mirrors `ask_of`, `node_gate` and `fit` of hearth/protocol/formulas.py. Amounts
// are base units, rates base units x 1e6 per second, times chain seconds.

import { BPS, MAX_UINT } from "../generated/bounds";
import { GATE, NODE_FLAG, STATE, TERMS_FLAG } from "../generated/states";
import { claimCeiling, claimsFrom, hasTime, withLapse } from "./lapse";
import { bond, price, topped } from "./money";
import { ceilDiv } from "./numbers";
import { askInForce, stakeShort } from "./status";
import type { Best, Gate, Needs, Node, Policy, Terms, Unit } from "./types";

const SIZE_GATES = [
  [GATE.GPU_COUNT, "gpuCount"],
  [GATE.VRAM, "vramGib"],
  [GATE.CORES, "cores"],
  [GATE.RAM, "ramGib"],
  [GATE.DISK, "diskGib"],
  [GATE.TIER, "tier"],
] as const;

// What a job asks of a node: needs, highest rate, bond, and the most stake that a node on probation may have reserved
// with the lease, where it is not its first; 0 for seasoned nodes only.
export interface Ask {
  readonly needs: Needs;
  readonly ceiling: bigint;
  readonly bond: bigint;
  readonly probation: bigint;
}

// The immutables of NodeRegistry that matching reads.
export interface Immutables {
  readonly deadAfter: number;
  readonly minimumStake: bigint;
}

// The market and the moment at which a node is looked at, and whether it would claim or propose.
export interface Look extends Immutables {
  readonly now: number;
  readonly claim: boolean;
}

// Derive from the terms what the matching gates compare a node with.
export function askOf(terms: Terms, policy: Policy): Ask {
  const { needs, ceiling } = terms;
  return { needs, ceiling, bond: bond(terms, policy), probation: probationOf(terms, policy) };
}

// Say whether a node on probation that has so much stake reserved may take one lease more.
export const mayNewcomer = (ask: Ask, reserved: bigint): boolean =>
  ask.probation !== 0n && (reserved === 0n || reserved + ask.bond <= ask.probation);

// Return the first gate that keeps a node from a lease (mirrors `NodeRegistry.gate`).
export function nodeGate(node: Node, ask: Ask, now: number, { deadAfter, minimumStake }: Immutables): Gate {
  const { state, offer } = node;
  if (state.beat === 0 || now >= state.beat + deadAfter) return GATE.NOT_LIVE;
  if (stakeShort(node, minimumStake) > 0n) return GATE.NOT_ACTIVE;
  if (state.status & NODE_FLAG.EXITING) return GATE.EXITING;
  if (now < state.quarantine) return GATE.QUARANTINED;
  if (state.busy >= offer.slots) return GATE.NO_SLOT;
  if (node.stake - state.bond < ask.bond) return GATE.STAKE_SHORT;
  const tooSmall = offerGate(node, ask.needs);
  if (tooSmall !== GATE.FITS) return tooSmall;
  if (askInForce(node, now) > ask.ceiling) return GATE.PRICE;
  return state.seasoned || mayNewcomer(ask, state.bond) ? GATE.FITS : GATE.PROBATION;
}

// Return the first gate that keeps a node from proposing (or claiming) a unit (mirrors `Lens.fit`). `unit` and `best`
// are as stored; the lapse is applied here. A PRICE that passes by itself, since open claims have not risen to the
// node's ask yet, is named where no other gate is shut. Throws DIVIDE_BY_ZERO where a claim has no ramp.
export function fit(terms: Terms, policy: Policy, unit: Unit, best: Best, node: Node, look: Look): Gate {
  const read = withLapse(unit, best, policy, look.now);
  if (read.state !== STATE.OPEN) return GATE.NOT_OPEN;
  const gate = nodeGate(node, askOf(terms, policy), look.now, look);
  if (gate !== GATE.FITS) return gate;
  if (node.operator.toLowerCase() === terms.submitter.toLowerCase()) return GATE.SUBMITTER;
  if (isExcluded(read, node.id, look.claim)) return GATE.EXCLUDED;
  if (!hasTime(topped(terms, unit), policy, look.now)) return GATE.NO_TIME;
  if (!look.claim) return GATE.FITS;
  const risen = claimCeiling(terms, policy, Math.max(0, look.now - claimsFrom(terms, policy, unit)));
  return askInForce(node, look.now) > risen ? GATE.PRICE : GATE.FITS;
}

// Say whether an OPEN unit (its lapse applied) excludes a node that proposes or claims it: which had it last may not have it
// again, which let a proposal pass may claim it.
export const isExcluded = (read: Unit, node: number, claim: boolean): boolean =>
  read.node === node && !(claim && read.lapses > 0);

function probationOf(terms: Terms, policy: Policy): bigint {
  if (terms.flags & TERMS_FLAG.NEWCOMERS || policy.probationPrice === 0n) return MAX_UINT;
  if (price(terms) > policy.probationPrice) return 0n;
  return ceilDiv(BigInt(policy.minBondBps) * policy.probationPrice, BPS);
}

// Return the first gate by which what a node offers is not what a job needs.
function offerGate({ offer }: Node, needs: Needs): Gate {
  if (needs.runtimes & ~offer.runtimes) return GATE.RUNTIME;
  const size = SIZE_GATES.find(([, name]) => offer[name] < needs[name]);
  if (size !== undefined) return size[0];
  if (needs.exact && offer.tier !== needs.tier) return GATE.TIER;
  return needs.zoneMask !== 0 && !((needs.zoneMask >> offer.zone) & 1) ? GATE.ZONE : GATE.FITS;
}
