// What anyone may do for pay at a second: results to settle, notices that are over, leases to take back, units to expire, jobs to
// unlock, silence to record. Mirrors `decide` of keeper/decide.py, proposals aside, for a keeper that leaves nothing to others and
// loses what it likes. Pay is base units, gas is what the library reckons with.

import type { Hex } from "./bytes";
import { GAS, SENTINEL, ZERO_ADDRESS } from "../generated/bounds";
import { PROGRESS } from "../generated/parents";
import { NODE_FLAG, OUTCOME, STATE, TERMS_FLAG } from "../generated/states";
import { expirableFrom, reclaimableFrom, settleableFrom } from "./lapse";
import { expireReward, reclaimReward, settleReward, slashOf, topped, unlockFee } from "./money";
import { progressOf, unpackParents } from "./parents";
import type { Posted } from "./posted";
import { livenessFee } from "./status";
import type { StoredUnit } from "./stored";
import { type Header, deadlineAt, leasesOf, type Node, type Policy, type Unit } from "./types";

export type Does = "settle" | "close" | "reclaim" | "expire" | "unlock" | "check_liveness";

// One piece of work. `index` is that of a unit, SENTINEL for an array's untouched rest. It is due since a second, undefined where
// only events tell; it pays now, and `most` in the end. `gas` is what it may use alone.
export interface Task {
  readonly does: Does;
  readonly posted: Posted | undefined;
  readonly index: bigint;
  readonly node: number;
  readonly since: number | undefined;
  readonly pay: bigint;
  readonly most: bigint;
  readonly gas: bigint;
}

// A job that has not ended, as stored: its touched units in their order, an array's header, and the words of its parents.
export interface Work {
  readonly posted: Posted;
  readonly policy: Policy;
  readonly header: Header | null;
  readonly stored: readonly StoredUnit[];
  readonly parents: ReadonlyMap<Hex, bigint>;
}

// Seconds after which pay grows no more.
const GROWN = 600;

// Return what is due of a job; `beats` are nodes' last signs of life. Throws BAD_WORD, BAD_PARENTS for what no contract writes.
export function tasksOf(work: Work, now: number, beats: ReadonlyMap<number, number>, deadAfter: number): Task[] {
  const found = work.stored.flatMap(({ unit }, index) => unitTask(work, unit, BigInt(index), now, beats, deadAfter) ?? []);
  const rest = restTask(work, now);
  return rest === undefined ? found : [...found, rest];
}

// Return the nodes whose silence is to be recorded.
export function silences(nodes: readonly Node[], now: number, deadAfter: number, fee: bigint): Task[] {
  return nodes.flatMap((node): Task[] => {
    const { beat, status } = node.state;
    const silent = beat !== 0 && now - beat >= deadAfter && node.operator !== ZERO_ADDRESS;
    const pay = livenessFee(node, fee);
    if (!silent || (status & (NODE_FLAG.LAPSED | NODE_FLAG.EXITING)) !== 0 || pay === 0n) return [];
    const gas = BigInt(GAS.LIVENESS_BATCH_GAS + GAS.LIVENESS_ITEM_GAS);
    return [{ does: "check_liveness", posted: undefined, index: 0n, node: node.id, since: beat + deadAfter, pay, most: pay, gas }];
  });
}

// Return tasks in the order of their pay, the best first, then the one that is due the longest.
export const byPay = (tasks: readonly Task[]): Task[] =>
  [...tasks].sort((a, b) => (a.pay > b.pay ? -1 : a.pay < b.pay ? 1 : (a.since ?? 0) - (b.since ?? 0)));

// Say whether what a task pays covers its gas at a price in wei, in a market that pays in the chain's coin. Mirrors `is_worth` of
// keeper/config.py for a keeper that loses nothing.
export const isWorth = ({ pay, gas }: Pick<Task, "pay" | "gas">, price: bigint): boolean => pay >= gas * price;

// Return tasks as they are done in one transaction: silence first, since that of a node from which all was taken pays nothing.
export const inTurn = (tasks: readonly Task[]): Task[] => [
  ...tasks.filter(({ does }) => does === "check_liveness"),
  ...tasks.filter(({ does }) => does !== "check_liveness"),
];

function unitTask(
  work: Work,
  unit: Unit,
  index: bigint,
  now: number,
  beats: ReadonlyMap<number, number>,
  deadAfter: number,
): Task | undefined {
  const { posted, policy } = work;
  const { terms } = posted;
  const task = (does: Does, since: number, reward: (overdue: number) => bigint, gas: number): Task | undefined =>
    now < since ? undefined : { does, posted, index, node: unit.node, since, pay: reward(now - since), most: reward(GROWN), gas: BigInt(gas) };
  const lost = (overdue: number): bigint => reclaimReward(terms, slashOf(terms, policy), overdue);
  switch (unit.state) {
    case STATE.OPEN:
    case STATE.BLOCKED: {
      const since = expirableFrom(topped(terms, unit), policy);
      if (now >= since) {
        const expire = task("expire", since, (overdue) => expireReward(terms, unit, overdue), GAS.EXPIRE_GAS);
        return expire !== undefined && expire.pay > 0n ? expire : undefined;
      }
      return unit.state === STATE.BLOCKED ? unlockTask(work, index, unit.started, now) : undefined;
    }
    case STATE.RUNNING:
      return task("reclaim", reclaimableFrom(unit, beats.get(unit.node) ?? unit.started, deadAfter), lost, GAS.RECLAIM_GAS);
    case STATE.CLOSING:
      return task("close", deadlineAt(unit), (overdue) => settleReward(terms, overdue), GAS.CLOSE_GAS);
    case STATE.SUBMITTED:
    case STATE.DISPUTED: {
      const since = settleableFrom(terms, policy, unit);
      // Without its proof it ends as a lease that is reclaimed does.
      if ((terms.flags & TERMS_FLAG.PROVEN) !== 0) return task("settle", since, lost, GAS.RECLAIM_GAS);
      const resumed = unit.outcome === OUTCOME.OK ? GAS.PAID_CHECKPOINT_GAS * unit.resume : 0;
      return task("settle", since, (overdue) => settleReward(terms, overdue), GAS.SETTLE_GAS + resumed);
    }
    default:
      return undefined;
  }
}

// What is due of the leases of an array that nobody has touched.
function restTask(work: Work, now: number): Task | undefined {
  const { posted, policy, header } = work;
  const { terms } = posted;
  if (header === null || header.closed || header.touched >= leasesOf(terms)) return undefined;
  const since = expirableFrom(terms, policy);
  if (now < since) return header.waiting ? unlockTask(work, SENTINEL, header.opened, now) : undefined;
  const reward = (overdue: number): bigint => expireReward(terms, null, overdue);
  const pay = reward(now - since);
  if (pay === 0n) return undefined;
  return { does: "expire", posted, index: SENTINEL, node: 0, since, pay, most: reward(GROWN), gas: BigInt(GAS.EXPIRE_GAS) };
}

// A job waits from a second on; when its parents ended, their words do not say.
function unlockTask({ posted, parents }: Work, index: bigint, from: number, now: number): Task | undefined {
  if (now < from) return undefined;
  const waitsFor = unpackParents(posted.parents);
  const words = waitsFor.map(({ job }) => parents.get(job) ?? 0n);
  if (progressOf(waitsFor, words) === PROGRESS.WAITS) return undefined;
  const pay = unlockFee(posted.terms);
  const gas = BigInt(GAS.UNLOCK_GAS + GAS.UNLOCK_PARENT_GAS * waitsFor.length);
  return { does: "unlock", posted, index, node: 0, since: undefined, pay, most: pay, gas };
}
