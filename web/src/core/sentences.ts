// What people read of an event, word for word as `hearth job show` and `hearth net events` say it. Mirrors event_facts
// of hearth/client/views.py. Amounts are rounded and in the market's asset, times UTC.

import { SENTINEL } from "../generated/bounds";
import { OUTCOME_LABELS } from "../generated/sentences";
import { STATE, VERDICT } from "../generated/states";
import { fromHex, type Hex, hexWord } from "./bytes";
import { changeInWords, changeOf } from "./changes";
import { cidOfDigest, cidOfRoot } from "./cid";
import { type EventName, type EventNamed, isUnitEvent, type MarketEvent, type NodeUnitEvent } from "./events";
import { moment } from "./moments";
import { deadlineAt, type Outcome, type Unit } from "./types";
import { type Asset, formatDuration, showAmount, showRate } from "./units";
import { unpackOffer, unpackShare, unpackUnit } from "./words";

// What people read of an event, and of which unit: "all" for an array's untouched ones, undefined of an event of no unit.
export interface EventFacts {
  readonly unit?: number | "all";
  readonly text: string;
}

type MarketName = Exclude<EventName, NodeUnitEvent["name"] | UnitOnly["name"] | "JobPosted">;
type UnitOnly = Extract<MarketEvent, { of: "unit" }>;

const NODE_KEYS = 1n << 32n;
const ADDRESSES = 1n << 160n;
const LABEL_OF: ReadonlyMap<number, string> = new Map(
  Object.entries(OUTCOME_LABELS).map(([outcome, words]) => [Number(outcome), words]),
);
// Return the words for an outcome, "" for none.
export const outcomeLabel = (outcome: Outcome): string => (outcome ? LABEL_OF.get(outcome) : undefined) ?? "";

// Return the CID of a checkpoint's files, by the digest of their folder.
export const stateCid = (root: Hex): string => cidOfRoot(fromHex(root)).toString();

// Return the CID of a result's document, by its digest: what an attester names. Throws BAD_CID for no digest.
export const resultCid = (digest: Hex): string => cidOfDigest(fromHex(digest)).toString();

// Return what people read of an event.
export function eventFacts(event: MarketEvent, asset: Asset): EventFacts {
  if (event.name === "JobPosted") return { text: "posted and funded" };
  if (!isUnitEvent(event)) return { text: marketText(event, asset) };
  const unit = event.index === SENTINEL ? "all" : Number(event.index);
  return { unit, text: event.of === "node-unit" ? unitText(event, unpackUnit(event.word), asset) : restText(event, asset) };
}

// Name what Escrow keeps money for: a node's stake by its number, jobs by their submitter; else the key itself.
export function shownKey(key: Hex): string {
  const number = BigInt(key);
  if (number < NODE_KEYS) return `node ${number}`;
  return number < ADDRESSES ? `the jobs of 0x${key.slice(26)}` : `key ${key.slice(0, 14)}`;
}

// ---- of units ----

function restText(event: UnitOnly, asset: Asset): string {
  if (event.name === "CheckpointPaid") {
    return `the checkpoint of attempt ${event.attempt} was used: node ${event.node}'s owner earned ${net(event.pay, event.fee, asset)}`;
  }
  const back = `${showAmount(event.refund, asset)} refunded`;
  const texts: Readonly<Record<typeof event.name, string>> = {
    Cancelled: `cancelled, ${back}`,
    Expired: `expired, ${back}`,
    Unlocked:
      event.refund === 0n
        ? "what it waited for has ended as asked: it waits for a machine"
        : `a job that it waited for ended otherwise than asked, ${back}`,
  };
  return texts[event.name];
}

function unitText(event: NodeUnitEvent, unit: Unit, asset: Asset): string {
  const node = `node ${event.node}`;
  const reopened = unit.state === STATE.OPEN ? "it waits for a machine again" : "no attempt left, refunded";
  switch (event.name) {
    case "Proposed":
      return `${node} proposed`;
    case "Started": {
      const resumed = unit.resume === 0 ? "" : `, from the checkpoint of attempt ${unit.resume}`;
      return `${node} started (attempt ${unit.attempts}${resumed})`;
    }
    case "Checkpointed":
      return `${node} stored a checkpoint after ${formatDuration(event.seconds)}: ${stateCid(event.root)}`;
    case "ToppedUp": {
      const whole = `${formatDuration(unit.seconds)} in all, until ${moment(deadlineAt(unit))}`;
      return `topped up for ${showAmount(event.amount, asset)}: ${whole}`;
    }
    case "Submitted":
      return `${node} submitted: ${outcomeLabel(unit.outcome)}, result ${resultCid(event.result)}`;
    case "Settled":
    case "Finished": {
      const [how, result] =
        event.name === "Finished" ? ["submitted and settled", `, result ${resultCid(event.result)}`] : ["settled", ""];
      const earned = `${node}'s owner earned ${net(event.pay, event.fee, asset)}`;
      return `${how} (${outcomeLabel(unit.outcome)}), ${earned}${result}`;
    }
    case "Declined":
      return `${node} gave it back; ${reopened}`;
    case "GaveUp":
      return `${node} gave it up and paid for that; ${reopened}`;
    case "Reclaimed":
      return `${node} lost it: late or silent; ${reopened}`;
    case "Disputed":
      return `the judge holds ${node}'s result`;
    case "Ruled":
      return ruledText(event, unit, asset);
    case "Unproven":
      return `nobody has proven ${node}'s result in time; refunded`;
    case "Closing":
      return `${node} was given notice`;
    case "Closed":
      return `closed after notice, ${node}'s owner earned ${net(event.pay, event.fee, asset)}`;
  }
}

