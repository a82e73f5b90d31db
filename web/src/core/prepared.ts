// Calls that one machine prepares and another signs, as files hold them (hearth.tx/1). Mirrors hearth/client/prepared.py.
//
// A file is a stranger's. What it says of itself is not taken: what its calls do is read from their data, by the ABIs of this
// market's contracts, and whatever has no words here is refused. `call-summary.ts` has the words.

import type { Abi } from "viem";
import { decodeFunctionData, encodeFunctionData } from "viem/utils";

import { ESCROW_CALLS } from "../generated/calls/escrow";
import { JOB_REGISTRY_CALLS } from "../generated/calls/job-registry";
import { NODE_REGISTRY_CALLS } from "../generated/calls/node-registry";
import { STEWARD_CALLS } from "../generated/calls/steward";
import { TOKEN_CALLS } from "../generated/calls/token";
import { MAX_UINT } from "../generated/bounds";
import { fromHex, type Hex, sha256, toHex } from "./bytes";
import { HearthError } from "./errors";
import { manifestRows } from "./manifest";
import { escrowAtPost } from "./money";
import type { Network } from "./network";
import { shownLine } from "./text";
import type { Terms } from "./types";
import { type TermsWords, unpackTerms } from "./words";

// One document, by its form alone: `approve` is what its sender must approve before, in base units.
export interface Document {
  readonly action: string;
  readonly chainId: number;
  readonly from: Hex;
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly approve: bigint;
  readonly key: string;
}

// One call of this market: `args` are its arguments by name.
export interface Prepared {
  readonly contract: Callee;
  readonly function: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly from: Hex;
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly approve: bigint;
  // The manifest that stands behind the arguments.
  readonly document: Hex | undefined;
}

export type Callee = keyof typeof TAKES;
// Something for each function of each contract that is prepared, by their names.
export type ByCall<Value, Contract extends Callee = Callee> = {
  readonly [One in Contract]: Readonly<Record<keyof (typeof TAKES)[One], Value>>;
};

// Look one up. Throws BAD_TX for a function that has none.
export function ofCall<Value>(table: ByCall<Value>, { contract, function: name }: Pick<Prepared, "contract" | "function">): Value {
  const values: Readonly<Record<string, Value>> = table[contract];
  const found = Object.hasOwn(values, name) ? values[name] : undefined;
  if (found === undefined) throw bad(`its data calls nothing of ${contract} that is prepared for another machine`);
  return found;
}

// Characters of a file, and calls in it.
export const MOST_TEXT = 1_048_576;
export const MOST_CALLS = 16;

const FIELDS = ["schema", "action", "chain_id", "from", "to", "data", "value", "approve", "key"];
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const DATA = /^0x(?:[0-9a-fA-F]{2}){4,}$/;
const AMOUNT = /^(?:0|[1-9][0-9]{0,77})$/;
const ACTION = /^[a-z][a-z_. ]{0,31}$/;
const MOST_KEY = 256;

type Args = Readonly<Record<string, unknown>>;
const nothing = (_: Args): bigint => 0n;

// What commands and this page prepare, and what each call takes of the market's asset, in base units. Any other function of these
// contracts is refused: nobody prepares it. One that is added here needs its words in `call-summary.ts` and its gas in `wallet/prepared.ts`.
const TAKES = {
  JobRegistry: { post: (args: Args) => escrowAtPost(termsIn(args)), cancel: nothing, accept: nothing },
  NodeRegistry: {
    register: (args: Args) => args["stake"] as bigint,
    add_stake: (args: Args) => args["amount"] as bigint,
    update_offer: nothing,
    set_ask: nothing,
    set_operator: nothing,
    offer_owner: nothing,
    accept_owner: nothing,
    exit_start: nothing,
    exit_cancel: nothing,
    exit_finish: nothing,
  },
  Escrow: { withdraw: nothing },
  Steward: {
    queue: nothing,
    drop: nothing,
    drop_previous_policy: nothing,
    pause: nothing,
    accept_council: nothing,
    execute: nothing,
    accept_governor: nothing,
  },
  token: { approve: nothing },
} as const satisfies Record<string, Readonly<Record<string, (args: Args) => bigint>>>;

const ABIS: Readonly<Record<Callee, Abi>> = {
  JobRegistry: JOB_REGISTRY_CALLS,
  NodeRegistry: NODE_REGISTRY_CALLS,
  Escrow: ESCROW_CALLS,
  Steward: STEWARD_CALLS,
  token: TOKEN_CALLS,
};

