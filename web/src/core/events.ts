// The events of the contracts: log to frozen value. Mirrors hearth/market/events.py (decode_of): layouts come from the
// generated table, and what a contract never writes is refused, so that whatever passes can be shown and reckoned with.
// Whether it is true only the contracts' storage says.

import { SENTINEL } from "../generated/bounds";
import { BOUNDS, EVENTS, TERMS_KINDS } from "../generated/events";
import { OUTCOME, VERDICT } from "../generated/states";
import { type Hex, hexNumber } from "./bytes";
import { changeId, changeOf } from "./changes";
import { HearthError } from "./errors";
import type { Log } from "./logs";
import type { Contract } from "./network";
import { type TermsWords, unpackHeader, unpackOffer, unpackPolicy, unpackTerms, unpackUnit } from "./words";

type Layout = (typeof EVENTS)[number];
type FieldOf<L extends Layout> = L["fields"][number];
type ValueOf<Kind extends string> = Kind extends "number"
  ? number
  : Kind extends "uint256"
    ? bigint
    : Kind extends "bytes32" | "address"
      ? Hex
      : Kind extends "bytes32[]"
        ? readonly Hex[]
        : Kind extends "terms"
          ? TermsWords
          : readonly bigint[];
type EventOf<L extends Layout> = L extends Layout
  ? { readonly name: L["name"]; readonly of: L["of"]; readonly log: Log } & {
      readonly [F in FieldOf<L> as F["name"]]: ValueOf<F["kind"]>;
    }
  : never;

// A decoded log: `name` says which event it is, `of` what it is about, `log` which contract wrote it, and where.
export type MarketEvent = EventOf<Layout>;
export type EventName = Layout["name"];
export type EventNamed<N extends EventName> = Extract<MarketEvent, { name: N }>;
// A unit moved; for index ALL (`SENTINEL`) an array's header did.
export type UnitEvent = Extract<MarketEvent, { of: "unit" | "node-unit" }>;
// A unit moved by or for a node; `word` is its new word.
export type NodeUnitEvent = Extract<MarketEvent, { of: "node-unit" }>;

type Values = Readonly<Record<string, unknown>>;
interface Field {
  readonly name: string;
  readonly kind: string;
  readonly topic?: number;
  readonly offset?: number;
}

const LAYOUTS: ReadonlyMap<string, Layout> = new Map(EVENTS.map((layout) => [layout.topic, layout]));
const WITH_RESULT: ReadonlySet<string> = new Set<EventName>([
  ...(["Submitted", "Settled", "Finished", "Disputed", "Ruled", "Unproven"] as const),
]);
const WITH_HEADER: ReadonlySet<string> = new Set<EventName>(["Cancelled", "Expired", "Unlocked"]);
const VERDICTS: ReadonlySet<bigint> = new Set(Object.values(VERDICT).map(BigInt));

// Return the first topic of an event.
export function topicOf(name: EventName): Hex {
  return (EVENTS.find((layout) => layout.name === name) as Layout).topic;
}

// Decode a log of a contract of Hearth. Throws RPC_BROKEN for a malformed one, BAD_LOG for one that this contract never
// writes. The id of a posted job is not looked at: `postedOf` does.
export function decodeOf(log: Log, contract: Contract): MarketEvent {
  const layout = LAYOUTS.get(log.topics[0] ?? "");
  if (layout === undefined) throw badLog(`${contract} writes no such event`);
  if (log.topics.length !== layout.topics || sizeOf(log.data) < layout.size) throw malformed(log);
  const values: Record<string, unknown> = {};
  for (const field of layout.fields as readonly Field[]) values[field.name] = read(field, log);
  if (!(layout.emitters as readonly string[]).includes(contract)) throw badLog(`${contract} writes no such event`);
  try {
    check(layout, values);
  } catch (error) {
    if (error instanceof HearthError && REFUSALS.has(error.code)) throw badLog(error.message);
    throw error;
  }
  for (const field of layout.fields) {
    // Each of these was found to be within 2**53 by `check`.
    if (field.kind === "number") values[field.name] = Number(values[field.name]);
  }
  return { name: layout.name, of: layout.of, log, ...values } as MarketEvent;
}

// Say whether an event is of a unit.
export const isUnitEvent = (event: MarketEvent): event is UnitEvent =>
  event.of === "unit" || event.of === "node-unit";

const REFUSALS: ReadonlySet<string> = new Set(["BAD_WORD", "BAD_CHANGE"]);

// ---- what stands where ----

