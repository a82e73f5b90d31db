// Which open units a node could take now, and what keeps it from the others. Mirrors Workers.gates of hearth/client/nodes/workers.py.

import { GATE, GATE_SENTENCES, STATE } from "../generated/states";
import { fit, type Immutables, isExcluded } from "./gates";
import { claimable, claimableFrom, withLapse } from "./lapse";
import { until } from "./moments";
import { askInForce } from "./status";
import { bestOf, storedLease, type StoredUnit } from "./stored";
import { type Gate, type Header, leasesOf, type Node } from "./types";
import type { JobView } from "./view";

export interface Opening {
  readonly index: number;
  readonly gate: Gate;
  readonly text: string;
}

// Return the first open unit of a job and the gate between it and a node; undefined where none is open.
export function openingOf(view: JobView, node: Node, immutables: Immutables): Opening | undefined {
  const { terms, policy, units, now } = view;
  const touched = units.findIndex(({ state }) => state === STATE.OPEN);
  const index = touched >= 0 ? touched : untouchedOf(view);
  if (index === undefined) return undefined;
  const stored = storedAt(view, index);
  if (stored.unit.state !== STATE.OPEN) return undefined;
  const claim = claimable(terms, policy, stored.unit, now);
  const gate = fit(terms, policy, stored.unit, bestOf(stored), node, { ...immutables, now, claim });
  if (gate === GATE.FITS) return { index, gate, text: "it fits" };
  const again = gate === GATE.EXCLUDED && !isExcluded(withLapse(stored.unit, bestOf(stored), policy, now), node.id, true);
  const later = again ? "let it pass, and can claim it again" : "can claim once the price has risen to its ask";
  const rises =
    again || gate === GATE.PRICE ? claimableFrom(terms, policy, stored.unit, askInForce(node, now)) : null;
  return { index, gate, text: rises === null ? GATE_SENTENCES[gate] : `it ${later}: from ${until(rises, now)}` };
}

const untouchedOf = ({ header, terms, units }: JobView): number | undefined =>
  header !== null && !header.closed && units.length < leasesOf(terms) ? units.length : undefined;

function storedAt({ header, stored }: JobView, index: number): StoredUnit {
  return stored[index] ?? storedLease(header as Header, index, 0n, 0n, 0n);
}
