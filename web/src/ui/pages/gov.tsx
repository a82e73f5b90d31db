// Who governs the market's defaults, what waits to be changed and from when, and what council, guardian and anybody may do now.

import { useEffect, useState } from "preact/hooks";

import { type Read, readGovernance } from "../../chain/gov";
import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import { announced, type ChangeRow, governorInWords, isOpen, pausableFrom, rowsOf, whenInWords } from "../../core/governed";
import { moment } from "../../core/moments";
import { formatDuration } from "../../core/units";
import { GOV_GAS } from "../../generated/posting";
import type { Call } from "../../wallet/calls";
import { acceptCouncilCall, acceptGovernorCall, dropCall, dropPreviousCall, executeCall, pauseCall } from "../../wallet/governing";
import { useLoad } from "../load";
import type { Context } from "../context";
import { Acts, type Offer } from "../parts/acting";
import { Failure } from "../parts/failure";
import { NoMarket } from "../parts/no-market";
import { SignedRows } from "../parts/signed-rows";
import { Whole } from "../parts/values";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { Wallet } from "../parts/wallet";
import { hrefOf } from "../router";
import { useWallets } from "../wallet";
import { TEXTS } from "../texts";

export function GovPage({ context }: { readonly context: Context }) {
  const { network, live } = context;
  const wallets = useWallets(network);
  const ready = live.state === "ready" ? live : undefined;
  const { value, error } = useLoad(
    ready === undefined ? undefined : () => readGovernance(ready.market, ready.head),
    network?.name ?? "",
    [ready?.changed.hash, ready?.epoch],
    ready?.seen,
  );
  if (network === undefined) return <NoMarket context={context} />;
  const now = ready?.head.time ?? 0;
  const rows = value === undefined ? [] : rowsOf(value, network.asset, now);
  return (
    <>
      <h1>Governance</h1>
      <Synced live={live} />
      {error !== undefined && <Failure error={error} />}
      {value !== undefined && value.strays.count > 0 && <p role="note">{value.strays.inWords()}</p>}
      <p>
        The market's defaults, for jobs and workers to come, are changed late and in the open. Nobody who governs reaches a job that is
        posted, a node, a lock or a credit.
      </p>
      <p id="announcing">
        A change is announced by the command: <code>hearth gov queue policy fee_bps=300 --account COUNCIL --print-tx</code> writes a file that
        the council signs, in this page at <a href={hrefOf(["sign"])}>Sign</a> or with any other wallet. <code>hearth gov queue --help</code>{" "}
        names all that can be changed.
      </p>
      {value === undefined ? error === undefined && <p>{TEXTS.nothingYet}</p> : <Seats gov={value} now={now} />}
      {value !== undefined && ready !== undefined && (
        <>
          <h2>Changes</h2>
          <Changes rows={rows} />
          {value.earlier > 0 && <p>{value.earlier} more were queued and are not shown</p>}
          <h2>What can be done now</h2>
          <Wallet network={network} wallets={wallets} />
          <Doing market={ready.market} gov={value} rows={rows} now={now} session={wallets.session} />
        </>
      )}
    </>
  );
}

function Seats({ gov, now }: { readonly gov: Read; readonly now: number }) {
  return (
    <dl id="seats">
      <dt>Council</dt>
      <dd>
        <Whole hex={gov.council} />
        {gov.offeredCouncil !== null && <>, whose seat is offered to <Whole hex={gov.offeredCouncil} /></>}
      </dd>
      <dt>Guardian</dt>
      <dd>{gov.guardian === null ? "none" : <Whole hex={gov.guardian} />}</dd>
      <dt>Posts</dt>
      <dd id="posts">{governorInWords("posts", gov.posts, now)}</dd>
      <dt>Registrations</dt>
      <dd id="registrations">{governorInWords("registrations", gov.registrations, now)}</dd>
      <dt>A change waits</dt>
      <dd>{formatDuration(gov.delay)}</dd>
    </dl>
  );
}

