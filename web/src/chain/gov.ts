// Who governs a market, and the changes that its Steward holds. Mirrors read_changes and the reads beside it of
// hearth/client/governance/changes.py: logs name the changes, and each is believed as the Steward holds it at the same block.

import { NODE_REGISTRY_READS } from "../generated/reads/node-registry";
import { RULES_READS } from "../generated/reads/rules";
import { STEWARD_READS } from "../generated/reads/steward";
import { ZERO_ADDRESS } from "../generated/bounds";
import { EXECUTED, LIFE, MAX_LOOKED, OVER } from "../generated/changes";
import { BOUNDS } from "../generated/events";
import type { Hex } from "../core/bytes";
import { changeOf } from "../core/changes";
import { type EventName, type EventNamed, type MarketEvent, topicOf } from "../core/events";
import { type Governance, type Governed, type HeldChange, isOpen, stateOfChange } from "../core/governed";
import { Strays } from "../core/logs";
import { eventsIn } from "../core/posted";
import type { Policy } from "../core/types";
import { unpackPolicy } from "../core/words";
import { type Block, lies } from "./answers";
import { Span } from "./logs";
import type { Market } from "./market";
import { type View, type ViewAbi, viewOf } from "./view";

// Changes whose states one request asks for.
const AT_ONCE = 100;

type Queued = EventNamed<"ChangeQueued">;

export interface Read extends Governance {
  readonly at: Block;
  readonly strays: Strays;
}

// Read a market's governance at a block. Throws as `Market.read` does.
export async function readGovernance(market: Market, at: Block): Promise<Read> {
  const { network } = market;
  const { Steward, Rules, NodeRegistry } = network.contracts;
  const strays = new Strays();
  const seat = (name: string): View<Hex> => address(Steward, STEWARD_READS, "steward", name);
  const of = (to: Hex, abi: readonly ViewAbi[], label: string): readonly [View<Hex>, View<Hex>, View<number>] => [
    address(to, abi, label, "governor"),
    address(to, abi, label, "offered_governor"),
    viewOf(to, abi, label, "paused_until", [], seconds),
  ];
  const [[overview, council, offeredCouncil, guardian, delay, ...governed], { held, earlier }, set] = await Promise.all([
    market.read(
      at,
      market.overview(),
      ...([seat("council"), seat("offered_council"), seat("guardian")] as const),
      viewOf(Steward, STEWARD_READS, "steward", "DELAY", [], seconds),
      ...of(Rules, RULES_READS, "rules"),
      ...of(NodeRegistry, NODE_REGISTRY_READS, "nodes"),
    ),
    readChanges(market, at, strays),
    policiesSet(market, at, strays),
  ]);
  const who = ([governor, offered, pausedUntil]: readonly [Hex, Hex, number]): Governed => {
    return { governor, steward: governor === Steward, offered: orNone(offered), pausedUntil };
  };
  return {
    at,
    strays,
    council,
    offeredCouncil: orNone(offeredCouncil),
    guardian: orNone(guardian),
    delay,
    posts: who([governed[0], governed[1], governed[2]]),
    registrations: who([governed[3], governed[4], governed[5]]),
    changes: held,
    earlier,
    policy: unpackPolicy(overview.policy),
    replaced: new Map<bigint, Policy>(set.map(({ policy, previous }) => [policy, unpackPolicy(previous)])),
    previousUntil: overview.previousUntil,
    lastUntil: set.reduce((last, { until }) => Math.max(last, until), 0),
  };
}

