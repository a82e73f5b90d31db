// Who may act on a unit next and until when, and how results are checked, word for word as `hearth job show` says it.
// Mirrors next_step and verification of hearth/client/views.py.

import { ZERO_ADDRESS } from "../generated/bounds";
import { FINISHED } from "../generated/sentences";
import { STATE, TERMS_FLAG } from "../generated/states";
import { type Hex, hexWord } from "./bytes";
import { HearthError } from "./errors";
import { isExcluded } from "./gates";
import {
  challengeEnd,
  claimable,
  claimsFrom,
  hasLiveProposal,
  hasTime,
  reclaimableFrom,
  settleableFrom,
} from "./lapse";
import { moment, until } from "./moments";
import { topped } from "./money";
import { bestOf } from "./stored";
import { deadlineAt, isTerminal, type Terms, type Unit, windowEnd } from "./types";
import { formatDuration } from "./units";
import type { JobView } from "./view";

// What a step is said of besides the job: when each node was last seen and after how many seconds it counts as silent,
// what a blocked job waits for in words, the address of the judge that goes by attesters' signatures, in lower case.
export interface Seen {
  readonly lastSeen: ReadonlyMap<number, number>;
  readonly deadAfter: number;
  readonly waits?: string | null;
  readonly attesters?: Hex | "";
}

// Say in words who may act on a touched lease next, and until when. Throws NOT_FOUND for another one.
export function nextStep(view: JobView, index: number, seen: Seen): string {
  const { now } = view;
  const unit = view.units[index];
  const stored = view.stored[index];
  if (unit === undefined || stored === undefined) throw noLease(index);
  if (isTerminal(unit.state)) return FINISHED;
  if (unit.state === STATE.OPEN) return nextOpen(view, unit, stored.unit, bestOf(stored).node);
  if (unit.state === STATE.RUNNING) {
    const dead = reclaimableFrom(unit, seen.lastSeen.get(unit.node) ?? unit.started, seen.deadAfter);
    if (now >= dead) return `node ${unit.node} is late or silent: anyone may reclaim the unit`;
    return (
      `node ${unit.node} runs it and may submit until ${until(deadlineAt(unit), now)}; ` +
      `if it falls silent, anyone may reclaim from ${until(dead, now)}`
    );
  }
  if (unit.state === STATE.CLOSING) {
    if (now >= deadlineAt(unit)) return "the notice is over: anyone may close it";
    return `node ${unit.node} may still submit until ${until(deadlineAt(unit), now)}, then anyone may close it`;
  }
  if (unit.state === STATE.SUBMITTED || unit.state === STATE.DISPUTED) {
    return nextSubmitted(view, unit, seen.attesters ?? "");
  }
  return seen.waits || "waits for other jobs";
}

// Say how results of a job are checked, by whom and until when; `attesters` is the address of that judge.
export function verification(terms: Terms, attesters: Hex | ""): string {
  if (terms.judge === ZERO_ADDRESS) return "none: nobody can challenge this result";
  const judge =
    terms.judge === attesters
      ? `enough attesters of the set ${hexWord(terms.judgeData)}`
      : `judge ${terms.judge}`;
  if (isProven(terms)) {
    const end = moment(terms.deadline + terms.challengeWindow);
    return `${judge} must confirm a result until ${end}, else it is refunded`;
  }
  return `${judge} may dispute a result for ${formatDuration(terms.challengeWindow)} after it came`;
}

// Say who may end a unit that has a result, and from when.
function nextSubmitted({ terms, policy, now }: JobView, unit: Unit, attesters: Hex | ""): string {
  const since = settleableFrom(terms, policy, unit);
  const proven = isProven(terms);
  const end = proven ? "refund it, since nobody has proven it" : "settle it";
  const accept = "; hearth job accept JOB settles it at once";
  if (unit.state === STATE.DISPUTED) {
    if (now >= since) return `its judge ${terms.judge} has not ruled in time: anyone may ${end} now`;
    return `its judge ${terms.judge} looks at it; without a ruling anyone may ${end} from ${until(since, now)}`;
  }
  if (now >= since) {
    const unjudged = terms.judge === ZERO_ADDRESS ? " (nobody can challenge this result)" : "";
    return `anyone may ${end} now${unjudged}${accept}`;
  }
  if (proven && terms.judge === attesters) {
    return (
      `its attesters may sign it until ${until(since, now)}, hearth job attest JOB, and anyone sends what they ` +
      `signed, hearth job confirm JOB FILE --attesters FILE; then anyone may ${end}${accept}`
    );
  }
  if (proven) {
    return `its judge ${terms.judge} may confirm it until ${until(since, now)}; then anyone may ${end}${accept}`;
  }
  if (now < challengeEnd(terms, unit)) {
    return `its judge ${terms.judge} may dispute it; anyone may settle it from ${until(since, now)}${accept}`;
  }
  return `its node is on probation: anyone may settle it from ${until(since, now)}${accept}`;
}

// Say who may take an OPEN unit: `unit` with its lapse applied, `stored` as it is on chain.
function nextOpen({ terms, policy, now }: JobView, unit: Unit, stored: Unit, best: number): string {
  if (!hasTime(topped(terms, stored), policy, now)) {
    return "no attempt can end before the deadline: anyone may expire it for a refund, hearth job cancel JOB too";
  }
  if (hasLiveProposal(unit, policy, now)) {
    const window = windowEnd(unit);
    const end = until(window + policy.ackTime, now);
    if (now >= window) return `node ${best} may take it until ${end}`;
    return `better proposals until ${until(window, now)}; then node ${best} may take it until ${end}`;
  }
  const shut = isExcluded(unit, unit.node, true);
  const excluded = shut && unit.node !== 0 ? `; node ${unit.node} is excluded, since it had the unit last` : "";
  const opens = claimsFrom(terms, policy, stored);
  if (!claimable(terms, policy, stored, now)) {
    const waits = shut ? excluded : `; node ${unit.node} let it pass, and can only claim it`;
    return `anyone may propose a fitting worker; workers may claim it from ${until(opens, now)}${waits}`;
  }
  const risen = opens + policy.claimRamp;
  const cheaper = now >= risen ? "" : `, cheaper ones first, and at its full price from ${until(risen, now)}`;
  const judged = terms.judge === ZERO_ADDRESS ? "" : " whose provider accepts its judge";
  return `any fitting worker${judged} may claim it${cheaper}${excluded}`;
}

const noLease = (index: number): HearthError =>
  new HearthError("NOT_FOUND", `nobody has touched a unit ${index} of this job`);

const isProven = (terms: Terms): boolean => (terms.flags & TERMS_FLAG.PROVEN) !== 0;
