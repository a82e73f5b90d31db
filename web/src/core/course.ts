// The course of a market by its events: what was paid for which tier and when, how many slots were busy, how long jobs waited,
// how leases ended, who earned what by keeping. Fed in the order of the chain; what no contract writes is a stray.

import { SENTINEL, ZERO_ADDRESS } from "../generated/bounds";
import { OUTCOME, STATE, VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import { isUnitEvent, type MarketEvent, type UnitEvent } from "./events";
import type { Strays } from "./logs";
import { floorDivInt } from "./numbers";
import { type Market, misplaced, type Posted, postedOf } from "./posted";
import { compareBig, medianBig, medianOf, quantile, type Step } from "./chart-series";
import { slugOf, vendorOf } from "./tiers";
import type { Needs, Node, State } from "./types";
import { unpackOffer, unpackShare, unpackUnit } from "./words";

const DAY = 86_400;

// A day by its first second, the median of the rates that were locked in it, and how many these were.
export interface Price {
  readonly day: number;
  readonly median: bigint;
  readonly count: number;
}

// What became of the jobs that ask for one tier. Waits are the seconds from a job's post, or from the end of what it waited
// for, to its first start. Leases that ended well, by a failure of the program, were lost (reclaimed), were given back.
export interface TierCourse {
  readonly tier: string;
  readonly prices: readonly Price[];
  readonly starts: number;
  readonly wait: number | undefined;
  readonly longWait: number | undefined;
  readonly ok: number;
  readonly failed: number;
  readonly lost: number;
  readonly returned: number;
}

export type Earning = "settle" | "close" | "reclaim" | "expire" | "unlock" | "propose" | "ruling" | "liveness" | "other";

// What one account was credited for keeping, base units, and for how many acts of each kind.
export interface Earner {
  readonly account: Hex;
  readonly earned: bigint;
  readonly acts: ReadonlyMap<Earning, number>;
}

// What all events so far tell of a market.
export interface CourseTold {
  readonly steps: readonly Step[];
  readonly tiers: readonly TierCourse[];
  readonly earners: readonly Earner[];
  // Where an event stands before which another one is missing, "" for nowhere.
  readonly torn: string;
}

// What a job's needs call a tier: that of the GPU it asks for.
const tierOfNeeds = ({ gpuCount, tier, runtimes }: Needs): string =>
  gpuCount === 0 ? "none" : tier === 0 ? "any GPU" : slugOf(vendorOf(runtimes), tier);

interface JobCourse {
  readonly posted: Posted;
  readonly tier: string;
  since: number;
  started: boolean;
}

interface Ends {
  readonly rates: Map<number, bigint[]>;
  readonly waits: number[];
  ok: number;
  failed: number;
  lost: number;
  returned: number;
}

// Events whose second stands in no word of theirs, and is needed.
const TIMED: ReadonlySet<string> = new Set<MarketEvent["name"]>([
  ...(["JobPosted", "Unlocked", "Declined", "GaveUp", "Closed", "Reclaimed"] as const),
  ...(["NodeRegistered", "OfferChanged", "ExitFinished"] as const),
]);

// Say whether the second of an event's block has to be known.
export const needsSecond = (event: MarketEvent): boolean => TIMED.has(event.name);

export class Course {
  readonly #jobs = new Map<Hex, JobCourse>();
  readonly #tiers = new Map<string, Ends>();
  readonly #busyUnits = new Set<string>();
  readonly #slots = new Map<number, number>();
  readonly #steps: Step[] = [];
  readonly #earners = new Map<Hex, { earned: bigint; acts: Map<Earning, number> }>();
  // Of the transaction that is told: the unit's event that no split has followed yet.
  #tx: Hex | undefined;
  #last: UnitEvent | null = null;
  #checkpoint = false;
  #torn = "";

  constructor(
    readonly market: Market,
    readonly strays: Strays,
  ) {}

  // Tell one event; `second` is that of its block, where `needsSecond` asks for it.
  add(event: MarketEvent, second: number): void {
    if (event.log.txHash !== this.#tx) {
      this.#tx = event.log.txHash;
      this.#last = null;
      this.#checkpoint = false;
    }
    switch (event.name) {
      case "JobPosted": {
        if (this.#jobs.has(event.jobId)) return this.strays.note(event.log, `job ${event.jobId.slice(0, 14)} is posted already`);
        const posted = postedOf(event, this.market);
        this.#jobs.set(event.jobId, { posted, tier: tierOfNeeds(posted.terms.needs), since: second, started: false });
        return;
      }
      case "NodeRegistered":
      case "OfferChanged":
        return this.#offer(event.node, unpackOffer(event.offer).slots, second);
      case "ExitFinished":
        return this.#offer(event.node, 0, second);
      case "Slashed":
        return this.#earn(event.payee, event.reward, "reclaim");
      case "NodeLapsed":
        return this.#earn(event.payee, event.fee, "liveness");
      case "Split":
        return this.#split(event.controller, event.shares);
      default:
        if (isUnitEvent(event)) this.#unit(event, second);
    }
  }

  // Return what was told so far.
  told(): CourseTold {
    const tiers = [...this.#tiers].map(([tier, ends]): TierCourse => {
      const waits = [...ends.waits].sort((a, b) => a - b);
      const prices = [...ends.rates].sort(([a], [b]) => a - b).map(([day, rates]) => ({ day, median: medianBig(rates) ?? 0n, count: rates.length }));
      const { ok, failed, lost, returned } = ends;
      const starts = prices.reduce((sum, one) => sum + one.count, 0);
      return { tier, prices, starts, wait: medianOf(waits), longWait: quantile(waits, 90), ok, failed, lost, returned };
    });
    const earners = [...this.#earners].map(([account, one]) => ({ account, earned: one.earned, acts: new Map(one.acts) }));
    return {
      steps: [...this.#steps],
      tiers: tiers.sort((a, b) => b.starts - a.starts || (a.tier < b.tier ? -1 : 1)),
      earners: earners.sort((a, b) => compareBig(b.earned, a.earned)),
      torn: this.#torn,
    };
  }

  // ---- inside ----

  #unit(event: UnitEvent, second: number): void {
    const job = this.#jobs.get(event.jobId);
    const why = misplaced(event, job?.posted);
    if (why !== "" || job === undefined) return this.strays.note(event.log, why);
    if (event.name === "CheckpointPaid") {
      this.#checkpoint = true;
      return;
    }
    this.#last = event;
    if (event.name === "Unlocked") job.since = second;
    // Of an array that ends as a whole, no unit was held.
    if (event.index === SENTINEL) return;
    const unit = unpackUnit(event.word);
    const name = `${event.jobId}:${event.index}`;
    const ends = this.#endsOf(job.tier);
    if (this.#torn === "" && event.name !== "ToppedUp" && this.#busyUnits.has(name) !== FROM_HELD.has(event.name)) {
      this.#torn = `log ${event.log.logIndex} of block ${event.log.blockNumber}`;
    }
    switch (event.name) {
      case "Started": {
        const day = floorDivInt(unit.started, DAY) * DAY;
        const rates = ends.rates.get(day);
        if (rates === undefined) ends.rates.set(day, [unit.rate]);
        else rates.push(unit.rate);
        if (!job.started) ends.waits.push(Math.max(0, unit.started - job.since));
        job.started = true;
        return this.#hold(name, true, unit.started);
      }
      case "Submitted":
      case "Finished":
        if (unit.outcome === OUTCOME.OK) ends.ok += 1;
        else ends.failed += 1;
        return this.#hold(name, false, unit.mark);
      case "Reclaimed":
        ends.lost += 1;
        return this.#hold(name, false, second);
      case "Declined":
      case "GaveUp":
        ends.returned += 1;
        return this.#hold(name, false, second);
      default:
        if (!HELD.has(unit.state)) this.#hold(name, false, second);
    }
  }

  #endsOf(tier: string): Ends {
    let found = this.#tiers.get(tier);
    if (found === undefined) this.#tiers.set(tier, (found = { rates: new Map(), waits: [], ok: 0, failed: 0, lost: 0, returned: 0 }));
    return found;
  }

  #hold(name: string, held: boolean, at: number): void {
    if (this.#busyUnits.has(name) === held) return;
    if (held) this.#busyUnits.add(name);
    else this.#busyUnits.delete(name);
    this.#step(at, held ? 1 : -1, 0);
  }

  #offer(node: number, slots: number, at: number): void {
    const more = slots - (this.#slots.get(node) ?? 0);
    this.#slots.set(node, slots);
    this.#step(at, 0, more);
  }

  // Time never goes back, whatever a provider says.
  #step(at: number, busy: number, slots: number): void {
    const last = this.#steps.at(-1) ?? { at: 0, busy: 0, slots: 0 };
    const step = { at: Math.max(last.at, at), busy: last.busy + busy, slots: last.slots + slots };
    if (this.#steps.length > 0 && step.at === last.at) this.#steps[this.#steps.length - 1] = step;
    else this.#steps.push(step);
  }

  // The place of a share says whose it is, as in receipt.ts.
  #split(controller: Hex, shares: readonly bigint[]): void {
    if (controller !== this.market.contracts.JobRegistry) return;
    const last = this.#last;
    if (this.#checkpoint || last === null) {
      this.#checkpoint = false;
      return;
    }
    this.#last = null;
    const place = keeperPlace(last);
    const word = place === undefined ? undefined : shares[place];
    if (word === undefined) return;
    const { account, amount } = unpackShare(word);
    this.#earn(account, amount, EARNED[last.name] ?? "other");
  }

  #earn(account: Hex, amount: bigint, by: Earning): void {
    if (amount === 0n) return;
    let found = this.#earners.get(account);
    if (found === undefined) this.#earners.set(account, (found = { earned: 0n, acts: new Map() }));
    found.earned += amount;
    found.acts.set(by, (found.acts.get(by) ?? 0) + 1);
  }
}

