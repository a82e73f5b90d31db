// A job file, checked here as `hearth check` checks it: what is wrong and where, its document and digest, what it needs and
// what it costs at most. Nothing is sent anywhere.

import { useEffect, useState } from "preact/hooks";

import { sha256, toHex } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { HearthError } from "../../core/errors";
import { billingOf, deadlineOf, type Prices, planPrices } from "../../core/plan";
import { canonicalBytes, dataOf, type ResolvedSpec, resolve } from "../../core/resolve";
import { type LoadedSpec, loadSpec, localSources, maxSeconds } from "../../core/spec";
import { nameOf } from "../../core/types";
import { formatDuration, showRate } from "../../core/units";
import { unpackPolicy } from "../../core/words";
import { fromInput } from "../../data/pick";
import { rulesOf } from "../../data/rules";
import { nameTree } from "../../data/upload";
import { BILLING } from "../../generated/states";
import { useLoad } from "../load";
import type { Context } from "../main";
import { Failure } from "../parts/failure";
import { Amount, Moment, Stranger } from "../parts/shown";

interface Named {
  readonly cid: string;
  readonly size: number;
}

interface Found {
  readonly loaded: LoadedSpec;
  readonly document: ResolvedSpec | undefined;
  readonly digest: Uint8Array<ArrayBuffer> | undefined;
  // Why there is no document yet.
  readonly lacks: unknown;
}

const EXAMPLE = `version: 1
name: sum
module: sum.wasm
command: [sum]
resources: {cpus: 1, memory: 1GiB}
limits: {runtime: 1m}
price: {max_total: "0.02"}
`;

export function Check({ context }: { readonly context: Context }) {
  const [text, setText] = useState("");
  const [named, setNamed] = useState<ReadonlyMap<string, Named>>(new Map());
  const [found, setFound] = useState<Found>();
  const [error, setError] = useState<unknown>();

  useEffect(() => {
    let ended = false;
    if (text.trim() === "") {
      setFound(undefined);
      setError(undefined);
      return undefined;
    }
    check(text, named).then(
      (value) => {
        if (ended) return;
        setFound(value);
        setError(undefined);
      },
      (why: unknown) => {
        if (ended) return;
        setFound(undefined);
        setError(why);
      },
    );
    return () => {
      ended = true;
    };
  }, [text, named]);

  return (
    <>
      <h1>Job file</h1>
      <p>Checked on this machine, by the rules of <code>hearth check</code>. Nothing is sent anywhere.</p>
      <p class="row">
        <label>
          Open{" "}
          <input
            type="file"
            accept=".yaml,.yml,.json"
            onChange={(event) => void event.currentTarget.files?.[0]?.text().then(setText, setError)}
          />
        </label>
        <button type="button" onClick={() => setText(EXAMPLE)}>
          Show an example
        </button>
      </p>
      <label for="job-file">The job file</label>
      <textarea id="job-file" rows={16} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div aria-live="polite">
        {error !== undefined && <Problems error={error} />}
        {found !== undefined && (
          <>
            <p class="good">This is a job file.</p>
            {found.loaded.notes.map((note) => (
              <p key={note}>{note}</p>
            ))}
          </>
        )}
      </div>
      {found !== undefined && (
        <>
          <Sources found={found} named={named} onNamed={(src, one) => setNamed(new Map(named).set(src, one))} />
          <Document found={found} />
          <Costs context={context} found={found} />
        </>
      )}
    </>
  );
}

async function check(text: string, named: ReadonlyMap<string, Named>): Promise<Found> {
  const loaded = await loadSpec(text, "job.yaml");
  try {
    const document = resolve(loaded.spec, (src) => {
      const one = named.get(src);
      return one === undefined ? undefined : dataOf(one.cid, one.size);
    });
    return { loaded, document, digest: await sha256(canonicalBytes(document)), lacks: undefined };
  } catch (lacks) {
    if (!(lacks instanceof HearthError)) throw lacks;
    return { loaded, document: undefined, digest: undefined, lacks };
  }
}

interface Told {
  readonly line: number | null;
  readonly field: string;
  readonly message: string;
  readonly hint: string;
}

function Problems({ error }: { readonly error: unknown }) {
  const problems = error instanceof HearthError ? error.details["problems"] : undefined;
  if (!Array.isArray(problems)) return <Failure error={error} />;
  return (
    <ul class="failure" role="alert">
      {(problems as readonly Told[]).map((one) => (
        <li key={`${one.line} ${one.field} ${one.message}`}>
          {one.line !== null && `line ${one.line}: `}
          {one.field !== "" && <code>{one.field}</code>} <Stranger text={one.message} most={500} />
          {one.hint !== "" && <span class="hint"> {one.hint}</span>}
        </li>
      ))}
    </ul>
  );
}

