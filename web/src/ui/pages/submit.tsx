// From a job file to a posted job: who can take it, what it costs at most, whether its data are there, what the wallet will
// show; then one signature. What was begun and not finished stands first.

import { useEffect, useMemo, useState } from "preact/hooks";

import { type PostingGround, readGround } from "../../chain/posting-ground";
import type { AttesterSet } from "../../core/attesters";
import { canonicalBytes } from "../../core/resolve";
import { HearthError } from "../../core/errors";
import type { Hex } from "../../core/bytes";
import { toHex } from "../../core/bytes";
import type { Network } from "../../core/network";
import { draftTerms } from "../../core/posting";
import { located, runtimeKind, runtimeOf } from "../../core/spec";
import type { Terms } from "../../core/types";
import { ZERO_ADDRESS } from "../../generated/bounds";
import { type Load, nameStored, requireFew, requireModule } from "../../data/job-data";
import { Blocks } from "../../data/blocks";
import { beatOf, useLoad } from "../load";
import type { Loaded } from "../unreachable";
import type { Context } from "../context";
import { useRoute } from "../router";
import { Attesters } from "../parts/attesters";
import { useCredit } from "../parts/credit";
import { Failure } from "../parts/failure";
import { Document, Editor, type Found, type JobFile, Problems, Sources, useJobFile } from "../parts/job-file";
import { lazy } from "../parts/lazy";
import { NoMarket } from "../parts/no-market";
import { AtMost, refusalOfTakers, Takers } from "../parts/plan";
import { Sign } from "../parts/sign";
import { Synced } from "../parts/synced";
import { UploadJobData } from "../parts/upload-job-data";
import { Unfinished } from "../parts/unfinished";
import { Wallet } from "../parts/wallet";
import { useWallets, type Wallets } from "../wallet";
import { TEXTS } from "../texts";

const JobForm = lazy(async () => (await import("../parts/job-form")).JobForm);
const Rerun = lazy(async () => (await import("../parts/rerun")).Rerun);

export function Submit({ context }: { readonly context: Context }) {
  const { network, live } = context;
  const file = useJobFile(network);
  const { parts } = useRoute();
  const wallets = useWallets(network);
  // What later steps refuse stands at its field of the form too.
  const [later, setLater] = useState<unknown>();
  const { found, error } = file;
  const faults = useMemo(() => [error, found?.lacks, later], [error, found, later]);
  if (network === undefined) return <NoMarket context={context} />;
  return (
    <>
      <h1>Submit a job</h1>
      <Synced live={live} />
      <Unfinished context={context} network={network} wallets={wallets} />
      {parts[1] !== undefined && <Rerun context={context} network={network} file={file} />}
      <Editor file={file}>
        <JobForm key={file.which} file={file} errors={faults} />
      </Editor>
      {found !== undefined && (
        <>
          <Sources file={file} found={found} />
          <Attesters file={file} found={found} />
          <Stored context={context} file={file} found={found} />
          <Document file={file} found={found} />
        </>
      )}
      {found?.document === undefined ? (
        <>
          <h2>Wallet</h2>
          <Wallet network={network} wallets={wallets} />
        </>
      ) : (
        <Planned context={context} network={network} wallets={wallets} file={file} found={found} refuse={setLater} />
      )}
    </>
  );
}

// Name what the job takes from a store already, block by block.
function Stored({ context, file, found }: { readonly context: Context; readonly file: JobFile; readonly found: Found }) {
  const [error, setError] = useState<unknown>();
  const { spec } = found.loaded;
  const wanted = [spec.module, spec.workdir, ...spec.inputs.map(({ src }) => src)].filter(
    (src): src is string => src?.startsWith("ipfs://") === true && !file.named.has(src),
  );
  const [src] = wanted;
  useEffect(() => {
    let ended = false;
    setError(undefined);
    if (src === undefined) return undefined;
    nameStored(src, new Blocks(context.opened, context.network?.gateways ?? [])).then(
      (one) => !ended && file.name(src, one),
      (why: unknown) => !ended && setError(why),
    );
    return () => {
      ended = true;
    };
  }, [src]);
  return error === undefined ? null : <Failure error={error} />;
}

interface Props {
  readonly context: Context;
  readonly network: Network;
  readonly wallets: Wallets;
  readonly file: JobFile;
  readonly found: Found;
  readonly refuse: (why: unknown) => void;
}

