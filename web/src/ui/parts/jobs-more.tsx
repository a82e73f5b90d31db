// What a list of jobs says besides how they stand: when each was posted, what it cost so far, and at its reader's word the names and
// costs of others' jobs; all of it as a file. Loaded once there is a list.

import { useState } from "preact/hooks";

import type { Block } from "../../chain/answers";
import { knownCosts, readCost } from "../../chain/costs";
import type { Jobs, Standing } from "../../chain/jobs";
import { fromHex, type Hex } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { counted } from "../../core/counted";
import type { Network } from "../../core/network";
import { isFinished } from "../../core/view";
import { Blocks } from "../../data/blocks";
import { learnName } from "../../data/names";
import { sharedOrigin } from "../../data/origin";
import { entryOf, everPosted } from "../../wallet/journal";
import { saveJobs } from "../jobs-csv";
import type { Facts } from "../jobs-facts";
import { useLoad } from "../load";
import type { Context } from "../context";
import type { Names } from "../use-names";
import { Button } from "./button";
import { Failure } from "./failure";

// Blocks back to a job's post that are read for its cost without being asked for.
const UNASKED = 200_000;
const AT_ONCE = 4;

interface Props {
  readonly context: Context;
  readonly network: Network;
  readonly reader: Jobs;
  readonly at: Block;
  readonly jobs: readonly Standing[];
  // Those of them that are asked for.
  readonly rows: readonly Standing[];
  readonly names: Names;
  readonly facts: Facts | undefined;
  readonly tell: (facts: Facts) => void;
  // Called once more names may be known.
  readonly read: () => void;
}

export function JobsMore({ context, network, reader, at, jobs, rows, names, facts, tell, read }: Props) {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const [missed, setMissed] = useState(0);
  const { error } = useLoad(async () => tell(await factsOf(reader, jobs, at, network, asked, facts)), network.name, [jobs, asked]);
  const lacking = jobs.filter(({ posted: { jobId, terms } }) => names?.has(terms.spec) === false || facts?.costs.has(jobId) === false);
  const ask = async (): Promise<void> => {
    setBusy(true);
    setAsked(true);
    const digests = [...new Set(lacking.map(({ posted }) => posted.terms.spec))].filter((spec) => names?.has(spec) !== true);
    setMissed(await learnNames(context, digests));
    read();
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={rows.length === 0 || names === undefined} onClick={() => saveJobs(rows, network.asset, names, facts)}>
        Save as CSV
      </button>
      {lacking.length > 0 && names !== undefined && (
        <Button busy={busy} onClick={() => void ask()}>{`Read names and costs of ${counted(lacking.length, "job")}`}</Button>
      )}
      {missed > 0 && <span role="status">{`${counted(missed, "document")} could not be read: no store that this page asks has it.`}</span>}
      {error !== undefined && <Failure error={error} />}
    </>
  );
}

// When jobs were posted and what they cost: of this browser's own, of those whose words tell it, and with `all` of each.
async function factsOf(reader: Jobs, jobs: readonly Standing[], at: Block, network: Network, all: boolean, before: Facts | undefined): Promise<Facts> {
  const { times } = await reader.market.about(jobs.map(({ posted }) => posted.log.blockHash), []);
  const costs = new Map(knownCosts(jobs));
  for (const job of before?.by === reader ? before.ended : []) {
    const cost = before?.costs.get(job);
    if (cost !== undefined) costs.set(job, cost);
  }
  const own = await ownJobs(network);
  const isNear = ({ posted }: Standing): boolean => at.number - posted.log.blockNumber <= UNASKED;
  const unknown = jobs.filter((one) => !costs.has(one.posted.jobId) && (all || (own.has(one.posted.jobId) && isNear(one))));
  await each(unknown, async (one) => {
    const cost = await readCost(reader, one, at);
    if (cost !== undefined) costs.set(one.posted.jobId, cost);
  });
  const posted = new Map(jobs.flatMap(({ posted: { jobId, log } }) => {
    const time = times.get(log.blockHash);
    return time === undefined ? [] : [[jobId, time] as const];
  }));
  const ended = new Set(jobs.flatMap(({ posted: { jobId }, partial, view }) => (!partial && isFinished(view) && costs.has(jobId) ? [jobId] : [])));
  return { by: reader, posted, costs, ended };
}

// The jobs that this browser posted. What lies at a shared origin may be another site's.
async function ownJobs(network: Network): Promise<ReadonlySet<Hex>> {
  const records = sharedOrigin(location) ? [] : await everPosted().catch(() => []);
  return new Set(records.flatMap((raw) => entryOf(raw, network)?.kept.job ?? []));
}

// Read documents and keep the names in them; returns how many could not be read.
async function learnNames({ opened, network }: Context, digests: readonly Hex[]): Promise<number> {
  const blocks = new Blocks(opened, network?.gateways ?? []);
  let missed = 0;
  await each(digests, async (digest) => {
    try {
      await learnName(digest, await blocks.source(cidOfDigest(fromHex(digest))), location);
    } catch {
      missed += 1;
    }
  });
  return missed;
}

// Do something for each, a few at once.
async function each<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  for (let start = 0; start < all.length; start += AT_ONCE) await Promise.all(all.slice(start, start + AT_ONCE).map(act));
}
