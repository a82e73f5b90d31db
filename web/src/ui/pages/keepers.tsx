// Work that anyone may do for pay: what is due now, what it pays and costs, and who has earned what by it.

import { useMemo } from "preact/hooks";

import { readFees } from "../../chain/calling";
import { UnendedReader } from "../../chain/upkeep";
import type { Earner, Earning } from "../../core/course";
import { counted } from "../../core/counted";
import { HearthError } from "../../core/errors";
import type { Hex } from "../../core/bytes";
import type { Asset, Network } from "../../core/network";
import { SENTINEL } from "../../generated/bounds";
import { byPay, inTurn, isWorth, silences, type Task, tasksOf, type Work } from "../../core/upkeep";
import { formatDuration, NATIVE } from "../../core/units";
import { batchCall, canBatch, taskCall } from "../../wallet/upkeep";
import { useCourse } from "../course";
import { useFleet } from "../fleet";
import { beatOf, useLoad } from "../load";
import type { Context } from "../context";
import { Acts, type Offer } from "../parts/acting";
import { Failure } from "../parts/failure";
import { JobLink } from "../parts/job-link";
import { Reading } from "../parts/market-charts";
import { NoMarket } from "../parts/no-market";
import { Amount, short, Whole } from "../parts/values";
import { Synced } from "../parts/synced";
import { type Column, Table } from "../parts/table";
import { Wallet } from "../parts/wallet";
import { hrefOf } from "../router";
import { type Names, useNames } from "../use-names";
import { useWallets } from "../wallet";
import { TEXTS } from "../texts";

// Tasks of one transaction, and buttons of one page.
const BATCH = 24;
const BUTTONS = 20;
// What gas is paid in, in a unit in which it can be read.
const GWEI: Asset = { symbol: "gwei", decimals: 9, address: null };
// What Lens uses for a batch beside its tasks.
const BATCH_GAS = 40_000n;

interface Due {
  readonly tasks: readonly Task[];
  // Jobs whose words no contract writes, with what is wrong.
  readonly broken: readonly HearthError[];
}