function ruledText(event: EventNamed<"Ruled">, unit: Unit, asset: Asset): string {
  if (event.verdict === VERDICT.RELEASE) {
    return `the judge lets node ${event.node}'s result stand: it can be settled as if it had not been held`;
  }
  if (event.verdict === VERDICT.REJECT) {
    const taken = showAmount(event.taken, asset);
    return `the judge rejected node ${event.node}'s result: refunded, its bond of ${taken} lost`;
  }
  const earned = `node ${event.node}'s owner earned ${net(event.pay, event.fee, asset)}`;
  if (event.verdict === VERDICT.CONFIRM) return `the judge confirmed it (${outcomeLabel(unit.outcome)}), ${earned}`;
  return `the judge could not tell: refunded but for the start fee, ${earned}`;
}

// ---- of the market ----

function marketText(event: Extract<MarketEvent, { name: MarketName }>, asset: Asset): string {
  const amount = (value: bigint): string => showAmount(value, asset);
  switch (event.name) {
    case "NodeRegistered":
      return (
        `node ${event.node} registered: ${shownOffer(event.offer, asset)}, stake ${amount(event.stake)}, ` +
        `owner ${event.owner}, operator ${event.operator}`
      );
    case "OfferChanged":
      return `node ${event.node} offers ${shownOffer(event.offer, asset)}`;
    case "AskChanged":
      return `node ${event.node} asks ${showRate(event.ask, asset)} from ${moment(event.at)}`;
    case "OperatorOffered":
      return isZero(event.operator)
        ? `node ${event.node} stays with its operator`
        : `node ${event.node} is offered to the operator ${event.operator}, ` +
            "until whose first beat the present one serves";
    case "OperatorChanged":
      return `node ${event.node} has the operator ${event.operator}`;
    case "OwnerOffered":
      return `node ${event.node} is offered to ${event.owner}`;
    case "OwnerChanged":
      return `node ${event.node} belongs to ${event.owner}`;
    case "StakeAdded":
      return `node ${event.node} has ${amount(event.amount)} more of stake, from ${event.payer}`;
    case "ExitStarted":
      return `node ${event.node} leaves, from ${moment(event.at)} on with its stake`;
    case "ExitCancelled":
      return `node ${event.node} stays`;
    case "ExitFinished":
      return `node ${event.node} left with its stake of ${amount(event.stake)}`;
    case "NodeLapsed":
      return `node ${event.node} is silent, ${event.payee} earned ${amount(event.fee)} by showing it`;
    case "Slashed":
      return `node ${event.node} was slashed: ${amount(event.reward)} to ${event.payee}, ${amount(event.burnt)} burnt`;
    case "Rejected":
      return (
        `node ${event.node} lost its bond by a judge's verdict: ${shownShares(event.shares, asset)}, ` +
        `${amount(event.burnt)} burnt; it takes no leases until ${moment(event.until)}`
      );
    case "Quarantined":
      return `node ${event.node} is quarantined until ${moment(event.until)}`;
    case "MinimumStakeChanged":
      return `new nodes stake at least ${amount(event.amount)}`;
    case "Locked":
      return `${amount(event.amount)} locked for ${shownKey(event.key)}`;
    case "CreditLocked":
      return `${amount(event.amount)} of credit locked for ${shownKey(event.key)}`;
    case "Split":
      return `${shownKey(event.key)}: ${shownShares(event.shares, asset)}`;
    case "Withdrawn": {
      const to = event.to === event.account ? "" : ` to ${event.to}`;
      return `${event.account} withdrew ${amount(event.amount)}${to}`;
    }
    case "PolicyChanged": {
      const before = event.until === 0 ? "and no other" : `the previous one is taken until ${moment(event.until)}`;
      return `policy ${hexWord(event.policy)} for new jobs, ${before}`;
    }
    case "Paused":
      return `paused until ${moment(event.until)}`;
    case "GovernorOffered":
      return `${event.governor} is named as the next governor`;
    case "GovernorChanged":
      return `${event.governor} is the governor`;
    case "ChangeQueued": {
      const what = changeInWords(changeOf(BigInt(event.op), event.word, 0n), asset);
      return `change ${event.change.slice(0, 14)} waits until ${moment(event.due)}: ${what}`;
    }
    case "ChangeDropped":
      return `change ${event.change.slice(0, 14)} was dropped`;
    case "ChangeExecuted": {
      const what = changeInWords(changeOf(BigInt(event.op), event.word, 0n), asset);
      return `change ${event.change.slice(0, 14)} was executed: ${what}`;
    }
    case "CouncilOffered":
      return `the council's seat is offered to ${seat(event.council)}`;
    case "CouncilChanged":
      return `${event.council} is the council`;
    case "GuardianChanged":
      return `${seat(event.guardian)} is the guardian`;
  }
}

const net = (pay: bigint, fee: bigint, asset: Asset): string => showAmount(pay - fee, asset);

function shownOffer(word: bigint, asset: Asset): string {
  const offer = unpackOffer(word);
  return `${offer.slots} ${offer.slots === 1 ? "slot" : "slots"} at ${showRate(offer.ask, asset)}`;
}

function shownShares(shares: readonly bigint[], asset: Asset): string {
  const parts = shares.map(unpackShare).filter((share) => share.amount !== 0n);
  const shown = parts.map((share) => `${showAmount(share.amount, asset)} to ${share.account}`);
  return shown.length === 0 ? "nothing to anybody" : shown.join(", ");
}

const isZero = (address: Hex): boolean => BigInt(address) === 0n;

const seat = (address: Hex): string => (isZero(address) ? "nobody" : address);
