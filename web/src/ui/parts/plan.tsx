// Who could take a job, and what it costs at most: before anything is signed.

import { useState } from "preact/hooks";

import { type PostingGround, requireGates } from "../../chain/posting-ground";
import type { Market } from "../../chain/market";
import { asksOf, gatesOf, takers, workersInWords } from "../../core/fleet";
import type { JobSpec } from "../../core/model";
import { escrowAtPost, unitPrice } from "../../core/money";
import { ceilDiv, maxBig } from "../../core/numbers";
import { type Prices, planPrices } from "../../core/plan";
import { enoughFor, gasCost, postGasAfter, pricedAt, requireTaker } from "../../core/posting";
import { leasesOf, nameOf, type Policy, type Terms } from "../../core/types";
import { type Asset, formatDuration, NATIVE, rateAtLeast, showRate } from "../../core/units";
import { unpackPolicy } from "../../core/words";
import { BILLING, FLEET_LABELS, PASSING_GATES } from "../../generated/states";
import { ZERO_HASH } from "../../generated/bounds";
import { withdrawing } from "../../wallet/acting";
import type { Session } from "../../wallet/request";
import { useLoad } from "../load";
import { Acts } from "./acting";
import { type Credit, CreditBox } from "./credit";
import { Failure } from "./failure";
import { Amount, Moment } from "./values";
import { Table } from "./table";

interface TakersProps {
  readonly market: Market;
  readonly ground: PostingGround;
  readonly terms: Terms;
  readonly spec: JobSpec;
}

// Why no worker can take a job, undefined where one can.
export function refusalOfTakers({ fleet }: PostingGround, terms: Terms, spec: JobSpec, asset: Asset): unknown {
  const policy = unpackPolicy(terms.policy);
  return refusalOf(() => requireTaker(gatesOf(fleet, terms, policy), enoughFor(spec, fleet, terms, policy, asset)));
}

// Workers by what keeps each from the job, as `hearth check` counts them and as the chain says; and how that moves with the price.
export function Takers({ market, ground, terms, spec, refused }: TakersProps & { readonly refused: unknown }) {
  const policy = unpackPolicy(terms.policy);
  const gates = gatesOf(ground.fleet, terms, policy);
  const checked = useLoad(() => requireGates(market, ground, terms, policy), market.network.name, [ground, terms]);
  const rows = [...gates].filter(([gate]) => gate in FLEET_LABELS).sort(([a], [b]) => a - b);
  return (
    <>
      <h2>Who can take it</h2>
      <p id="takers">{workersInWords(gates, terms)}</p>
      {checked.error !== undefined && <Failure error={checked.error} />}
      {refused !== undefined && <Failure error={refused} />}
      {rows.length > 0 && (
        <Table
          caption="What keeps the others from it"
          columns={[
            { head: "workers", cell: ([, count]: readonly [number, number]) => count, number: true },
            { head: "are", cell: ([gate]) => (FLEET_LABELS as Readonly<Record<number, string>>)[gate] ?? "" },
            { head: "", cell: ([gate]) => ((PASSING_GATES as readonly number[]).includes(gate) ? "for now: they count as able" : "") },
          ]}
          rows={rows}
          keyOf={([gate]) => String(gate)}
          none=""
        />
      )}
      <Slider ground={ground} terms={terms} spec={spec} policy={policy} market={market} />
    </>
  );
}

const STEPS = 100;

function Slider({ ground, terms, spec, policy, market }: TakersProps & { readonly policy: Policy }) {
  const { asset } = market.network;
  const [at, setAt] = useState<number>();
  const asks = asksOf(ground.fleet, terms, policy, true);
  const most = 2n * maxBig(terms.ceiling, asks.at(-1) ?? 0n);
  const rate = at === undefined ? terms.ceiling : ceilDiv(most * BigInt(at), BigInt(STEPS));
  const able = takers(gatesOf(ground.fleet, { ...terms, ceiling: rate }, policy));
  const prices = pricesAt(() => planPrices(pricedAt(spec, rateAtLeast(rate, asset)), asset, policy));
  return (
    <p>
      <label for="rate">At a highest rate of {showRate(rate, asset)}</label>{" "}
      <input
        id="rate"
        type="range"
        min={1}
        max={STEPS}
        value={at ?? Number((terms.ceiling * BigInt(STEPS)) / most)}
        onInput={(event) => setAt(event.currentTarget.valueAsNumber)}
      />{" "}
      <output for="rate" id="at-rate">
        {able} can take it
        {prices !== undefined && <>, and it would cost at most <Amount value={prices.total} asset={asset} /></>}
      </output>{" "}
      {at !== undefined && (
        <button type="button" onClick={() => setAt(undefined)}>
          Back to the job's own
        </button>
      )}
    </p>
  );
}