function Planned({ context, network, wallets, file, found, refuse }: Props) {
  const { live } = context;
  const ready = live.state === "ready" ? live : undefined;
  const account = wallets.session?.account ?? ZERO_ADDRESS;
  const ground = useLoad(
    ready === undefined ? undefined : () => readGround(ready.market, ready.head),
    network.name,
    [ready?.changed.hash, beatOf(ready?.head.time, network.nodeParameters.dead_after)],
  );
  const [there, setThere] = useState<string>();
  const { attesters: named } = found.loaded.spec.verify;
  const attesters = named === null ? undefined : file.attestersOf(named);
  const [drawn, refused] = useMemo(
    () => drafted(found, attesters, account, network, ground.value),
    [found, attesters, account, network, ground.value],
  );
  const credit = useCredit(ready?.market, ground.value, wallets.session?.account, drawn);
  const load = useMemo(() => loadOf(file, found), [file.named, found]);
  const module = useModule(context, file, found);
  const digest = found.digest === undefined ? "" : toHex(found.digest);
  const why = refused ?? (module.error instanceof HearthError ? located(found.loaded, module.error) : undefined);
  useEffect(() => {
    refuse(why);
    return () => refuse(undefined);
  }, [refused, module.error]);
  const untakable = useMemo(
    () => (drawn === undefined || ground.value === undefined ? undefined : refusalOfTakers(ground.value, drawn, found.loaded.spec, network.asset)),
    [drawn, ground.value, found, network],
  );
  return (
    <>
      {ground.error !== undefined && <Failure error={ground.error} />}
      {refused !== undefined && <Problems error={refused} />}
      {module.error !== undefined && <Problems error={module.error instanceof HearthError ? located(found.loaded, module.error) : module.error} />}
      {refused === undefined && (drawn === undefined || ground.value === undefined) && <p>{TEXTS.nothingYet}</p>}
      {(drawn === undefined || ground.value === undefined || ready === undefined) && (
        <>
          <h2>Wallet</h2>
          <Wallet network={network} wallets={wallets} />
        </>
      )}
      {drawn !== undefined && ground.value !== undefined && ready !== undefined && (
        <>
          <Takers market={ready.market} ground={ground.value} terms={drawn} spec={found.loaded.spec} refused={untakable} />
          <h2>Wallet</h2>
          <Wallet network={network} wallets={wallets} />
          <AtMost market={ready.market} ground={ground.value} terms={drawn} session={wallets.session} credit={credit} />
          <UploadJobData key={digest} context={context} load={load} onThere={() => setThere(digest)} />
          {module.value === true && !(load instanceof HearthError) && (
            <Sign
              market={ready.market}
              session={wallets.session}
              draft={{ loaded: found.loaded, document: found.document as NonNullable<Found["document"]>, digest: digest as Hex, attesters }}
              terms={drawn}
              credit={credit}
              there={there === digest}
              untakable={untakable !== undefined}
              posted={() => file.draft.posted(file.text)}
            />
          )}
        </>
      )}
    </>
  );
}

// Whether a worker could start the job's module, where it has one.
function useModule({ opened, network }: Context, { named }: JobFile, { loaded, document }: Found): Loaded<true> {
  const { spec } = loaded;
  const src = runtimeKind(runtimeOf(spec)).webassembly ? spec.module : null;
  const one = src === null ? undefined : named.get(src);
  const memory = BigInt(document?.resources.memory_mib ?? 0) << 20n;
  const read = async (): Promise<true> =>
    src === null || one === undefined || requireModule(src, one, memory, new Blocks(opened, network?.gateways ?? []));
  return useLoad(read, `${one?.cid ?? ""} ${memory}`, [one]);
}

function drafted(
  found: Found,
  attesters: AttesterSet | undefined,
  account: Hex,
  network: Network,
  ground: PostingGround | undefined,
): readonly [Terms | undefined, unknown] {
  const { loaded, document, digest } = found;
  if (document === undefined || digest === undefined || ground === undefined) return [undefined, undefined];
  try {
    const { overview, at } = ground;
    const now = { policyWord: overview.policy, now: at.time };
    return [draftTerms(loaded, document, toHex(digest), account, network, now, attesters), undefined];
  } catch (error) {
    return [undefined, error];
  }
}

// What is to be put and looked for; refused where a worker would refuse it.
function loadOf(file: JobFile, found: Found): Load | HearthError {
  const { spec } = found.loaded;
  const sources = [...new Set([spec.module, spec.workdir, ...spec.inputs.map(({ src }) => src)])].flatMap((src) => {
    const named = src === null ? undefined : file.named.get(src);
    return src === null || named === undefined ? [] : [{ src, isWorkdir: src === spec.workdir, named }];
  });
  try {
    requireFew(sources.map(({ named }) => named));
    return { sources, document: canonicalBytes(found.document as NonNullable<Found["document"]>) };
  } catch (error) {
    if (error instanceof HearthError) return error;
    throw error;
  }
}
