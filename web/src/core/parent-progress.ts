// How far the jobs have come that another one waits for, word for word as `hearth job show` says it. Mirrors
// hearth/client/job/parents.py. `now` is the second of the block that is looked at.

import { ENDED, PROGRESS } from "../generated/parents";
import { ASKED, OUTCOME_LABELS } from "../generated/sentences";
import { DONE, STATE, UNIT_FLAG } from "../generated/states";
import { hasTime, settleableFrom } from "./lapse";
import { moment, until } from "./moments";
import { endedBy, type Parent, progressOf } from "./parents";
import { stateLabel, unitLabel } from "./state-labels";
import { deadlineAt, type Header, NEW_UNIT, type Terms } from "./types";
import { isHeader, unpackHeader, unpackPolicy, unpackUnit } from "./words";
import type { JobView } from "./view";

// A job that another one waits for: its own word, and its terms, null where its post was not looked for any further. Of
// an array the word says enough: its units are not read.
export interface ParentView {
  readonly parent: Parent;
  readonly word: bigint;
  readonly terms: Terms | null;
}

const EXPIRES = "no attempt can end before the deadline: anyone may expire it for a refund, hearth job cancel JOB too";
const OPENS = "what it waited for has ended as asked: anyone may start it, hearth job unlock JOB";
const byNumber = (words: Readonly<Record<string, string>>): ReadonlyMap<number, string> =>
  new Map(Object.entries(words).map(([number, text]) => [Number(number), text]));
const MEANT = byNumber(ASKED);
const LABEL_OF = byNumber(OUTCOME_LABELS);

// Say whether a word is a job's own: an array's units stand under keys that look like ids. Throws BAD_WORD.
export const isJob = (word: bigint): boolean =>
  word !== 0n && (isHeader(word) || (unpackUnit(word).flags & UNIT_FLAG.ARRAY) === 0);

// Say of a parent how far it has come, and until when it may take. Throws BAD_WORD for a word that no contract writes.
export function progressInWords(one: ParentView, now: number): string {
  if (!isJob(one.word)) return "no job of this market: it never ends";
  const ended = endedBy(one.word);
  if (ended === ENDED.WELL) return "ended well";
  if (ended === ENDED.OTHERWISE) return `ended otherwise: ${endOf(one.word)}`;
  const moves = movesOf(one.word, one.terms, now);
  return moves === "" ? stateOf(one.word) : `${stateOf(one.word)}, ${moves}`;
}

// Say of a blocked job what it waits for, or who may end its waiting. Throws BAD_WORD, BAD_PARENTS.
export function waitsFor(view: JobView, parents: readonly ParentView[]): string {
  if (!hasTime(view.terms, view.policy, view.now)) return EXPIRES;
  const found = progressOf(parents.map((one) => one.parent), parents.map((one) => one.word));
  if (found === PROGRESS.OPENS) return OPENS;
  if (found === PROGRESS.FAILS) {
    const wrong = parents.find(({ parent, word }) => isOtherwise(parent, word)) as ParentView;
    const asked = MEANT.get(wrong.parent.condition) ?? "";
    const name = wrong.parent.job.slice(0, 14);
    const end = "anyone may end this one for a refund, hearth job unlock JOB";
    return `job ${name} was ${asked}, and ${progressInWords(wrong, view.now)}: ${end}`;
  }
  const missing = parents.filter(({ word }) => endedBy(word) === ENDED.NOT_YET);
  const told = missing.map((one) => `${one.parent.job.slice(0, 14)} (${progressInWords(one, view.now)})`);
  return `waits for ${told.join(", ")}`;
}

// Return the moment until which a job may take to end, as far as its terms say. A result may come at the deadline, of a
// node on probation too.
export function latestEnd(terms: Terms): number {
  const last = { ...NEW_UNIT, state: STATE.SUBMITTED, mark: terms.deadline, flags: UNIT_FLAG.FRESH };
  return settleableFrom(terms, unpackPolicy(terms.policy), last);
}

function isOtherwise(parent: Parent, word: bigint): boolean {
  const ended = endedBy(word);
  return ended !== ENDED.NOT_YET && (parent.condition & ended) === 0;
}

function stateOf(word: bigint): string {
  if (!isHeader(word)) return stateLabel(unpackUnit(word).state);
  const header = unpackHeader(word);
  return stateLabel(header.waiting ? STATE.BLOCKED : header.touched > 0 ? STATE.RUNNING : STATE.OPEN);
}

// How a job ended that did not end well.
function endOf(word: bigint): string {
  if (isHeader(word)) return unitsOf(unpackHeader(word));
  const unit = unpackUnit(word);
  return unit.state === STATE.SETTLED ? (LABEL_OF.get(unit.outcome) ?? "") : unitLabel(unit);
}

// What a job that has not ended does, and until when; "" where its terms would have to say that.
function movesOf(word: bigint, terms: Terms | null, now: number): string {
  const most = terms === null ? "" : `until ${moment(latestEnd(terms))} at most`;
  if (isHeader(word)) return [`${unitsOf(unpackHeader(word))} so far`, most].filter((part) => part !== "").join(", ");
  const unit = unpackUnit(word);
  if (unit.state === STATE.RUNNING || unit.state === STATE.CLOSING) {
    return `node ${unit.node} may submit until ${until(deadlineAt(unit), now)}`;
  }
  if (terms !== null && (unit.state === STATE.SUBMITTED || unit.state === STATE.DISPUTED)) {
    const since = settleableFrom(terms, unpackPolicy(terms.policy), unit);
    return `its result may be settled from ${until(since, now)}`;
  }
  return most;
}

const unitsOf = ({ done, leases }: Header): string => `${done} of ${leases} units ${DONE}`;