// Say what events lack by themselves, or how the slots that they tell of differ from those in storage at the same block; "" for
// neither.
export function deniedBy({ steps, torn }: Pick<CourseTold, "steps" | "torn">, nodes: readonly Node[]): string {
  if (torn !== "") return `a log is missing before ${torn}`;
  const told = steps.at(-1) ?? { busy: 0, slots: 0 };
  const here = nodes.filter((node) => node.operator !== ZERO_ADDRESS);
  const busy = here.reduce((sum, node) => sum + node.state.busy, 0);
  const slots = here.reduce((sum, node) => sum + node.offer.slots, 0);
  if (told.busy === busy && told.slots === slots) return "";
  return `events tell of ${told.busy} of ${told.slots} busy slots, storage says ${busy} of ${slots}`;
}

// Return which share of the split after an event is a keeper's, undefined for none: a node's owner, who settles by `finish`,
// is none.
export function keeperPlace(last: UnitEvent): number | undefined {
  if (last.name === "Finished") return undefined;
  const rejected = last.name === "Ruled" && last.verdict === VERDICT.REJECT;
  if (last.name === "Settled" || last.name === "Closed" || (last.name === "Ruled" && !rejected)) return 2;
  return rejected || REFUNDS.has(last.name) ? 1 : 0;
}

// What befalls a unit that a node holds; all else befalls one that none does, but for a top-up.
const FROM_HELD: ReadonlySet<string> = new Set<MarketEvent["name"]>([
  ...(["Submitted", "Finished", "Declined", "GaveUp", "Reclaimed", "Closing", "Closed", "Checkpointed"] as const),
]);
const HELD: ReadonlySet<State> = new Set<State>([STATE.RUNNING, STATE.CLOSING]);
const REFUNDS: ReadonlySet<string> = new Set<MarketEvent["name"]>([
  ...(["Cancelled", "Declined", "GaveUp", "Reclaimed", "Expired", "Unproven", "Unlocked"] as const),
]);
const EARNED: Readonly<Partial<Record<MarketEvent["name"], Earning>>> = {
  Settled: "settle",
  Closed: "close",
  Reclaimed: "reclaim",
  Expired: "expire",
  Unlocked: "unlock",
  Started: "propose",
  Ruled: "ruling",
};