interface SourcesProps {
  readonly found: Found;
  readonly named: ReadonlyMap<string, Named>;
  readonly onNamed: (src: string, one: Named) => void;
}

// What the job brings: each is named by the file or folder that the reader picks for it.
function Sources({ found, named, onNamed }: SourcesProps) {
  const [error, setError] = useState<unknown>();
  const sources = [...new Set(localSources(found.loaded.spec).map(([, src]) => src))].filter((src) => !src.includes("://"));
  if (sources.length === 0) return null;
  const take = async (src: string, files: readonly File[]): Promise<void> => {
    try {
      const picked = fromInput(files);
      // As when it is posted: rules are a working directory's alone.
      const rules = src === found.loaded.spec.workdir ? await rulesOf(picked) : undefined;
      const entry = await nameTree(picked.node, rules?.ignore ?? (() => false), () => undefined);
      onNamed(src, { cid: String(entry.cid), size: Number(entry.size) });
      setError(undefined);
    } catch (why) {
      setError(why);
    }
  };
  return (
    <>
      <h2>What it brings</h2>
      {error !== undefined && <Failure error={error} />}
      <ul>
        {sources.map((src) => (
          <li key={src}>
            <Stranger text={src} />{" "}
            {named.has(src) ? (
              <code>{named.get(src)?.cid}</code>
            ) : (
              <span class="row">
                <label>
                  as a file <input type="file" onChange={(event) => void take(src, [...(event.currentTarget.files ?? [])])} />
                </label>
                <label>
                  or a folder{" "}
                  <input
                    type="file"
                    {...{ webkitdirectory: true }}
                    onChange={(event) => void take(src, [...(event.currentTarget.files ?? [])])}
                  />
                </label>
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Document({ found }: { readonly found: Found }) {
  if (found.document === undefined || found.digest === undefined) {
    return (
      <>
        <h2>Its document</h2>
        <Failure error={found.lacks} />
      </>
    );
  }
  return (
    <>
      <h2>Its document</h2>
      <dl>
        <dt>Digest</dt>
        <dd class="mono" id="spec-digest">{toHex(found.digest)}</dd>
        <dt>CID</dt>
        <dd class="mono">{String(cidOfDigest(found.digest))}</dd>
      </dl>
      <details>
        <summary>As every worker reads it</summary>
        <pre>{JSON.stringify(found.document, null, 2)}</pre>
      </details>
    </>
  );
}

// What it costs in this market, as its parameters are now.
function Costs({ context, found }: { readonly context: Context; readonly found: Found }) {
  const { live, network } = context;
  const ready = live.state === "ready" ? live : undefined;
  const { value, error } = useLoad(
    ready === undefined ? undefined : async () => (await ready.market.read(ready.head, ready.market.overview()))[0],
    network?.name ?? "",
    [ready?.changed.hash],
  );
  if (network === undefined) return null;
  const { spec } = found.loaded;
  const policy = value === undefined ? undefined : unpackPolicy(value.policy);
  let prices: Prices | undefined;
  let deadline: number | undefined;
  let refused: unknown = error;
  try {
    if (policy !== undefined && ready !== undefined) {
      prices = planPrices(spec, network.asset, policy);
      deadline = deadlineOf(spec, policy, ready.head.time);
    }
  } catch (why) {
    refused = why;
  }
  return (
    <>
      <h2>What it costs at most</h2>
      {refused !== undefined && <Failure error={refused} />}
      <dl>
        <dt>Escrow</dt>
        <dd id="escrow"><Amount value={prices?.total} asset={network.asset} /></dd>
        <dt>A unit</dt>
        <dd><Amount value={prices?.unitPrice} asset={network.asset} /></dd>
        <dt>Highest rate</dt>
        <dd>{prices === undefined ? "" : showRate(prices.ceiling, network.asset)}</dd>
        <dt>Keeper fee</dt>
        <dd><Amount value={prices?.keeperFee} asset={network.asset} /></dd>
        <dt>Billing</dt>
        <dd>{nameOf(BILLING, billingOf(spec))}</dd>
        <dt>Time</dt>
        <dd>{`${formatDuration(maxSeconds(spec))} a unit, ${spec.array.units} units`}</dd>
        <dt>Deadline</dt>
        <dd>{deadline === undefined ? "" : <Moment at={deadline} now={ready?.head.time} />}</dd>
      </dl>
    </>
  );
}
