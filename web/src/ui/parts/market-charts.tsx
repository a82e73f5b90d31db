// Charts of a market: its asks by tier, and by its events prices, busy slots, waits and ends.

import { useMemo, useState } from "preact/hooks";

import { counted } from "../../core/counted";
import { HearthError } from "../../core/errors";
import type { TierCourse } from "../../core/course";
import type { Ladder, Rung } from "../../core/offers";
import { floorDiv, percent } from "../../core/numbers";
import { type Bucket, bucketsOf, type Step, widthFor } from "../../core/chart-series";
import { type Asset, formatDuration, showRate } from "../../core/units";
import type { Course } from "../course";
import { TEXTS } from "../texts";
import { Chart, HIGH, type Point } from "./chart";
import { Failure } from "./failure";
import { Rate } from "./rate";
import { Moment } from "./values";
import { Table } from "./table";

// Steps that are drawn one by one; of more, means over equal times.
const DRAWN = 400;

interface LadderProps {
  readonly ladders: readonly Ladder[];
  readonly asset: Asset;
}

export function Ladders({ ladders, asset }: LadderProps) {
  if (ladders.length === 0) return <p class="soft">No node is live.</p>;
  return (
    <>
      {ladders.map(({ tier, rungs, slots, free }) => {
        const name = tier === "" ? "no GPU" : tier;
        const top = rungs.at(-1)?.ask ?? 0n;
        return (
          <Chart
            key={name}
            title={name}
            says={<>{`${free} of ${counted(slots, "slot")} free, from `}<Rate rate={rungs[0]?.ask} asset={asset} /></>}
            lines={[{ name: "ask", points: rungs.map((one) => ({ x: one.upTo - one.free, high: heightOf(one.ask, top) })) }]}
            across={free}
            top={showRate(top, asset)}
            from="0 free slots"
            to={`${free} free slots`}
            table={
              <Table
                caption={`Asks for ${name}, cheapest first`}
                columns={[
                  { head: "node", cell: (one: Rung) => one.node, number: true },
                  { head: "ask", cell: (one) => <Rate rate={one.ask} asset={asset} />, number: true },
                  { head: "free", cell: (one) => `${one.free}/${one.slots}`, number: true },
                  { head: "free up to this ask", cell: (one) => one.upTo, number: true },
                ]}
                rows={rungs}
                keyOf={(one) => String(one.node)}
                none=""
              />
            }
          />
        );
      })}
    </>
  );
}

interface PastProps {
  readonly course: Course;
  readonly asset: Asset;
  readonly deployed: number;
}

export function Past({ course, asset, deployed }: PastProps) {
  return (
    <section aria-labelledby="past">
      <h2 id="past">So far, by its events</h2>
      <Reading course={course} deployed={deployed} />
      {course.told !== undefined && (
        <>
          <Busy steps={course.told.told.steps} end={course.told.at.time} />
          <Prices tiers={course.told.told.tiers} asset={asset} end={course.told.at.time} />
          <Ends tiers={course.told.told.tiers} asset={asset} />
        </>
      )}
    </section>
  );
}

// How far the events are read, what was stepped over, and the reader's word where it takes many requests.
export function Reading({ course, deployed }: { readonly course: Course; readonly deployed: number }) {
  const { told, error, ahead, upTo, strays } = course;
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {strays !== "" && <p role="note">{strays}</p>}
      {told !== undefined && told.denied !== "" && <Failure error={new HearthError("RPC_LIES", told.denied, "do not trust what events tell here, or this RPC")} />}
      {ahead > 0 && told === undefined && (
        <p>
          <button type="button" onClick={course.ask}>
            Read the past of this market
          </button>{" "}
          It takes the logs of {ahead} blocks, most of them once: this browser keeps them.
        </p>
      )}
      {ahead === 0 && told === undefined && error === undefined && <p>{upTo === undefined ? TEXTS.nothingYet : `read up to block ${upTo}…`}</p>}
      {told !== undefined && <p class="soft">{`All events from block ${deployed} to block ${told.at.number}; nothing here is a sample.`}</p>}
    </>
  );
}