const ICONS: Readonly<Record<ChangeRow["state"], string>> = { waiting: "○", due: "▶", executed: "✔", dropped: "✕", lapsed: "✕" };

function Changes({ rows }: { readonly rows: readonly ChangeRow[] }) {
  return (
    <Table
      caption="What waits, and what is over"
      columns={[
        {
          head: "state",
          cell: ({ state }: ChangeRow) => (
            <span class="state">
              <span aria-hidden="true">{ICONS[state]}</span> {state}
            </span>
          ),
        },
        { head: "change", cell: ({ text }) => text },
        { head: "when", cell: whenInWords },
        { head: "id", cell: ({ id }) => <Whole hex={id} /> },
      ]}
      rows={rows}
      keyOf={({ id }) => id}
      none="Nothing waits, and nothing was changed."
    />
  );
}

interface DoingProps {
  readonly market: Market;
  readonly gov: Read;
  readonly rows: readonly ChangeRow[];
  readonly now: number;
  readonly session: Parameters<typeof Acts>[0]["session"];
}

function Doing({ market, gov, rows, now, session }: DoingProps) {
  const account = session?.account;
  const offers = offersOf(market, gov, rows, now, account);
  const [offered, setOffered] = useState(false);
  useEffect(() => {
    if (offers.length > 0) setOffered(true);
  }, [offers.length]);
  return (
    <>
      {offers.length === 0 && <p class="soft">{account === undefined ? "Nothing is due. Council and guardian can do more once they connect." : "Nothing, as this account."}</p>}
      {rows.filter(isOpen).map(({ id, change }) => {
        const sets = announced(change, market.network.asset);
        return sets.length === 0 ? null : (
          <section key={id} aria-label={`What ${id.slice(0, 14)} sets`}>
            <p>All that {id.slice(0, 14)} sets for new jobs, by the change itself:</p>
            <SignedRows id={`sets-${id}`} rows={sets} />
          </section>
        );
      })}
      {(offers.length > 0 || offered) && <Acts market={market} session={session} offers={offers} />}
    </>
  );
}

// What an account may do now; what is due anybody may carry out.
function offersOf({ network }: Market, gov: Read, rows: readonly ChangeRow[], now: number, account: Hex | undefined): Offer[] {
  const offer = (label: string, call: Call, held = ""): Offer => {
    return { label, held, act: { call, what: call.label, gas: GOV_GAS, money: "it moves no money" } };
  };
  const due = rows.filter(({ state }) => state === "due").map(({ id, change }) => offer(`Carry out ${id.slice(0, 14)}`, executeCall(network, change)));
  const taken = (["posts", "registrations"] as const)
    .filter((what) => gov[what].offered === network.contracts.Steward)
    .map((what) => offer(`Let the Steward govern ${what}`, acceptGovernorCall(network, what)));
  const council = account !== undefined && account === gov.offeredCouncil ? [offer("Take the council's seat", acceptCouncilCall(network))] : [];
  if (account === undefined || (account !== gov.council && account !== gov.guardian)) return [...due, ...taken, ...council];
  const drops = rows
    .filter(({ state }) => state === "waiting" || state === "due")
    .map(({ id }) => offer(`Take back ${id.slice(0, 14)} for good`, dropCall(network, id)));
  const previous = now < gov.previousUntil ? [offer("Take the current policy only, from now on", dropPreviousCall(network))] : [];
  const pauses = (["posts", "registrations"] as const)
    .filter((what) => gov[what].steward)
    .map((what) => {
      const again = pausableFrom(gov[what].pausedUntil);
      const held = now < again ? `${what} were paused lately: the next time from ${moment(again)} on` : "";
      return offer(`Stop new ${what} for 7 days`, pauseCall(network, what), held);
    });
  return [...due, ...taken, ...council, ...drops, ...previous, ...pauses];
}