interface AtMostProps {
  readonly market: Market;
  readonly ground: PostingGround;
  readonly terms: Terms;
  readonly session: Session | undefined;
  readonly credit: Credit;
}

// The escrow and its parts, the gas, what the account holds and lacks.
export function AtMost({ market, ground, terms, session, credit }: AtMostProps) {
  const { asset } = market.network;
  const account = session?.account;
  const { purse, most, pays } = credit;
  const escrow = escrowAtPost(terms);
  const gas = gasCost(postGasAfter(market.network, pays), ground.fees);
  const native = asset.address === null;
  const { value } = purse;
  const lacks = value === undefined ? undefined : maxBig(0n, escrow - pays + (native ? gas : 0n) - (native ? value.coin : value.asset));
  const [units, attempts] = [leasesOf(terms), BigInt(terms.maxAttempts)];
  return (
    <>
      <h2>What it costs at most</h2>
      {purse.error !== undefined && <Failure error={purse.error} />}
      <dl>
        <dt>Escrow</dt>
        <dd id="escrow"><Amount value={escrow} asset={asset} />; what is not used comes back</dd>
        <dt>Work</dt>
        <dd>
          <Amount value={BigInt(units) * unitPrice(terms)} asset={asset} />: {units === 1 ? "one unit" : `${units} units`} of at most <Amount value={unitPrice(terms)} asset={asset} />,
          {` ${showRate(terms.ceiling, asset)} for ${formatDuration(terms.maxSeconds)}, billed ${nameOf(BILLING, terms.billing)}`}
        </dd>
        <dt>Keeper fees</dt>
        <dd>
          <Amount value={BigInt(units) * attempts * terms.keeperFee} asset={asset} />: {String(attempts)} attempts a unit, of{" "}
          <Amount value={terms.keeperFee} asset={asset} />
        </dd>
        {terms.parentsHash !== ZERO_HASH && (
          <>
            <dt>For its start</dt>
            <dd><Amount value={terms.keeperFee} asset={asset} /> for whoever starts it</dd>
          </>
        )}
        <dt>Gas</dt>
        <dd><Amount value={gas} asset={NATIVE} /> at most, as prices are now</dd>
        <dt>Deadline</dt>
        <dd><Moment at={terms.deadline} now={ground.at.time} /></dd>
        {account !== undefined && (
          <>
            <dt>Your account holds</dt>
            <dd id="holds"><Amount value={native ? value?.coin : value?.asset} asset={asset} /></dd>
          </>
        )}
        {lacks !== undefined && lacks > 0n && (
          <>
            <dt>Short by</dt>
            <dd id="short"><Amount value={lacks} asset={asset} /></dd>
          </>
        )}
        {!native && value !== undefined && value.coin < gas && (
          <>
            <dt>Short of gas by</dt>
            <dd><Amount value={gas - value.coin} asset={NATIVE} /></dd>
          </>
        )}
      </dl>
      {account !== undefined && value !== undefined && value.credit > 0n && (
        <>
          <p>
            <Amount value={value.credit} asset={asset} /> more is your credit in Escrow.
          </p>
          {most > 0n && <CreditBox credit={credit} network={market.network} />}
          <Acts market={market} session={session} offers={[{ label: "Withdraw it to your account", held: "", act: withdrawing(market.network, account, value.credit) }]} />
        </>
      )}
    </>
  );
}

function refusalOf(act: () => void): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

// A price that the market does not take costs nothing to look at.
function pricesAt(act: () => Prices): Prices | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
