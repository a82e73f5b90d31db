// What a job is refused for before money moves, in the words of the command line. Mirrors hearth/client/posting/preflight.py and
// the checks of post.py. Amounts are base units, gas prices wei; `now` is the second of the block that was read.

import { ENDED } from "../generated/parents";
import { APPROVE_GAS, ASKED, LEAST_TIP, MOST_TIP, POST_GAS, WITHDRAW_GAS } from "../generated/posting";
import { GATE, UNIT_FLAG } from "../generated/states";
import { type AttesterSet, judgeDataOf, requireSet } from "./attesters";
import { type Hex, sha256, toHex } from "./bytes";
import { HearthError } from "./errors";
import { asksOf, backed, type Fleet, type Gates, gatesOf, takers, workersInWords } from "./fleet";
import type { JobSpec } from "./model";
import { moment } from "./moments";
import type { Network } from "./network";
import { maxBig, minBig } from "./numbers";
import { endedBy, type Parent } from "./parents";
import { planPrices, type Prices, termsOf } from "./plan";
import { needsOf, type ResolvedSpec } from "./resolve";
import { located, type LoadedSpec } from "./spec";
import { nameOf, type Policy, type Terms } from "./types";
import { amountAtLeast, type Asset, NATIVE, rateAtLeast, showAmount, showAtLeast } from "./units";
import { isHeader, packTerms, unpackPolicy, unpackUnit } from "./words";

// What an account has: wei, the market's asset, credit in Escrow, and what a contract may take of a token.
export interface Purse {
  readonly coin: bigint;
  readonly asset: bigint;
  readonly credit: bigint;
  readonly allowance: bigint;
}

export interface Fees {
  readonly base: bigint;
  readonly tip: bigint;
}

// A market at one block, as far as terms are made of it.
export interface Ground {
  readonly policyWord: bigint;
  readonly now: number;
}

// The terms of a job, but for the salt; `attesters` is the set that it names. Throws what `planPrices` and `termsOf` do, and
// NO_ATTESTERS without a set that it names, placed in the job's file.
export function draftTerms(
  loaded: LoadedSpec,
  document: ResolvedSpec,
  digest: Hex,
  submitter: Hex,
  { asset, contracts }: Pick<Network, "asset" | "contracts">,
  { policyWord, now }: Ground,
  attesters?: AttesterSet,
): Terms {
  const { spec } = loaded;
  const policy = unpackPolicy(policyWord);
  const { attesters: named } = spec.verify;
  try {
    const judge = named === null ? {} : { judge: contracts.Attesters, judgeData: judgeDataOf(requireSet(attesters, named)) };
    const prices = planPrices(spec, asset, policy);
    const needs = needsOf(document.resources, document.runtime);
    return termsOf(spec, { submitter, salt: 0n, digest, needs, prices, policy, policyWord, now, ...judge });
  } catch (error) {
    throw error instanceof HearthError ? located(loaded, error) : error;
  }
}

// Refuse a new post while the governor has paused them, and for good where the chain has changed its id. Throws PAUSED,
// CHAIN_CHANGED.
export function requireOpen(network: Network, pausedUntil: number, now: number): void {
  if (network.jobChainId !== network.chainId) {
    throw new HearthError(
      "CHAIN_CHANGED",
      `chain ${network.chainId} had the id ${network.jobChainId} when ${network.name} was deployed, and its contracts take no ` +
        "new job since; those that are posted go on",
      "open the page of a market that was deployed since",
    );
  }
  if (now < pausedUntil) {
    throw new HearthError("PAUSED", `new posts on ${network.name} are paused until ${moment(pausedUntil)}`, "come back after that");
  }
}

// Refuse a job that could never run, by the words of its parents as they stand: one that waits for no job of this market, or for
// an end that did not come. Throws NO_PARENT, PARENT_ENDED, BAD_WORD.
export function requireParents(parents: readonly Parent[], words: readonly bigint[], network: Pick<Network, "name">): void {
  parents.forEach(({ job, condition }, at) => {
    const word = words[at] ?? 0n;
    const details = { field: `after[${at}]` };
    if (!isJob(word)) {
      const why = `there is no job ${job} on ${network.name}: one that waits for it would never start`;
      throw new HearthError("NO_PARENT", `after[${at}]: ${why}`, "look at the list of jobs", details);
    }
    const end = endedBy(word);
    if (end === ENDED.NOT_YET || (condition & end) !== 0) return;
    throw new HearthError(
      "PARENT_ENDED",
      `after[${at}]: job ${job} was ${ASKED[condition]}, and has ended ${nameOf(ENDED, end)}: this job would be refunded at ` +
        "once, less a keeper fee",
      "wait for another job, or for another end of it",
      details,
    );
  });
}

// Refuse a job that no worker can take. Throws NO_WORKER, PRICE_TOO_LOW; `enough` is the price that would do, undefined where
// none would.
export function requireTaker(gates: Gates, enough: string | undefined): void {
  if (takers(gates) > 0) return;
  const priced = gates.get(GATE.PRICE) ?? 0;
  const all = [...gates.values()].reduce((sum, count) => sum + count, 0);
  const hint = enough ?? "look at the list of workers; or post it anyway";
  const code = priced > 0 && priced === all ? "PRICE_TOO_LOW" : "NO_WORKER";
  throw new HearthError(code, `no worker can take this job: ${workersInWords(gates)}`, hint);
}

