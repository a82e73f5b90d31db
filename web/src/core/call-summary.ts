// What a prepared call does, in words that need nothing else; whatever it names stands there whole.

import { SENTINEL, ZERO_HASH } from "../generated/bounds";
import { CONDITION } from "../generated/parents";
import { BILLING } from "../generated/states";
import { fromHex, type Hex } from "./bytes";
import { type Change, changeId, changeOf } from "./changes";
import { cidOfDigest } from "./cid";
import { counted } from "./counted";
import { HearthError } from "./errors";
import { announced, changeText } from "./governed";
import { manifestRows } from "./manifest";
import { moment } from "./moments";
import { escrowAtPost } from "./money";
import type { Network } from "./network";
import { parentsHash, unpackParents } from "./parents";
import { type ByCall, ofCall, type Prepared, termsIn, wordsOf } from "./prepared";
import { verification } from "./steps";
import { jobIdOfWords } from "./terms";
import { leasesOf, nameOf, type Policy, type Terms } from "./types";
import { formatAmount, formatDuration, formatRate } from "./units";
import { unpackOffer } from "./words";

// One sentence, and its arguments as names and values. `job` is the job that it is about.
export interface CallSummary {
  readonly what: string;
  readonly rows: readonly (readonly [string, string])[];
  readonly job?: Hex;
}

// Say what a call does; `policy` is the one of new jobs, null where it is not known. Throws BAD_TX for what no contract takes.
export function summaryOf(call: Prepared, network: Network, policy: Policy | null): CallSummary {
  try {
    return ofCall(SUMMARIES, call)(call, network, policy);
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    if (error.code === "BAD_TX") throw error;
    throw new HearthError("BAD_TX", `this is no prepared transaction: ${error.message}`, "prepare another: --print-tx writes one");
  }
}

type Summarize = (call: Prepared, network: Network, policy: Policy | null) => CallSummary;

// A call of an owner's node, told by its number.
const ofNode =
  (tell: (node: string, call: Prepared, asset: Network["asset"]) => CallSummary): Summarize =>
  (call, { asset }) =>
    tell(`node ${String(call.args["node"])}`, call, asset);

const SUMMARIES: ByCall<Summarize> = {
  JobRegistry: {
    post: (call, network) => {
      const job = jobOf(call, network);
      return { what: posting(call, network), rows: postRows(call, network, job), job };
    },
    cancel: (call, network) => ofUnit(call, network, (unit) => `Cancel ${unit} of a job`),
    accept: (call, network) => ofUnit(call, network, (unit) => `Accept the result of ${unit} of a job, which pays it at once`),
  },
  NodeRegistry: {
    register: (call, { asset }) => ({
      what: `Register a worker with a stake of ${formatAmount(call.args["stake"] as bigint, asset)}`,
      rows: [["operator", lower(call.args["operator"])], ...offerRows(call, true, asset)],
    }),
    add_stake: ofNode((node, { args }, asset) => ({
      what: `Add ${formatAmount(args["amount"] as bigint, asset)} to the stake of ${node}`,
      rows: [["owner", lower(args["owner"])]],
    })),
    update_offer: ofNode((node, call, asset) => ({ what: `Replace what ${node} offers; its ask stays`, rows: offerRows(call, false, asset) })),
    set_ask: ofNode((node, { args }, asset) => ({ what: `Ask ${formatRate(args["ask"] as bigint, asset)} for ${node}, after its notice`, rows: [] })),
    set_operator: ofNode((node, { args }) => ({
      what: `Offer ${node} to another operator, whose first beat takes it over`,
      rows: [["operator", lower(args["operator"])]],
    })),
    offer_owner: ofNode((node, { args }) => ({
      what: `Offer ${node} to another owner, who must accept it`,
      rows: [["owner", lower(args["owner"])]],
    })),
    accept_owner: ofNode((node) => ({ what: `Become the owner of ${node}`, rows: [] })),
    exit_start: ofNode((node) => ({ what: `Start the exit of ${node}`, rows: [] })),
    exit_cancel: ofNode((node) => ({ what: `Stay with ${node} after all`, rows: [] })),
    exit_finish: ofNode((node) => ({ what: `Finish the exit of ${node}: its stake becomes its owner's credit`, rows: [] })),
  },
  Steward: {
    queue: (call, { asset }, policy) => ofChange(call, asset, policy, "Announce a change, which anybody can carry out after its delay"),
    execute: (call, { asset }, policy) => ofChange(call, asset, policy, "Carry out a change"),
    drop: ({ args }) => ({ what: "Take a queued change back, for good", rows: [["change", String(args["change"])]] }),
    drop_previous_policy: () => ({ what: "Take posts under the current policy only, from now on", rows: [] }),
    pause: ({ args }) => ({ what: `Stop new ${both(args)} for 7 days`, rows: [] }),
    accept_council: () => ({ what: "Become the council", rows: [] }),
    accept_governor: ({ args }) => ({ what: `Let the Steward take the governor's rights over ${both(args)}`, rows: [] }),
  },
  Escrow: {
    withdraw: ({ args, from }, { asset }) => ({
      what: `Withdraw ${formatAmount(args["amount"] as bigint, asset)} of credit in Escrow to the account itself`,
      rows: [["to", from]],
    }),
  },
  token: {
    approve: ({ args }, { asset, contracts }) => ({
      what: `Let ${lower(args["spender"]) === contracts.JobRegistry ? "JobRegistry" : "NodeRegistry"} take exactly ${formatAmount(args["amount"] as bigint, asset)}`,
      rows: [["spender", lower(args["spender"])]],
    }),
  },
};

