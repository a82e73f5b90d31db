// One job: what it came to, its money, who may act next, its timeline, its terms. A link carries the block of its post.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Jobs as Reader } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";
import { leasesOf } from "../../core/types";
import type { Posted } from "../../core/posted";
import { jobAddress } from "../job-address";
import { asOf, isRunning, readWhole } from "../job";
import { useKeep, useLastSeen } from "../use-last-seen";
import { beatOf, useLoad } from "../load";
import type { Context } from "../context";
import { Actions } from "../parts/actions";
import { Failure } from "../parts/failure";
import { Family } from "../parts/graph";
import { JobDocument } from "../parts/job-document";
import { Head } from "../parts/job-head";
import { Money } from "../parts/job-money";
import { Judged } from "../parts/judged";
import { LastSeenJob } from "../parts/last-seen-job";
import { Legend } from "../parts/legend";
import { NoMarket } from "../parts/no-market";
import { Results } from "../parts/result";
import { Stranger, Whole } from "../parts/values";
import { Synced } from "../parts/synced";
import { TermsOf } from "../parts/terms";
import { type About, Earlier, STEP, Timeline } from "../parts/timeline";
import { UnitMap } from "../parts/unit-map";
import { Units } from "../parts/units";
import { useRoute } from "../router";
import { useNames } from "../use-names";
import { TEXTS } from "../texts";

export function JobPage({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { parts } = useRoute();
  const { job, block } = jobAddress(parts[1]) ?? {};
  const ready = live.state === "ready" ? live : undefined;
  const reader = useMemo(
    () => (ready === undefined ? undefined : new Reader(ready.market)),
    [ready?.market, ready?.epoch],
  );
  // Beats are asked for only while their silence would matter.
  const runs = useRef(false);
  const [looked, setLooked] = useState("");
  const posted = useLoad(
    ready === undefined || reader === undefined || job === undefined
      ? undefined
      : () => reader.find(job, ready.head, block),
    job ?? "",
    [reader, looked],
    ready?.seen,
  );
  // A reorg may have taken its post with it; and of a job that was posted a moment ago the head that was read last may know
  // nothing: each one in which something has changed is looked at.
  const gone = posted.error instanceof HearthError && posted.error.code === "NOT_FOUND";
  useEffect(() => {
    if (gone && ready !== undefined) setLooked(ready.changed.hash);
  }, [gone, ready?.changed.hash]);
  const whole = useLoad(
    ready === undefined || reader === undefined || posted.value === undefined || gone
      ? undefined
      : () => readWhole(reader, posted.value as Posted, ready.head),
    job ?? "",
    [posted.value, gone, ready?.changed.hash, runs.current ? beatOf(ready?.head.time, network?.nodeParameters.dead_after) : 0],
    ready?.seen,
  );
  runs.current = isRunning(whole.value);
  useKeep(live, job && `last/job/${job}`, whole.value && { ...whole.value, jobs: [whole.value.standing] });
  const last = useLastSeen(live, ...(job === undefined ? [] : [`last/job/${job}` as const, "last/jobs" as const]));
  const lastOne = whole.value === undefined ? last?.jobs.find(({ posted: { jobId } }) => jobId === job) : undefined;
  const [most, setMost] = useState(STEP);
  const shownEvents = whole.value?.events.slice(-most);
  const about = useLoad<About>(
    ready === undefined || shownEvents === undefined
      ? undefined
      : () => ready.market.about(shownEvents.map(({ log }) => log.blockHash), shownEvents.map(({ log }) => log)),
    job ?? "",
    [whole.value?.events, most],
    ready?.seen,
  );
  const [documents, setDocuments] = useState(0);
  const names = useNames(network, documents);
  const shownOne = whole.value?.standing ?? lastOne;
  const name = shownOne && names.value?.get(shownOne.posted.terms.spec);
  // A unit is one of this job's: another job's page begins without.
  const [picked, setPicked] = useState<{ readonly job: Hex | undefined; readonly unit: number }>();
  const chosen = picked?.job === job ? picked?.unit : undefined;
  const choose = (unit: number): void => setPicked({ job, unit });
  if (network === undefined) return <NoMarket context={context} />;
  if (job === undefined) {
    return (
      <>
        <h1>Job</h1>
        <Failure error={new HearthError("BAD_ID", "a job's id is 0x and 64 hex digits", "look at the list of jobs")} />
      </>
    );
  }
  return (
    <>
      <h1>Job{name !== undefined && <> “<Stranger text={name} />”</>}</h1>
      <p class="mono">
        <Whole hex={job} />
      </p>
      <Synced live={live} />
      {posted.error !== undefined && <Failure error={posted.error} />}
      {whole.error !== undefined && !gone && <Failure error={whole.error} />}
      {last !== undefined && lastOne !== undefined && !gone && <LastSeenJob last={last} standing={lastOne} network={network} />}
      {reader !== undefined && reader.strays.count > 0 && <p role="note">{reader.strays.inWords()}</p>}
      {whole.value === undefined || ready === undefined || gone ? (
        posted.error === undefined && lastOne === undefined && <p>{TEXTS.nothingYet}</p>
      ) : (
        <>
          <Head whole={asOf(whole.value, ready.head.time)} network={network} now={ready.head.time} />
          <Legend />
          <Money
            whole={asOf(whole.value, ready.head.time)}
            mined={about.value?.receipts}
            network={network}
            all={most < whole.value.events.length ? () => setMost(Infinity) : undefined}
          />
          <Actions market={ready.market} standing={whole.value.standing} />
          <Timeline isArray={leasesOf(whole.value.standing.view.terms) > 1} events={shownEvents ?? []} about={about} asset={network.asset} />
          <Earlier rest={whole.value.events.length - most} more={() => setMost(most + STEP)} />
          <UnitMap key={`map ${job}`} whole={asOf(whole.value, ready.head.time)} chosen={chosen} choose={choose} />
          <Results
            context={context}
            posted={whole.value.standing.posted}
            view={whole.value.standing.view}
            events={whole.value.events}
            chosen={chosen}
            choose={choose}
          />
          <Units whole={asOf(whole.value, ready.head.time)} />
          <Judged market={ready.market} standing={asOf(whole.value, ready.head.time).standing} events={whole.value.events} />
          {reader !== undefined && (
            <Family key={job} reader={reader} posted={whole.value.standing.posted} head={ready.head} changed={ready.changed.hash} />
          )}
          <TermsOf standing={whole.value.standing} asset={network.asset} attesters={network.contracts.Attesters} />
          <JobDocument context={context} terms={whole.value.standing.posted.terms} read={() => setDocuments((before) => before + 1)} />
          <AsCommands job={job} />
        </>
      )}
    </>
  );
}

function AsCommands({ job }: { readonly job: Hex }) {
  return (
    <>
      <h2>As commands</h2>
      <pre>{[`hearth job show ${job}`, `hearth job get ${job} -o out`, `hearth job events ${job}`].join("\n")}</pre>
    </>
  );
}
