// What a prepared call does, in words that need nothing else; whatever it names stands there whole.

import { SENTINEL } from "../generated/bounds";
import { CONDITION } from "../generated/parents";
import { BILLING } from "../generated/states";
import { fromHex, type Hex } from "./bytes";
import { type Change, changeId, changeOf } from "./changes";
import { cidOfDigest } from "./cid";
import { HearthError } from "./errors";
import { changeText } from "./governed";
import { moment } from "./moments";
import { escrowAtPost } from "./money";
import type { Network } from "./network";
import { parentsHash, unpackParents } from "./parents";
import { type Prepared, termsIn, wordsOf } from "./prepared";
import { verification } from "./steps";
import { jobIdOfWords } from "./terms";
import { nameOf, type Policy } from "./types";
import { formatAmount, formatDuration, formatRate } from "./units";
import { unpackOffer } from "./words";

// One sentence, and its arguments as names and values. `job` is the job that it is about.
export interface Told {
  readonly what: string;
  readonly rows: readonly (readonly [string, string])[];
  readonly job?: Hex;
}

// Say what a call does; `policy` is the one of new jobs, null where it is not known. Throws BAD_TX for what no contract takes.
export function tellOf(call: Prepared, network: Network, policy: Policy | null): Told {
  try {
    return TELLERS[call.contract](call, network, policy);
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    if (error.code === "BAD_TX") throw error;
    throw new HearthError("BAD_TX", `this is no prepared transaction: ${error.message}`, "prepare another: --print-tx writes one");
  }
}

type Teller = (call: Prepared, network: Network, policy: Policy | null) => Told;

const TELLERS: Readonly<Record<Prepared["contract"], Teller>> = {
  JobRegistry: ofJobs,
  NodeRegistry: ofNodes,
  Steward: ofSteward,
  Escrow: ({ args, from }, { asset }) => ({
    what: `Withdraw ${formatAmount(args["amount"] as bigint, asset)} of credit in Escrow to the account itself`,
    rows: [["to", from]],
  }),
  token: ({ args }, { asset, contracts }) => ({
    what: `Let ${lower(args["spender"]) === contracts.JobRegistry ? "JobRegistry" : "NodeRegistry"} take exactly ${formatAmount(args["amount"] as bigint, asset)}`,
    rows: [["spender", lower(args["spender"])]],
  }),
};

function ofJobs(call: Prepared, network: Network): Told {
  const { args } = call;
  const job = jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, wordsOf(args["terms"]));
  const index = args["index"] as bigint;
  if (call.function === "post") return { what: posting(call, network), rows: postRows(call, network, job), job };
  const unit = index === SENTINEL ? "the units that nobody took" : `unit ${index}`;
  const what = call.function === "cancel" ? `Cancel ${unit} of a job` : `Accept the result of ${unit} of a job, which pays it at once`;
  return { what, rows: [["job", job]], job };
}

function posting({ args }: Prepared, { asset }: Network): string {
  const terms = termsIn(args);
  const units = terms.units === 1 ? "one unit" : `${terms.units} units`;
  return `Post a job of ${units}, which takes ${formatAmount(escrowAtPost(terms), asset)}; what is not used comes back`;
}

function postRows({ args }: Prepared, { asset, contracts }: Network, job: Hex): Told["rows"] {
  const terms = termsIn(args);
  const list = args["parents"] as readonly Hex[];
  if (parentsHash(list) !== terms.parentsHash) throw new HearthError("BAD_TX", "this is no prepared transaction: its job waits for other jobs than it names");
  const parents = unpackParents(list).map(({ job: id, condition }) => `${id} (${nameOf(CONDITION, condition)})`);
  return [
    ["job", job],
    ["spec", String(cidOfDigest(fromHex(terms.spec)))],
    ["pays at most", `${formatRate(terms.ceiling, asset)}, billed ${nameOf(BILLING, terms.billing)}`],
    ["time", `${formatDuration(terms.maxSeconds)} a unit, ${terms.maxAttempts} attempts`],
    ["deadline", moment(terms.deadline)],
    ["checked by", verification(terms, contracts.Attesters)],
    ["waits for", parents.join(", ") || "nothing"],
  ];
}

function ofNodes({ function: name, args }: Prepared, { asset }: Network): Told {
  const node = `node ${String(args["node"])}`;
  const amount = (of: string): string => formatAmount(args[of] as bigint, asset);
  switch (name) {
    case "register":
      return { what: `Register a worker with a stake of ${amount("stake")}`, rows: [["operator", lower(args["operator"])], ...offerRows(args, true, asset)] };
    case "add_stake":
      return { what: `Add ${amount("amount")} to the stake of ${node}`, rows: [["owner", lower(args["owner"])]] };
    case "update_offer":
      return { what: `Replace what ${node} offers; its ask stays`, rows: offerRows(args, false, asset) };
    case "set_ask":
      return { what: `Ask ${formatRate(args["ask"] as bigint, asset)} for ${node}, after its notice`, rows: [] };
    case "set_operator":
      return { what: `Offer ${node} to another operator, whose first beat takes it over`, rows: [["operator", lower(args["operator"])]] };
    case "offer_owner":
      return { what: `Offer ${node} to another owner, who must accept it`, rows: [["owner", lower(args["owner"])]] };
    case "accept_owner":
      return { what: `Become the owner of ${node}`, rows: [] };
    case "exit_start":
      return { what: `Start the exit of ${node}`, rows: [] };
    case "exit_cancel":
      return { what: `Stay with ${node} after all`, rows: [] };
    default:
      return { what: `Finish the exit of ${node}: its stake becomes its owner's credit`, rows: [] };
  }
}

// All that is offered, and of a worker that registers what it asks: the ask of a node has a call of its own.
function offerRows(args: Prepared["args"], withAsk: boolean, asset: Network["asset"]): Told["rows"] {
  const { ask, ...offer } = unpackOffer(args["offer"] as bigint);
  const sizes = Object.entries(offer).map(([name, value]) => `${name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${value}`);
  return [
    ...(withAsk ? [["ask", formatRate(ask, asset)] as const] : []),
    ["offer", sizes.join(", ")],
    ["manifest", String(args["manifest"])],
  ];
}

function ofSteward({ function: name, args }: Prepared, { asset }: Network, policy: Policy | null): Told {
  const both = ["posts", "registrations"].filter((one) => args[one] === true).join(" and ");
  switch (name) {
    case "queue":
    case "execute": {
      const change = changeIn(args);
      const text = changeText(change, "waiting", policy, asset);
      const what = name === "queue" ? `Announce a change, which anybody can carry out after its delay: ${text}` : `Carry out a change: ${text}`;
      return { what, rows: [["change", changeId(change)]] };
    }
    case "drop":
      return { what: "Take a queued change back, for good", rows: [["change", String(args["change"])]] };
    case "drop_previous_policy":
      return { what: "Take posts under the current policy only, from now on", rows: [] };
    case "pause":
      return { what: `Stop new ${both || "nothing"} for 7 days`, rows: [] };
    case "accept_council":
      return { what: "Become the council", rows: [] };
    default:
      return { what: `Let the Steward take the governor's rights over ${both || "nothing"}`, rows: [] };
  }
}

const changeIn = (args: Prepared["args"]): Change => changeOf(args["op"] as bigint, args["word"] as bigint, args["salt"] as bigint);

const lower = (value: unknown): string => String(value).toLowerCase();
