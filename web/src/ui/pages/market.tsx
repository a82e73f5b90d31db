// What the market offers now, by tier and by zone, and what it has come to so far by its events.

import { useEffect, useMemo, useState } from "preact/hooks";

import { counted } from "../../core/counted";
import type { Node } from "../../core/types";
import { laddersOf, type Offered, offersOf, type Rules, tilesOf, type Wanted, wantedOf } from "../../core/offers";
import type { Asset } from "../../core/units";
import { MODELS } from "../../generated/tiers";
import { ZONES } from "../../generated/zones";
import { useCourse } from "../course";
import { useFleet } from "../fleet";
import type { Context } from "../context";
import { Choice } from "../parts/choice";
import { Failure } from "../parts/failure";
import { Ladders, Past } from "../parts/market-charts";
import { NoMarket } from "../parts/no-market";
import { Notes } from "../parts/notes";
import { Rate } from "../parts/rate";
import { Moment } from "../parts/values";
import { Synced } from "../parts/synced";
import { type Column, Table } from "../parts/table";
import { Zones } from "../parts/zones";
import { hrefOf, useRoute } from "../router";
import { TEXTS } from "../texts";

const TIERS = MODELS.map(({ slug }) => slug);
const SLUGS = ZONES.map(({ slug }) => slug);
const FIELDS = ["gpu", "vram", "most", "zone"] as const;
type Texts = Readonly<Record<(typeof FIELDS)[number], string>>;

export function MarketPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { query } = useRoute();
  const { value, error } = useFleet(context);
  const course = useCourse(context);
  const texts: Texts = { gpu: query.get("gpu") ?? "", vram: query.get("vram") ?? "", most: query.get("most") ?? "", zone: query.get("zone") ?? "" };
  const wanted = useMemo(() => readTexts(texts, network?.asset), [...Object.values(texts), network]);
  const rules: Rules = {
    deadAfter: Number(network?.nodeParameters.dead_after ?? 0n),
    minimumStake: network?.nodeParameters.minimum_stake ?? 0n,
  };
  const now = value?.at.time ?? 0;
  const found = useMemo(() => (value === undefined ? undefined : facts(value.nodes, now, rules, wanted.wanted)), [value, wanted]);
  if (network === undefined) return <NoMarket context={context} />;
  const { asset } = network;
  const go = (more: Partial<Texts>): void => {
    const all = Object.entries({ ...texts, ...more }).filter(([, one]) => one !== "");
    location.hash = hrefOf(["market"], new Map([...query].filter(([name]) => !isField(name)).concat(all)));
  };
  return (
    <>
      <h1>Market</h1>
      <Synced live={live} />
      {error !== undefined && <Failure error={error} />}
      <h2>Offers</h2>
      <Filters texts={texts} go={go} />
      {wanted.error !== undefined && <Failure error={wanted.error} />}
      {found === undefined || wanted.wanted === undefined ? (
        <p>{TEXTS.nothingYet}</p>
      ) : (
        <Table
          caption={`${counted(found.offers.length, "offer")} of live nodes at block ${value?.at.number ?? ""}, cheapest first`}
          columns={columnsOf(asset, now)}
          rows={found.offers}
          keyOf={(one) => String(one.node)}
          none={found.all === 0 ? "No node is live." : "No live node fits: ask for less, or pay more."}
        />
      )}
      <Notes reputation />
      <p>What became of the leases that a node took is on its own page.</p>
      <h2>Zones</h2>
      <Zones tiles={found?.tiles} asset={asset} zone={texts.zone} pick={(zone) => go({ zone })} />
      <h2>Asks</h2>
      <p class="soft">By GPU: the free slots of live nodes from left to right, the cheapest first, and upward what they ask.</p>
      {found === undefined ? <p>{TEXTS.nothingYet}</p> : <Ladders ladders={found.ladders} asset={asset} />}
      <Past course={course} asset={asset} deployed={network.deployBlock} />
    </>
  );
}

const isField = (name: string): boolean => (FIELDS as readonly string[]).includes(name);

// What is asked for, or why that is nothing.
function readTexts(texts: Texts, asset: Asset | undefined): { readonly wanted?: Wanted; readonly error?: unknown } {
  if (asset === undefined) return {};
  try {
    return { wanted: wantedOf(texts, ZONES, asset) };
  } catch (error) {
    return { error };
  }
}

function facts(nodes: readonly Node[], now: number, rules: Rules, wanted: Wanted | undefined) {
  const all = offersOf(nodes, now, rules);
  const offers = wanted === undefined ? [] : offersOf(nodes, now, rules, wanted);
  return { offers, all: all.length, ladders: laddersOf(all), tiles: tilesOf(nodes, now, rules) };
}

function columnsOf(asset: Asset, now: number): Column<Offered>[] {
  return [
    { head: "node", cell: (one) => <a href={hrefOf(["node", String(one.node)])}>{one.node}</a>, number: true },
    {
      head: "ask",
      cell: (one) => <Rate rate={one.ask} asset={asset} />,
      number: true,
    },
    { head: "GPU", cell: (one) => (one.gpus === 0 ? "-" : `${one.gpus} x ${one.tier === "" ? "other" : one.tier} ${one.vramGib} GiB`) },
    { head: "cores", cell: (one) => one.cores, number: true },
    { head: "memory", cell: (one) => `${one.ramGib} GiB`, number: true },
    { head: "zone", cell: (one) => ZONES[one.zone]?.slug ?? "?" },
    {
      head: "free",
      cell: (one) => (
        <>
          {`${one.free}/${one.slots}${one.probation ? " (probation)" : ""}`}
          {one.quarantined !== null && <> (quarantined until <Moment at={one.quarantined} now={now} />)</>}
        </>
      ),
    },
    { head: "reputation", cell: (one) => `${Math.floor((one.reputation + 50) / 100)} %`, number: true },
    { head: "runtimes", cell: (one) => one.runtimes.join("+") },
  ];
}

interface FilterProps {
  readonly texts: Texts;
  readonly go: (more: Partial<Texts>) => void;
}

function Filters({ texts, go }: FilterProps) {
  const [vram, setVram] = useState(texts.vram);
  const [most, setMost] = useState(texts.most);
  useEffect(() => setVram(texts.vram), [texts.vram]);
  useEffect(() => setMost(texts.most), [texts.most]);
  // What stands in the boxes is asked for with whatever is changed beside them.
  const ask = (more: Partial<Texts>): void => go({ vram: vram.trim(), most: most.trim(), ...more });
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        ask({});
      }}
    >
      <Choice name="GPU, this or better" none="any or none" words={TIERS} value={texts.gpu} pick={(gpu) => ask({ gpu })} />
      <Choice name="Zone" none="any" words={SLUGS} value={texts.zone} pick={(zone) => ask({ zone })} />
      <label>
        GPU memory, at least <input value={vram} placeholder="40GiB" size={8} spellcheck={false} onInput={(event) => setVram(event.currentTarget.value)} />
      </label>
      <label>
        Ask, at most <input value={most} placeholder="2/h" size={8} spellcheck={false} onInput={(event) => setMost(event.currentTarget.value)} />
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}