export function Keepers({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const ready = live.state === "ready" ? live : undefined;
  const fleet = useFleet(context);
  const course = useCourse(context);
  const wallets = useWallets(network);
  const reader = useMemo(() => (ready === undefined ? undefined : new UnendedReader(ready.market)), [ready?.market, ready?.epoch]);
  const key = network?.name ?? "";
  const unended = useLoad(
    ready === undefined || reader === undefined ? undefined : () => reader.read(ready.head),
    key,
    [reader, ready?.changed.hash],
    ready?.seen,
  );
  const fees = useLoad(
    ready === undefined ? undefined : () => readFees(ready.market, ready.head),
    key,
    [ready?.market, beatOf(ready?.head.time, network?.nodeParameters.dead_after)],
    ready?.seen,
  );
  const now = ready?.head.time ?? 0;
  const due = useMemo(() => {
    if (network === undefined || unended.value === undefined || fleet.value === undefined) return undefined;
    const { dead_after, liveness_fee } = network.nodeParameters;
    return dueOf(unended.value.works, fleet.value.nodes, now, Number(dead_after), liveness_fee);
  }, [unended.value, fleet.value, now]);
  const names = useNames(network, unended.value);
  if (network === undefined) return <NoMarket context={context} />;
  const { asset } = network;
  const price = fees.value === undefined ? undefined : fees.value.base + fees.value.tip;
  const account = wallets.session?.account;
  const oldest = due?.tasks.reduce<number | undefined>((least, { since }) => (since === undefined ? least : Math.min(least ?? since, since)), undefined);
  const offers = due === undefined || account === undefined ? [] : offersOf(network, due.tasks, price, account);
  return (
    <>
      <h1>Keepers</h1>
      <Synced live={live} />
      {[unended.error, fleet.error, fees.error].map((error, at) => error !== undefined && <Failure key={at} error={error} />)}
      <p>
        Nothing on this market happens by itself: whoever does what is due is paid for it, by a job's keeper fee or by a node's stake. The
        longer it is due, the more it pays, up to four times. <code>hearth keeper run</code> does the same by itself, and proposes workers
        besides.
      </p>
      <h2>Due now</h2>
      <dl>
        <dt>Tasks</dt>
        <dd>{due === undefined ? TEXTS.nothingYet : due.tasks.length}</dd>
        <dt>They pay</dt>
        <dd><Amount value={due?.tasks.reduce((sum, task) => sum + task.pay, 0n)} asset={asset} /></dd>
        <dt>Oldest overdue</dt>
        <dd>{due === undefined ? TEXTS.nothingYet : oldest === undefined ? "none" : formatDuration(Math.max(0, now - oldest))}</dd>
        <dt>A unit of gas</dt>
        <dd><Amount value={price} asset={GWEI} /></dd>
      </dl>
      {unended.value !== undefined && unended.value.leftOut > 0 && (
        <p role="note">{`${unended.value.leftOut} of ${counted(unended.value.jobs, "job was", "jobs were")} not looked at: they are older, or arrays of very many units. A keeper process looks at all.`}</p>
      )}
      {due?.broken.map((error) => <Failure key={error.message} error={error} />)}
      {due === undefined ? (
        <p>{TEXTS.nothingYet}</p>
      ) : (
        <Table
          caption="What anyone may do now, the best paid first; a keeper process may be faster"
          columns={columnsOf(asset, now, price, names.value)}
          rows={due.tasks}
          keyOf={keyOf}
          none="Nothing is due."
        />
      )}
      <h2>Do it</h2>
      <p>
        The pay is credited in Escrow to the account that signs, which withdraws it on the page <a href={hrefOf(["wallet"])}>{TEXTS.nav.wallet}</a>.
        A call that is too late is refused before your wallet opens.
      </p>
      <Wallet network={network} wallets={wallets} />
      {ready !== undefined && account !== undefined && <Acts market={ready.market} session={wallets.session} offers={offers} />}
      <h2>Who earned what</h2>
      <Reading course={course} deployed={network.deployBlock} />
      {course.told !== undefined && (
        <Table
          caption="Credited for keeping so far, workers that settle for themselves by settle included"
          columns={earnersColumns(asset)}
          rows={course.told.told.earners}
          keyOf={({ account: one }) => one}
          none="Nobody has earned anything by it yet."
        />
      )}
    </>
  );
}

function offersOf(network: Network, tasks: readonly Task[], price: bigint | undefined, payee: Hex): Offer[] {
  const money = "a keeper's work takes nothing of yours but its gas";
  const several = (some: readonly Task[], which: string): Offer[] => {
    if (some.length < 2) return [];
    const gas = some.reduce((sum, task) => sum + task.gas, BATCH_GAS);
    const act = { call: batchCall(network, inTurn(some), payee), what: "this work", gas, money };
    return [{ label: `Do ${some.length} ${which} in one transaction`, held: "", act }];
  };
  const all = tasks.filter(canBatch);
  const worth = all.filter((task) => pays(task, price, network.asset) === true);
  return [
    ...several(worth.slice(0, BATCH), "that pay"),
    ...(worth.length === all.length ? [] : several(all.slice(0, BATCH), "of these")),
    ...tasks.slice(0, BUTTONS).map((task) => ({
      label: `${DOES[task.does]} ${subjectOf(task)}`,
      held: "",
      act: { call: taskCall(network, task, payee), what: "this work", gas: task.gas, money },
    })),
  ];
}

const DOES: Readonly<Record<Task["does"], string>> = {
  settle: "Settle",
  close: "Close",
  reclaim: "Reclaim",
  expire: "Expire",
  unlock: "Unlock",
  check_liveness: "Record the silence of",
};

function dueOf(works: readonly Work[], nodes: Parameters<typeof silences>[0], now: number, deadAfter: number, fee: bigint): Due {
  const beats = new Map(nodes.map((node) => [node.id, node.state.beat]));
  const broken: HearthError[] = [];
  const found = works.flatMap((work) => {
    try {
      return tasksOf(work, now, beats, deadAfter);
    } catch (error) {
      if (!(error instanceof HearthError)) throw error;
      broken.push(new HearthError(error.code, `job ${work.posted.jobId}: ${error.message}`));
      return [];
    }
  });
  return { tasks: byPay([...found, ...silences(nodes, now, deadAfter, fee)]), broken };
}

// Say whether a task pays for its gas; undefined while the price is not known, or where what a coin is worth is not.
function pays(task: Task, price: bigint | undefined, asset: Asset): boolean | undefined {
  return price === undefined || asset.address !== null ? undefined : isWorth(task, price);
}

const unitOf = (index: bigint): string => (index === SENTINEL ? "all that nobody took" : `unit ${index}`);

const subjectOf = ({ posted, index, node }: Task): string =>
  posted === undefined ? `node ${node}` : `${unitOf(index)} of ${short(posted.jobId)}`;

const keyOf = ({ does, posted, index, node }: Task): string => `${does} ${posted?.jobId ?? node} ${index}`;

function columnsOf(asset: Asset, now: number, price: bigint | undefined, names: Names): Column<Task>[] {
  return [
    { head: "does", cell: ({ does }) => does.replace("_", " ") },
    {
      head: "what",
      cell: ({ posted, index, node }) =>
        posted === undefined ? (
          `node ${node}`
        ) : (
          <>
            {unitOf(index)} of{" "}
            <JobLink job={posted.jobId} block={posted.log.blockNumber} name={names?.get(posted.terms.spec)} />
          </>
        ),
    },
    { head: "due for", cell: ({ since }) => (since === undefined ? "" : formatDuration(Math.max(0, now - since))), number: true },
    { head: "pays", cell: ({ pay }) => <Amount value={pay} asset={asset} />, number: true },
    { head: "in the end", cell: ({ most }) => <Amount value={most} asset={asset} />, number: true },
    { head: "gas", cell: ({ gas }) => String(gas), number: true },
    { head: "costs", cell: ({ gas }) => <Amount value={price === undefined ? undefined : gas * price} asset={NATIVE} />, number: true },
    {
      head: "worth it",
      cell: (task) => {
        const worth = pays(task, price, asset);
        if (worth === undefined) return price === undefined ? TEXTS.nothingYet : "ask what the coin is worth";
        return worth ? <span class="good">✔ yes</span> : "✕ no";
      },
    },
  ];
}

const KINDS: readonly (readonly [Earning, string])[] = [
  ["propose", "proposals"],
  ["settle", "settled"],
  ["close", "closed"],
  ["reclaim", "reclaimed"],
  ["expire", "expired"],
  ["unlock", "unlocked"],
  ["liveness", "silences"],
  ["ruling", "rulings"],
  ["other", "other"],
];

function earnersColumns(asset: Asset): Column<Earner>[] {
  return [
    { head: "account", cell: ({ account }) => <Whole hex={account} /> },
    { head: "earned", cell: ({ earned }) => <Amount value={earned} asset={asset} />, number: true },
    ...KINDS.map(([kind, head]): Column<Earner> => ({ head, cell: ({ acts }) => acts.get(kind) ?? 0, number: true })),
  ];
}