// What waits and the newest that are over, oldest first, and how many others were not looked at. A provider can leave logs out,
// and makes none wait by making one up.
async function readChanges(market: Market, at: Block, strays: Strays): Promise<{ readonly held: HeldChange[]; readonly earlier: number }> {
  const queued = new Map<Hex, Queued>();
  const ended = new Set<Hex>();
  const { Steward } = market.network.contracts;
  for await (const event of events(market, Steward, ["ChangeQueued", "ChangeDropped", "ChangeExecuted"], at, strays)) {
    if (event.name === "ChangeDropped" || event.name === "ChangeExecuted") ended.add(event.change);
    else if (event.name !== "ChangeQueued") continue;
    else if (queued.has(event.change)) strays.note(event.log, `change ${event.change.slice(0, 14)} is queued already`);
    else queued.set(event.change, event);
  }
  const all = [...queued.values()];
  const isOver = (one: Queued): boolean => ended.has(one.change) || at.time >= one.due + LIFE;
  const young = all.filter((one) => !isOver(one)).sort((a, b) => a.due - b.due);
  const looked = new Set([...young.slice(0, MAX_LOOKED), ...all.filter(isOver).slice(-OVER)]);
  const wanted = all.filter((one) => looked.has(one));
  const held: HeldChange[] = [];
  for (let start = 0; start < wanted.length; start += AT_ONCE) {
    const some = wanted.slice(start, start + AT_ONCE);
    const states = await market.read(at, ...some.map((one) => viewOf(Steward, STEWARD_READS, "steward", "changes", [one.change], big)));
    some.forEach((one, place) => held.push(...heldOf(one, states[place] as bigint, strays)));
  }
  const over = held.filter((one) => !isOpen({ state: stateOfChange(one.held, at.time) })).slice(-OVER);
  return {
    held: held.filter((one) => over.includes(one) || isOpen({ state: stateOfChange(one.held, at.time) })),
    earlier: all.length - looked.size,
  };
}

// The change that a log queued as the Steward holds it, nothing where it does not.
function heldOf({ change: id, op, word, salt, due, log }: Queued, held: bigint, strays: Strays): HeldChange[] {
  const name = id.slice(0, 14);
  if (held === 0n || held > BOUNDS.time) {
    strays.note(log, `change ${name} ${held === 0n ? "was never queued" : "is due at a time beyond reason"}`);
    return [];
  }
  const waits = held > BigInt(EXECUTED);
  if (waits && held !== BigInt(due)) strays.note(log, `change ${name} is due at ${held}, not at ${due}`);
  return [{ change: changeOf(BigInt(op), word, salt), due: waits ? Number(held) : due, held, block: log.blockNumber }];
}

// Each policy that replaced another one: the first replaced none, and one that is dropped is told of without an end.
async function policiesSet(market: Market, at: Block, strays: Strays): Promise<EventNamed<"PolicyChanged">[]> {
  const found: EventNamed<"PolicyChanged">[] = [];
  for await (const event of events(market, market.network.contracts.Rules, ["PolicyChanged"], at, strays)) {
    if (event.name === "PolicyChanged" && event.previous !== 0n && event.until !== 0) found.push(event);
  }
  return found;
}

async function* events(market: Market, of: Hex, names: readonly EventName[], at: Block, strays: Strays): AsyncGenerator<MarketEvent> {
  const filter = { addresses: [of], topics: [names.map(topicOf)] };
  const range = { from: market.network.deployBlock, to: at.number, backwards: false };
  for await (const { logs } of market.past.logs(filter, range, new Span())) yield* eventsIn(logs, market.network, strays);
}

const address = (to: Hex, abi: readonly ViewAbi[], label: string, name: string): View<Hex> =>
  viewOf(to, abi, label, name, [], (raw) => {
    if (typeof raw !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(raw)) throw lies("an answer that is no address");
    return raw.toLowerCase() as Hex;
  });

function big(raw: unknown): bigint {
  if (typeof raw !== "bigint") throw lies("an answer that is no number");
  return raw;
}

function seconds(raw: unknown): number {
  const found = big(raw);
  if (found > BOUNDS.time) throw lies("a time beyond reason");
  return Number(found);
}

const orNone = (found: Hex): Hex | null => (found === ZERO_ADDRESS ? null : found);