const jobOf = ({ args }: Prepared, { jobChainId, contracts }: Network): Hex => jobIdOfWords(jobChainId, contracts.JobRegistry, wordsOf(args["terms"]));

function ofUnit(call: Prepared, network: Network, tell: (unit: string) => string): CallSummary {
  const index = call.args["index"] as bigint;
  const job = jobOf(call, network);
  return { what: tell(index === SENTINEL ? "the units that nobody took" : `unit ${index}`), rows: [["job", job]], job };
}

function posting({ args }: Prepared, { asset }: Network): string {
  const terms = termsIn(args);
  const units = terms.units === 1 ? "one unit" : `${terms.units} units`;
  return `Post a job of ${units}, which takes ${formatAmount(escrowAtPost(terms), asset)}; what is not used comes back`;
}

function postRows({ args }: Prepared, { asset, contracts }: Network, job: Hex): CallSummary["rows"] {
  const terms = termsIn(args);
  const list = args["parents"] as readonly Hex[];
  if (parentsHash(list) !== terms.parentsHash) throw new HearthError("BAD_TX", "this is no prepared transaction: its job waits for other jobs than it names");
  const parents = unpackParents(list).map(({ job: id, condition }) => `${id} (${nameOf(CONDITION, condition)})`);
  return [
    ["job", job],
    ["spec", String(cidOfDigest(fromHex(terms.spec)))],
    ["pays at most", `${formatRate(terms.ceiling, asset)}, billed ${nameOf(BILLING, terms.billing)}`],
    ["time", `${formatDuration(terms.maxSeconds)} a unit, ${counted(terms.maxAttempts, "attempt")}`],
    ...keeperRows(terms, asset),
    ["deadline", moment(terms.deadline)],
    ["checked by", verification(terms, contracts.Attesters)],
    ["waits for", parents.join(", ") || "nothing"],
  ];
}

const NO_DOCUMENT = ["manifest: document", "not in this call: whoever has one of this digest says what the node says of itself"] as const;

// What is paid to whoever carries a job on, who may be anybody.
function keeperRows(terms: Terms, asset: Network["asset"]): CallSummary["rows"] {
  const { keeperFee, maxAttempts } = terms;
  const most = formatAmount(BigInt(leasesOf(terms)) * BigInt(maxAttempts) * keeperFee, asset);
  const fee = formatAmount(keeperFee, asset);
  const start = [["for its start", `${fee} for whoever starts it`]] as const;
  return [["keeper fees", `at most ${most}: ${counted(maxAttempts, "attempt")} a unit, of ${fee}`], ...(terms.parentsHash === ZERO_HASH ? [] : start)];
}

// All that is offered and said of the machine, and of a worker that registers what it asks: the ask of a node has a call of its own.
function offerRows({ args, document }: Prepared, withAsk: boolean, asset: Network["asset"]): CallSummary["rows"] {
  const { ask, ...offer } = unpackOffer(args["offer"] as bigint);
  const sizes = Object.entries(offer).map(([name, value]) => `${name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${value}`);
  return [
    ...(withAsk ? [["ask", formatRate(ask, asset)] as const] : []),
    ["offer", sizes.join(", ")],
    ["manifest", String(args["manifest"])],
    ...((document && manifestRows(document)) ?? [NO_DOCUMENT]),
  ];
}

function ofChange({ args }: Prepared, asset: Network["asset"], policy: Policy | null, what: string): CallSummary {
  const change = changeIn(args);
  return { what: `${what}: ${changeText(change, "waiting", policy, asset)}`, rows: [["change", changeId(change)], ...announced(change, asset)] };
}

const both = (args: Prepared["args"]): string => ["posts", "registrations"].filter((one) => args[one] === true).join(" and ") || "nothing";

const changeIn = (args: Prepared["args"]): Change => changeOf(args["op"] as bigint, args["word"] as bigint, args["salt"] as bigint);

const lower = (value: unknown): string => String(value).toLowerCase();