// The price at which a worker would take a job that none can take, as its author would write it: below the job's own where no
// free stake covers its bond, else above it; undefined where neither helps.
export function enoughFor(spec: JobSpec, fleet: Fleet, terms: Terms, policy: Policy, asset: Asset): string | undefined {
  if (takers(gatesOf(fleet, terms, policy)) > 0) return undefined;
  const lower = backed(fleet, terms, policy, asset);
  const [rate] = asksOf(fleet, terms, policy, true);
  const text = lower ?? (rate === undefined ? undefined : rateAtLeast(rate, asset));
  if (text === undefined) return undefined;
  let prices: Prices;
  try {
    prices = planPrices(pricedAt(spec, text), asset, policy);
  } catch (error) {
    if (error instanceof HearthError) return undefined; // a price that this market does not take
    throw error;
  }
  const at = { ...terms, ceiling: prices.ceiling, keeperFee: prices.keeperFee };
  if (takers(gatesOf(fleet, at, policy)) === 0) return undefined; // the job names its own keeper fee
  const total = amountAtLeast(prices.total, asset);
  if (lower !== undefined) return `lower the price to max_rate: "${lower}": its workers take no dearer job`;
  return `write max_total: "${total}", or max_rate: "${text}"; the list of workers shows the asks`;
}

// A spec at another highest rate, as its author would write it.
export function pricedAt(spec: JobSpec, rate: string): JobSpec {
  return { ...spec, price: { ...spec.price, max_rate: rate, max_total: null } };
}

// What clients take for a tip where the provider names none.
export const usualTip = (base: bigint): bigint => minBig(MOST_TIP, maxBig(LEAST_TIP, base));

// The wei that so much gas may cost.
export const gasCost = (gas: bigint, { base, tip }: Fees): bigint => gas * (2n * base + tip);

// The gas of posting: with the approval, where the market's asset is a token.
export const postGas = (network: Pick<Network, "asset">): bigint =>
  POST_GAS + (network.asset.address === null ? 0n : APPROVE_GAS);

// Refuse what an account cannot pay: base units of the asset, and gas at the next fees. Throws FUNDS_SHORT with what is short.
export function requireFunds(account: Hex, network: Network, purse: Purse, units: bigint, gas: bigint, what: string): void {
  const { asset, name } = network;
  const native = asset.address === null;
  if (!native && purse.asset < units) throw short(account, name, asset, purse.asset, units, `${what} takes`);
  const need = gas + (native ? units : 0n);
  const verb = native && units > 0n ? `${what} and its gas take` : `the gas of ${what} takes`;
  if (purse.coin < need) throw short(account, name, native ? asset : NATIVE, purse.coin, need, verb);
}

// What of an account's credit in Escrow pays for a job, where its owner has it pay first.
export const creditFor = (owned: bigint, escrow: bigint): bigint => minBig(owned, escrow);

// The gas of posting after a withdrawal of credit, which is a call of its own.
export const postGasAfter = (network: Pick<Network, "asset">, credit: bigint): bigint => postGas(network) + (credit > 0n ? WITHDRAW_GAS : 0n);

// Refuse a post that an account cannot pay after so much of its credit. Mirrors `_require_price` of
// hearth/client/posting/post.py. Throws FUNDS_SHORT, which names the credit where none of it was to pay.
export function requirePrice(account: Hex, network: Network, purse: Purse, escrow: bigint, credit: bigint, fees: Fees): void {
  const { asset } = network;
  const what = credit === 0n ? "this job" : `this job, after ${showAmount(credit, asset)} of credit,`;
  try {
    requireFunds(account, network, purse, escrow - credit, gasCost(postGasAfter(network, credit), fees), what);
  } catch (error) {
    if (!(error instanceof HearthError) || purse.credit === 0n || credit > 0n) throw error;
    const said = `${error.message}; ${showAmount(purse.credit, asset)} more is its credit in Escrow`;
    throw new HearthError(error.code, said, `have its credit pay first, or withdraw it; ${error.hint}`);
  }
}

// Name what a person would call the same job: everything but salt, clock and policy. The page's own journal goes by it, on one
// market.
export async function fingerprintOf(terms: Terms, deadline: string | null): Promise<Hex> {
  const same = packTerms({ ...terms, salt: 0n, deadline: 0, policy: 1n });
  const text = JSON.stringify([deadline, ...same.map(String)]);
  return toHex(await sha256(new TextEncoder().encode(text)));
}

// An array's units stand under keys that look like ids.
function isJob(word: bigint): boolean {
  return word !== 0n && (isHeader(word) || (unpackUnit(word).flags & UNIT_FLAG.ARRAY) === 0);
}

function short(account: Hex, name: string, asset: Asset, have: bigint, need: bigint, takes: string): HearthError {
  return new HearthError(
    "FUNDS_SHORT",
    `${account} holds ${showAmount(have, asset)} on ${name}, and ${takes} ${showAtLeast(need, asset)}: short by ` +
      showAtLeast(need - have, asset),
    `send ${asset.symbol} to ${account}`,
  );
}
