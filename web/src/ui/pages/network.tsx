// The market as a whole: what it holds, its parameters, its contracts, and whom the page asks.

import { useState } from "preact/hooks";

import { type Verdict, verify } from "../../chain/verify";
import { counted } from "../../core/counted";
import type { Network } from "../../core/network";
import { inWords, type Unit } from "../../core/parameters";
import { statusOf } from "../../core/status";
import { statusLabel } from "../../core/state-labels";
import type { Asset } from "../../core/units";
import { unpackPolicy, unpackPosted, unpack } from "../../core/words";
import { CONTRACTS, NODE_PARAMETERS } from "../../generated/contracts";
import { NODE_UNITS, POLICY_UNITS } from "../../generated/parameters";
import { WORDS as LAYOUTS } from "../../generated/words";
import { save } from "../../data/save";
import type { Context, Live } from "../context";
import { useFleet } from "../fleet";
import { Button } from "../parts/button";
import { Failure } from "../parts/failure";
import { NoMarket } from "../parts/no-market";
import { Notes } from "../parts/notes";
import { Amount, Moment, Whole } from "../parts/values";
import { TakeHistory } from "../parts/take-history";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { TEXTS } from "../texts";

export function NetworkPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const ready = live.state === "ready" ? live : undefined;
  const { value, error } = useFleet(context);
  if (network === undefined) return <NoMarket context={context} />;
  const { asset, nodeParameters } = network;
  const seen = value?.overview;
  const totals = seen === undefined ? undefined : unpack(LAYOUTS.totals, seen.totals);
  const policy = seen === undefined ? undefined : unpackPolicy(seen.policy);
  const states = new Map<string, number>();
  for (const node of value?.nodes ?? []) {
    const at = value?.at.time ?? 0;
    const name = statusLabel(statusOf(node, at, Number(nodeParameters.dead_after), nodeParameters.minimum_stake));
    states.set(name, (states.get(name) ?? 0) + 1);
  }
  const busy = (value?.nodes ?? []).reduce((sum, node) => sum + node.state.busy, 0);
  const slots = (value?.nodes ?? []).reduce((sum, node) => sum + node.offer.slots, 0);
  return (
    <>
      <h1>Network</h1>
      <Synced live={live} />
      {error !== undefined && <Failure error={error} />}
      <h2>Now</h2>
      <dl>
        <dt>Jobs posted</dt>
        <dd>{seen === undefined ? TEXTS.nothingYet : String(unpackPosted(seen.posted).count)}</dd>
        <dt>Workers</dt>
        <dd>
          {value === undefined
            ? TEXTS.nothingYet
            : [...states].map(([name, count]) => `${count} ${name}`).join(", ") || "none"}
        </dd>
        <dt>Slots</dt>
        <dd>{value === undefined ? TEXTS.nothingYet : `${busy} of ${slots} busy`}</dd>
        <dt>Escrow holds</dt>
        <dd><Amount value={seen?.held} asset={asset} /></dd>
        <dt>Stake</dt>
        <dd><Amount value={totals?.total} asset={asset} /></dd>
        <dt>Burnt this hour</dt>
        <dd><Amount value={totals?.burnt} asset={asset} /></dd>
        <dt>New posts</dt>
        <dd>{pause(seen?.postsPausedUntil, seen?.time)}</dd>
        <dt>Registrations</dt>
        <dd>{pause(seen?.registrationsPausedUntil, seen?.time)}</dd>
      </dl>
      <BooksOf live={live} />
      <TakeHistory context={context} />
      <Notes />
      <h2>Parameters of new jobs</h2>
      {policy === undefined ? (
        <p>{TEXTS.nothingYet}</p>
      ) : (
        <Table
          caption="A job keeps those that it was posted with."
          columns={[
            { head: "parameter", cell: ([name]: readonly [string, number | bigint]) => words(name) },
            {
              head: "value",
              cell: ([name, one]) => <Parameter unit={POLICY_UNITS[name as keyof typeof POLICY_UNITS]} value={BigInt(one)} asset={asset} />,
              number: true,
            },
          ]}
          rows={Object.entries(policy) as [string, number | bigint][]}
          keyOf={([name]) => name}
          none=""
        />
      )}
      <h2>Parameters of nodes</h2>
      <Table
        caption="They were fixed at deployment."
        columns={[
          { head: "parameter", cell: (name: keyof typeof nodeParameters) => name.replace(/_/g, " ") },
          {
            head: "value",
            cell: (name) => <Parameter unit={NODE_UNITS[name]} value={nodeParameters[name]} asset={asset} />,
            number: true,
          },
        ]}
        rows={NODE_PARAMETERS}
        keyOf={(name) => name}
        none=""
      />
      <h2>Contracts</h2>
      <p>
        {live.state === "ready"
          ? "Their code hashes to what the network file names, and JobRegistry makes its ids of this chain."
          : "Not compared yet."}
      </p>
      <Table
        caption={`Chain ${network.chainId}, genesis ${network.genesisHash}`}
        columns={[
          { head: "contract", cell: (name: (typeof CONTRACTS)[number]) => name },
          { head: "address", cell: (name) => <Whole hex={network.contracts[name]} /> },
          { head: "code", cell: (name) => <code>{network.codeHashes.get(name) ?? "not named"}</code> },
        ]}
        rows={CONTRACTS}
        keyOf={(name) => name}
        none=""
      />
      <h2 id="rpcs">Whom the page asks</h2>
      <p>
        They are those of the network file and of your settings. Another is asked by <code>hearth web --rpc URL</code>, and for good by a
        line <code>rpc = ["URL"]</code> in your config.toml.
      </p>
      <Table
        caption="RPCs in the order in which they are asked"
        columns={[
          { head: "RPC", cell: (one) => one.name },
          { head: "requests", cell: (one) => one.requests, number: true },
          { head: "failed", cell: (one) => one.failures, number: true },
          { head: "last took", cell: (one) => (one.took === undefined ? "" : `${Math.round(one.took)} ms`), number: true },
          { head: "last failure", cell: (one) => one.lastFailure },
        ]}
        rows={ready?.market.rpc.panel() ?? []}
        keyOf={(one) => one.name}
        none="Nobody was asked yet."
      />
    </>
  );
}