function read(field: Field, log: Log): unknown {
  if (field.topic !== undefined) return single(field.kind, log.topics[field.topic] as Hex);
  const offset = field.offset as number;
  if (field.kind === "terms") return TERMS_KINDS.map((kind, at) => single(kind, wordAt(log.data, offset + 32 * at)));
  if (field.kind === "bytes32[]") return array(log, offset);
  const fixed = /^uint256\[(\d+)\]$/.exec(field.kind);
  if (fixed === null) return single(field.kind, wordAt(log.data, offset));
  return Array.from({ length: Number(fixed[1]) }, (_, at) => BigInt(wordAt(log.data, offset + 32 * at)));
}

function single(kind: string, word: Hex): bigint | Hex {
  if (kind === "bytes32") return word;
  return kind === "address" ? `0x${word.slice(26)}` : BigInt(word);
}

// Read a bytes32[] whose head word at `offset` points at it; both its place and its length are a stranger's.
function array(log: Log, offset: number): Hex[] {
  const size = BigInt(sizeOf(log.data));
  const start = BigInt(wordAt(log.data, offset));
  if (start + 32n > size) throw malformed(log);
  const count = BigInt(wordAt(log.data, Number(start)));
  if (start + 32n + 32n * count > size) throw malformed(log);
  return Array.from({ length: Number(count) }, (_, at) => wordAt(log.data, Number(start) + 32 + 32 * at));
}

const sizeOf = (data: Hex): number => (data.length - 2) / 2;

const wordAt = (data: Hex, offset: number): Hex => `0x${data.slice(2 + 2 * offset, 66 + 2 * offset)}`;

// ---- what a contract writes ----

function check(layout: Layout, values: Values): void {
  const big = (name: string): bigint => values[name] as bigint;
  if ("node" in values && big("node") >= BOUNDS.node) throw badLog(`there is no node ${big("node")}`);
  if (layout.name === "Checkpointed" && big("seconds") >= BOUNDS.seconds) {
    throw badLog(`no lease runs for ${big("seconds")} s`);
  }
  if (layout.of === "unit" || layout.of === "node-unit") checkUnit(layout.name, big);
  else if (layout.name === "JobPosted") checkTerms(values["terms"] as TermsWords);
  else if (layout.name === "NodeRegistered" || layout.name === "OfferChanged") unpackOffer(big("offer"));
  else if (layout.name === "ChangeQueued") {
    if (changeId(changeOf(big("op"), big("word"), big("salt"))) !== values["change"]) {
      throw badLog("it queues a change under the id of another");
    }
  } else if (layout.name === "ChangeExecuted") changeOf(big("op"), big("word"), 0n);
  for (const name of ["at", "until", "due"]) {
    if (name in values && big(name) > BOUNDS.time) throw badLog("it names a time beyond reason");
  }
}

// Refuse terms that no contract takes and that nothing can be divided by.
function checkTerms(words: TermsWords): void {
  const terms = unpackTerms(words);
  if (terms.chunk === 0) throw badLog("it posts leases of no unit");
  if (terms.ceiling === 0n) throw badLog("it posts units that pay nothing");
  if (unpackPolicy(terms.policy).claimRamp === 0) throw badLog("it posts units whose price for claims never rises");
}

// Refuse an index that no job has, and a word that is none of a unit's, or for index ALL none of an array's.
function checkUnit(name: EventName, big: (name: string) => bigint): void {
  const index = big("index");
  if (name !== "CheckpointPaid" && index === SENTINEL && WITH_HEADER.has(name)) {
    unpackHeader(big("word"));
    return;
  }
  if (index >= BOUNDS.units) throw badLog(`no job has a unit ${hexNumber(index)}`);
  if (name === "CheckpointPaid") {
    if (big("attempt") > BOUNDS.attempt) throw badLog(`no unit has an attempt ${big("attempt")}`);
    return;
  }
  const unit = unpackUnit(big("word"));
  if (WITH_RESULT.has(name) && unit.outcome === OUTCOME.NONE) throw badLog("it names a result without an outcome");
  if (name === "Ruled" && !VERDICTS.has(big("verdict"))) throw badLog(`${big("verdict")} is not a valid Verdict`);
}

function malformed(log: Log): HearthError {
  return new HearthError("RPC_BROKEN", `log ${log.logIndex} of block ${log.blockNumber} is malformed`, "hearth doctor");
}

function badLog(why: string): HearthError {
  return new HearthError("BAD_LOG", why);
}
