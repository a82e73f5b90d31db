// What Lens answers of a market: its parameters, nodes, jobs, units and money.

import type { Hex } from "../core/bytes";
import type { Network } from "../core/network";
import { small } from "../core/numbers";
import type { Node } from "../core/types";
import { unpackNodeState, unpackOffer } from "../core/words";
import { LENS_READS } from "../generated/reads/lens";
import { hexOf, lies } from "./answers";
import { type View, viewOf } from "./view";

// Entries that Lens answers in one call.
export const PAGE = 256;

export interface Overview {
  readonly chainId: bigint;
  readonly number: number;
  readonly time: number;
  readonly asset: Hex;
  readonly held: bigint;
  readonly tracked: bigint;
  readonly posted: bigint;
  readonly totals: bigint;
  readonly policy: bigint;
  readonly previousPolicy: bigint;
  readonly previousUntil: number;
  readonly postsPausedUntil: number;
  readonly registrationsPausedUntil: number;
  readonly minimumStake: bigint;
}

// Where a unit is.
export interface Place {
  readonly job: Hex;
  readonly index: number;
}

// A unit as stored: its job's own word, its word, its auxiliary slot, its last decline, the checkpoints it resumed from.
export interface Status {
  readonly job: bigint;
  readonly word: bigint;
  readonly second: bigint;
  readonly accused: bigint;
  readonly kept: readonly bigint[];
}

export function overviewView(network: Network): View<Overview> {
  return lens(network, "overview", [], (raw) => {
    const of = fields(raw);
    return {
      chainId: big(of["chain_id"]),
      number: small(big(of["number"])),
      time: small(big(of["time"])),
      asset: hexOf(of["asset"], "an asset", 20),
      held: big(of["held"]),
      tracked: big(of["tracked"]),
      posted: big(of["posted"]),
      totals: big(of["totals"]),
      policy: big(of["policy"]),
      previousPolicy: big(of["previous_policy"]),
      previousUntil: small(big(of["previous_until"])),
      postsPausedUntil: small(big(of["posts_paused_until"])),
      registrationsPausedUntil: small(big(of["registrations_paused_until"])),
      minimumStake: big(of["minimum_stake"]),
    };
  });
}

// The nodes first .. first + count - 1, fewer where ids end; 256 at most.
export function nodesView(network: Network, first: number, count: number): View<Node[]> {
  return lens(network, "nodes", [BigInt(first), BigInt(count)], (raw) => {
    const page = list(raw);
    if (page.length > count) throw lies("more nodes than were asked for");
    return page.map((one, at) => nodeOf(first + at, fields(one)));
  });
}

// Each job's own word, 0 for an unknown one; 256 ids at most.
export function jobsView(network: Network, ids: readonly Hex[]): View<bigint[]> {
  return lens(network, "jobs", [ids], (raw) => numbers(raw, ids.length));
}

// The unit at each place, a job's id and an index; 256 places at most.
export function statusView(network: Network, places: readonly Place[]): View<Status[]> {
  const asked = places.map(({ job, index }) => ({ job_id: job, index: BigInt(index) }));
  return lens(network, "status", [asked], (raw) => {
    const page = list(raw);
    if (page.length !== places.length) throw lies("another number of units than was asked for");
    return page.map((one) => {
      const of = fields(one);
      const kept = list(of["kept"]).map(big);
      return { job: big(of["job"]), word: big(of["word"]), second: big(of["second"]), accused: big(of["accused"]), kept };
    });
  });
}

// What Escrow holds of a controller's under each key, and what each account may withdraw, in base units.
export function locksView(network: Network, controller: Hex, keys: readonly Hex[]): View<bigint[]> {
  return lens(network, "locks", [controller, keys], (raw) => numbers(raw, keys.length));
}

export function creditsView(network: Network, accounts: readonly Hex[]): View<bigint[]> {
  return lens(network, "credits", [accounts], (raw) => numbers(raw, accounts.length));
}

function lens<T>(network: Network, name: string, args: readonly unknown[], read: (raw: unknown) => T): View<T> {
  return viewOf(network.contracts.Lens, LENS_READS, "lens", name, args, read);
}

const ASK_BITS = 80n;

function nodeOf(id: number, of: Record<string, unknown>): Node {
  const next = big(of["next_ask"]);
  return {
    id,
    owner: hexOf(of["owner"], "an owner", 20),
    operator: hexOf(of["operator"], "an operator", 20),
    stake: big(of["stake"]),
    offer: unpackOffer(big(of["offer"])),
    state: unpackNodeState(big(of["hot"])),
    nextAsk: next & ((1n << ASK_BITS) - 1n),
    nextAskAt: small(next >> ASK_BITS),
    exitAt: small(big(of["exit_at"])),
  };
}

function numbers(raw: unknown, count: number): bigint[] {
  const found = list(raw).map(big);
  if (found.length !== count) throw lies("another number of answers than was asked for");
  return found;
}

function list(raw: unknown): readonly unknown[] {
  if (!Array.isArray(raw)) throw lies("an answer that is no list");
  return raw;
}

function fields(raw: unknown): Record<string, unknown> {
  if (typeof raw !== "object" || raw === null) throw lies("an answer without fields");
  return raw as Record<string, unknown>;
}

function big(raw: unknown): bigint {
  if (typeof raw !== "bigint") throw lies("an answer that is no number");
  return raw;
}