type Reading =
  | { readonly state: "idle" }
  | { readonly state: "busy"; readonly block: number }
  | { readonly state: "done"; readonly verdict: Verdict }
  | { readonly state: "failed"; readonly error: unknown };

// The books, recomputed on this machine at the reader's word: it takes every log of the market.
function BooksOf({ live }: { readonly live: Live }) {
  const [reading, setReading] = useState<Reading>({ state: "idle" });
  if (live.state !== "ready") return null;
  const { market, head } = live;
  const { network } = market;
  const run = (): void => {
    setReading({ state: "busy", block: network.deployBlock });
    verify(market, head, (block) => setReading({ state: "busy", block })).then(
      (verdict) => setReading({ state: "done", verdict }),
      (error: unknown) => setReading({ state: "failed", error }),
    );
  };
  return (
    <section aria-labelledby="books">
      <h2 id="books">The books</h2>
      <p class="row">
        <Button busy={reading.state === "busy"} onClick={run}>
          Recompute the books here
        </Button>
        {reading.state === "busy" && <span role="status">{`read up to block ${reading.block} of ${head.number}`}</span>}
      </p>
      {reading.state === "failed" && <Failure error={reading.error} />}
      {reading.state === "done" && <Told verdict={reading.verdict} network={network} />}
    </section>
  );
}

function Told({ verdict, network }: { readonly verdict: Verdict; readonly network: Network }) {
  const { asset } = network;
  return (
    <div role="status">
      <p class={verdict.solvent ? "good" : "failure"}>
        {verdict.solvent
          ? `Solvent at block ${verdict.at.number}: every lock, credit, unit and stake is what its events say.`
          : `${verdict.faults.length} differences at block ${verdict.at.number}: do not trust this market, or this RPC.`}
      </p>
      {verdict.strays !== "" && <p>{verdict.strays}</p>}
      <dl>
        <dt>Jobs</dt>
        <dd>{`${verdict.jobs}, of ${counted(verdict.units, "unit")}`}</dd>
        <dt>Settled</dt>
        <dd>{`${verdict.settled}; ${counted(verdict.failed, "unit")} failed, ${counted(verdict.reclaimed, "lease was", "leases were")} reclaimed`}</dd>
        <dt>Escrow owes</dt>
        <dd><Amount value={verdict.owed} asset={asset} /></dd>
        <dt>Escrow holds</dt>
        <dd><Amount value={verdict.held} asset={asset} /></dd>
      </dl>
      {verdict.faults.length > 0 && (
        <ul>
          {verdict.faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      <button type="button" onClick={() => save([`${JSON.stringify(documentOf(verdict, network))}\n`], "books.json", "application/json")}>
        Save as JSON
      </button>
    </div>
  );
}

// The counts as `hearth net verify` prints them.
function documentOf(verdict: Verdict, network: Network): Record<string, unknown> {
  const { jobs, units, settled, failed, reclaimed, solvent, faults, at } = verdict;
  const found = faults.length > 0 ? { faults } : {};
  return { network: network.name, block: at.number, jobs, units, settled, failed, reclaimed, solvent, ...found };
}

function pause(until: number | undefined, now: number | undefined) {
  if (until === undefined || now === undefined) return TEXTS.nothingYet;
  return now < until ? <>paused until <Moment at={until} now={now} /></> : "open";
}

// With its unit; the plain number stands in copies and on hover.
function Parameter({ unit, value, asset }: { readonly unit: Unit; readonly value: bigint; readonly asset: Asset }) {
  if (unit === "amount") return <Amount value={value} asset={asset} />;
  const plain = String(value);
  return <data value={plain} title={unit === "number" ? undefined : unit === "span" ? `${plain} seconds` : `${plain} of 10,000`}>{inWords(unit, value, asset)}</data>;
}

// minKeeperFee -> min keeper fee
const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