function Busy({ steps, end }: { readonly steps: readonly Step[]; readonly end: number }) {
  const [first] = steps;
  const last = steps.at(-1);
  const buckets = useMemo(() => bucketsOf(steps, end, widthFor(end - (first?.at ?? end), DRAWN / 2)), [steps, end]);
  if (first === undefined || last === undefined) return <p class="soft">No node has registered yet.</p>;
  const most = steps.reduce((top, { slots }) => Math.max(top, slots), 1);
  const drawn = steps.length <= DRAWN ? steps.map(({ at, busy, slots }) => ({ at, busy, slots, width: 1 })) : buckets;
  const points = (of: "busy" | "slots"): Point[] =>
    drawn.map((one) => ({ x: one.at - first.at, high: Math.round((HIGH * one[of]) / (most * Math.max(1, one.width))) }));
  const [busySeconds, slotSeconds] = [sum(buckets, "busy"), sum(buckets, "slots")];
  return (
    <Chart
      title="Busy slots"
      says={`${last.busy} of ${last.slots} now, ${percent(busySeconds, slotSeconds)} of all slots' time so far`}
      lines={[
        { name: "busy", points: points("busy") },
        { name: "all registered", points: points("slots") },
      ]}
      across={Math.max(1, end - first.at)}
      top={counted(most, "slot")}
      from={<Moment at={first.at} />}
      to={<Moment at={end} />}
      table={
        <Table
          caption="Busy slots as means over equal times, the newest first; live and silent nodes' slots count"
          columns={[
            { head: "from", cell: (one: Bucket) => <Moment at={one.at} /> },
            { head: "for", cell: (one) => formatDuration(one.width), number: true },
            { head: "busy slot seconds", cell: (one) => one.busy, number: true },
            { head: "of all", cell: (one) => one.slots, number: true },
            { head: "busy", cell: (one) => percent(one.busy, one.slots), number: true },
          ]}
          rows={[...buckets].reverse()}
          keyOf={(one) => String(one.at)}
          none=""
        />
      }
    />
  );
}

interface PricesProps {
  readonly tiers: readonly TierCourse[];
  readonly asset: Asset;
  readonly end: number;
}

function Prices({ tiers, asset, end }: PricesProps) {
  const priced = tiers.filter(({ prices }) => prices.length > 0);
  const [tier, setTier] = useState("");
  const one = priced.find((found) => found.tier === tier) ?? priced[0];
  const [first] = one?.prices ?? [];
  const last = one?.prices.at(-1);
  if (one === undefined || first === undefined || last === undefined) return <p class="soft">No lease has started yet.</p>;
  const top = one.prices.reduce((most, { median }) => (median > most ? median : most), 0n);
  return (
    <>
      <label>
        Prices of jobs that ask for{" "}
        <select value={one.tier} onChange={(event) => setTier(event.currentTarget.value)}>
          {priced.map((found) => (
            <option key={found.tier} value={found.tier}>
              {nameOf(found.tier)}
            </option>
          ))}
        </select>
      </label>
      <Chart
        title={`Price of a slot, ${nameOf(one.tier)}`}
        says={<>median of the last day with a start <Rate rate={last.median} asset={asset} /></>}
        lines={[{ name: "median of a day", points: one.prices.map(({ day, median }) => ({ x: day - first.day, high: heightOf(median, top) })) }]}
        across={Math.max(1, end - first.day)}
        top={showRate(top, asset)}
        from={<Moment at={first.day} />}
        to={<Moment at={end} />}
        table={
          <Table
            caption="Medians of the rates at which leases started, by day (UTC), the newest first"
            columns={[
              { head: "day", cell: (price) => <Moment at={price.day} /> },
              { head: "median", cell: (price) => <Rate rate={price.median} asset={asset} />, number: true },
              { head: "starts", cell: (price) => price.count, number: true },
            ]}
            rows={[...one.prices].reverse()}
            keyOf={(price) => String(price.day)}
            none=""
          />
        }
      />
    </>
  );
}

function Ends({ tiers, asset }: Omit<PricesProps, "end">) {
  const seconds = (value: number | undefined): string => (value === undefined ? "" : formatDuration(value));
  return (
    <Table
      caption="By what jobs ask for. Waits are from a job's post, or from when it was unlocked, to its first start; success is of all leases that ended; a reclaimed one was taken from a node that was late or silent."
      columns={[
        { head: "jobs that ask for", cell: (one: TierCourse) => nameOf(one.tier) },
        { head: "starts", cell: (one) => one.starts, number: true },
        { head: "last price", cell: (one) => <Rate rate={one.prices.at(-1)?.median} asset={asset} />, number: true },
        { head: "median wait", cell: (one) => seconds(one.wait), number: true },
        { head: "9 of 10 within", cell: (one) => seconds(one.longWait), number: true },
        { head: "success", cell: (one) => percent(one.ok, one.ok + one.failed + one.lost + one.returned), number: true },
        { head: "ok", cell: (one) => one.ok, number: true },
        { head: "program failed", cell: (one) => one.failed, number: true },
        { head: "reclaimed", cell: (one) => one.lost, number: true },
        { head: "given back", cell: (one) => one.returned, number: true },
      ]}
      rows={tiers}
      keyOf={(one) => one.tier}
      none="Nobody has taken a job yet."
    />
  );
}

const nameOf = (tier: string): string => (tier === "none" ? "no GPU" : tier);

const heightOf = (value: bigint, top: bigint): number => (top === 0n ? 0 : Number(floorDiv(value * BigInt(HIGH), top)));

const sum = (buckets: readonly Bucket[], of: "busy" | "slots"): number => buckets.reduce((all, one) => all + one[of], 0);