// Read a file: one hearth.tx/1, or a report that holds one or several under `prepared`, in their order. Throws BAD_TX.
export function documentsOf(text: string): Document[] {
  if (text.length > MOST_TEXT) throw bad(`it has more than ${MOST_TEXT} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw bad("it is no JSON", "prepare another, with --print-tx --json");
  }
  const inside = isObject(value) && Object.hasOwn(value, "prepared") ? value["prepared"] : value;
  const found = Array.isArray(inside) ? inside : [inside];
  if (found.length === 0) throw bad("it holds no call: there is nothing to sign");
  if (found.length > MOST_CALLS) throw bad(`it holds ${found.length} calls, and ${MOST_CALLS} are read`);
  return found.map((one, place) => documentOf(one, found.length === 1 ? "" : `call ${place + 1}: `));
}

function documentOf(raw: unknown, where: string): Document {
  if (!isObject(raw) || raw["schema"] !== "hearth.tx/1") throw bad(`${where}its schema is not hearth.tx/1`);
  const names = Object.keys(raw);
  if (names.length !== FIELDS.length || !FIELDS.every((name) => Object.hasOwn(raw, name))) {
    throw bad(`${where}it does not hold ${FIELDS.join(", ")}, and nothing else`);
  }
  const { action, chain_id: chainId, from, to, data, value, approve, key } = raw;
  if (typeof chainId !== "number" || !Number.isSafeInteger(chainId) || chainId <= 0) throw bad(`${where}chain_id is no chain's id`);
  if (typeof key !== "string" || key.length > MOST_KEY) throw bad(`${where}key is no name of an effect`);
  return {
    action: matching(ACTION, action, `${where}action`),
    chainId,
    from: matching(ADDRESS, from, `${where}from`).toLowerCase() as Hex,
    to: matching(ADDRESS, to, `${where}to`).toLowerCase() as Hex,
    data: matching(DATA, data, `${where}data`).toLowerCase() as Hex,
    value: amountOf(value, `${where}value`),
    approve: amountOf(approve, `${where}approve`),
    key,
  };
}

// Return the calls of a file, each checked against the market. Throws WRONG_MARKET for another chain's and for what calls no
// contract of this market, BAD_TX for what pays otherwise than its call says, or does what is none of its sender's.
export async function preparedOf(text: string, network: Network): Promise<Prepared[]> {
  const documents = documentsOf(text);
  const found = await Promise.all(documents.map((one) => checked(one, network)));
  const [first] = found;
  if (found.some(({ from }) => from !== first?.from)) throw bad("its calls are for several accounts");
  found.forEach((one, place) => {
    if (one.contract === "token") requireNeeded(one, found[place + 1]);
  });
  return found;
}

async function checked(one: Document, network: Network): Promise<Prepared> {
  const contract = calleeOf(one.to, network);
  if (BigInt(one.chainId) !== network.chainId) throw wrongMarket(`chain ${one.chainId}`, network);
  if (contract === undefined) throw wrongMarket(`contract ${one.to}, which is none that calls are prepared of in ${network.name}`, network);
  const { from, to, data, value, approve } = one;
  const { takes, ...what } = await decoded(contract, data);
  const prepared = { ...what, from, to, data, value, approve };
  const [pays, approves] = network.asset.address === null ? [takes, 0n] : [0n, takes];
  if (value !== pays || approve !== approves) {
    throw bad(`it pays ${value} and approves ${approve}, and ${prepared.function} takes ${pays} and ${approves}`);
  }
  requireOwn(prepared);
  return prepared;
}

function wrongMarket(what: string, { name, chainId }: Network): HearthError {
  const message = `the file is for ${what}, and this page shows ${name} on chain ${chainId}: nothing of it is signed`;
  return new HearthError("WRONG_MARKET", message, "open the page of the market that it was made for");
}

function calleeOf(to: Hex, { contracts, asset }: Network): Callee | undefined {
  if (to === asset.address) return "token";
  return (["JobRegistry", "NodeRegistry", "Escrow", "Steward"] as const).find((name) => contracts[name] === to);
}

// What a call's data says, what it takes, and nothing beside it: whoever signs is shown all that is signed. Behind its arguments stands at most
// the document that its `manifest` is the digest of, a manifest of a manifest's length.
async function decoded(contract: Callee, data: Hex): Promise<Pick<Prepared, "contract" | "function" | "args" | "document"> & { readonly takes: bigint }> {
  const abi = ABIS[contract];
  let name = "";
  let given: readonly unknown[] = [];
  let plain = "";
  try {
    const told = decodeFunctionData({ abi, data });
    name = told.functionName;
    given = told.args ?? [];
    plain = encodeFunctionData({ abi, functionName: name, args: given });
  } catch {
    name = "";
  }
  const takes = ofCall(TAKES, { contract, function: name });
  const inputs = abi.flatMap((entry) => (entry.type === "function" && entry.name === name ? [entry.inputs] : []))[0] ?? [];
  const args = Object.fromEntries(inputs.map((input, place) => [input.name ?? "", given[place]]));
  const more = data.slice(plain.length);
  if (!data.startsWith(plain)) throw bad("its arguments are not written as the contract's ABI writes them");
  if (more !== "" && toHex(await sha256(fromHex(more))) !== args["manifest"]) {
    throw bad("there is something else behind its arguments than the manifest that they name");
  }
  const document = more === "" ? undefined : (`0x${more}` as const);
  if (document !== undefined && manifestRows(document) === undefined) {
    throw bad("what stands behind its arguments is no manifest, or longer than one");
  }
  return { contract, function: name, args, document, takes: takes(args) };
}

// Refuse what is not its sender's: a withdrawal pays him, and a job is his.
function requireOwn({ contract, args, from }: Prepared): void {
  if (contract === "Escrow" && String(args["to"]).toLowerCase() !== from) {
    throw bad(`it withdraws to ${String(args["to"]).toLowerCase()}, and a withdrawal pays its owner, ${from}`);
  }
  if (contract !== "JobRegistry") return;
  const { submitter } = termsIn(args);
  if (submitter !== from) throw bad(`it is of a job of ${submitter}, and was made for ${from}`);
}

// An approval stands before the one call that takes just as much, by the contract that takes it. Any other lets somebody take
// what nobody was asked for.
function requireNeeded({ args }: Prepared, next: Prepared | undefined): void {
  const { spender, amount } = args;
  if (next !== undefined && amount === next.approve && amount !== 0n && String(spender).toLowerCase() === next.to) return;
  throw bad(`it lets ${String(spender).toLowerCase()} take ${String(amount)} of the token, which no call behind it takes`);
}

// The terms of a call about a job. Throws BAD_TX for terms that no contract takes and nothing can be reckoned by.
export function termsIn(args: Prepared["args"]): Terms {
  let terms: Terms | undefined;
  try {
    terms = unpackTerms(wordsOf(args["terms"]));
  } catch {
    throw bad("its terms are none");
  }
  if (terms.chunk === 0 || terms.ceiling === 0n) throw bad("its terms are none that a market takes");
  return terms;
}

// The nine words of a job's terms, as the ABI gives their struct.
export function wordsOf(terms: unknown): TermsWords {
  const { submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash } = terms as Record<string, never>;
  return [submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash] as unknown as TermsWords;
}

interface Sent {
  readonly to: Hex;
  readonly data: Hex;
  readonly value: bigint;
  readonly label: string;
}

// What a document says beside its call.
interface About {
  readonly from: Hex;
  readonly approve: bigint;
  readonly key: string;
  readonly chainId: bigint;
}

// What another machine, a Safe or the command reads: one call of an account, as --print-tx writes it.
export const documentText = (call: Sent, about: About): string => written(documentFor(call, about));

// Several calls of an account, in their order.
export const documentsText = (calls: readonly (readonly [Sent, About])[]): string =>
  written({ prepared: calls.map(([call, about]) => documentFor(call, about)) });

const written = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

function documentFor({ to, data, value, label }: Sent, { from, approve, key, chainId }: About): Readonly<Record<string, unknown>> {
  return {
    schema: "hearth.tx/1",
    action: label,
    chain_id: Number(chainId),
    from,
    to,
    data,
    value: String(value),
    approve: String(approve),
    key,
  };
}

function matching(form: RegExp, value: unknown, where: string): string {
  if (typeof value !== "string" || !form.test(value)) throw bad(`${where} is of no form that --print-tx writes`);
  return value;
}

function amountOf(value: unknown, where: string): bigint {
  const amount = BigInt(matching(AMOUNT, value, where));
  if (amount > MAX_UINT) throw bad(`${where} is more than 256 bits hold`);
  return amount;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function bad(why: string, hint = "prepare another: --print-tx writes one"): HearthError {
  return new HearthError("BAD_TX", `this is no prepared transaction: ${shownLine(why, 500)}`, hint);
}
