// What this copy of the page is: its own CID, read from its own files, and what it was opened with.

import { useEffect, useState } from "preact/hooks";

import { counted } from "../../core/counted";
import type { Entry } from "../../core/unixfs";
import { ownBuild } from "../../data/build";
import { forgetAll } from "../../data/kept-market";
import { namedMarket, type NetworkFile, pickMarket, unpickMarket } from "../../data/market";
import { AskWhom, Lasts } from "../parts/ask-whom";
import { Button } from "../parts/button";
import { Failure } from "../parts/failure";
import { PickMarket } from "../parts/pick-market";
import type { Context } from "../context";
import { TEXTS } from "../texts";

// What earlier visits left in this browser goes at the reader's word.
function Forget() {
  const [state, setState] = useState<"idle" | "busy" | "done">("idle");
  const forget = (): void => {
    setState("busy");
    void forgetAll().then(() => setState("done"));
  };
  return (
    <section aria-labelledby="stored">
      <h2 id="stored">Stored in this browser</h2>
      <p>
        Logs of the market, so that the next visit asks for the blocks since alone; the jobs that it showed last; a copy of this page,
        which opens without its server; the names of jobs whose files you read; the draft of a job file; the theme; the token of hearth
        web, or the market that you picked; the addresses that you named. The record of
        the jobs that you posted is no part of it, and stays: without it one could be paid for twice.
      </p>
      <p class="row">
        <Button busy={state === "busy"} onClick={forget}>
          Forget what this page has stored
        </Button>
        <span role="status">
          {state === "done" && "Forgotten. For your own store, open the address that hearth web printed again."}
        </span>
      </p>
    </section>
  );
}

// Another market, where the page's server names none that stands above its reader's.
function PickAnother({ context }: { readonly context: Context }) {
  const [error, setError] = useState<unknown>();
  if (context.opened.by !== "host") return null;
  const unpick = (): void => {
    unpickMarket();
    namedMarket(location).then(context.choose, (why: unknown) => {
      context.choose(undefined);
      setError(why);
    });
  };
  return (
    <>
      {context.by === "reader" && (
        <p class="row">
          <button type="button" onClick={unpick}>
            Forget the market that I picked
          </button>
        </p>
      )}
      {error !== undefined && <Failure error={error} />}
      <Whom context={context} />
      <PickMarket context={context} />
    </>
  );
}

// Others to ask of the market in use. What replaces a host's file is its reader's from then on.
function Whom({ context: { network, raw, by, choose } }: { readonly context: Context }) {
  const [taken, setTaken] = useState(false);
  if (network === undefined || raw === undefined) return null;
  const use = (chosen: NetworkFile): void => {
    choose(pickMarket(chosen, location));
    setTaken(true);
  };
  return (
    <section aria-labelledby="whom">
      <h2 id="whom">Whom this page asks of {network.name}</h2>
      {by === "host" && <p>These are named by the file of this page's host. Once you use others, its contracts stand as they are now, whatever the host names later.</p>}
      <AskWhom key={JSON.stringify([by, raw, network.rpc, network.gateways])} id="used" file={{ raw, network }} button="Use these" choose={use} />
      <p role="status">{taken && by === "reader" && "These are asked from now on."}</p>
      <Lasts />
    </section>
  );
}

export function About({ context }: { readonly context: Context }) {
  const [build, setBuild] = useState<Entry>();
  const [fault, setFault] = useState<unknown>();
  useEffect(() => {
    ownBuild().then(setBuild, setFault);
  }, []);
  const { network, opened } = context;
  return (
    <>
      <h1>About this page</h1>
      <p>
        It is a folder of static files. It reads a chain and gateways, checks what they say, and asks a wallet to sign. It has no
        server of its own, holds no key and asks nobody whom you did not name.
      </p>
      <dl>
        <dt>Build</dt>
        <dd class="mono">{build === undefined ? TEXTS.nothingYet : String(build.cid)}</dd>
        <dt>Files</dt>
        <dd>{build === undefined ? TEXTS.nothingYet : `${counted(build.files, "file")}, ${counted(build.size, "byte")}`}</dd>
        <dt>Market</dt>
        <dd>{network === undefined ? "none" : `${network.name}, chain ${network.chainId}`}</dd>
        {network !== undefined && (
          <>
            <dt>RPC</dt>
            <dd>{network.rpc.map((url) => new URL(url).origin).join(", ") || "none that a browser can ask"}</dd>
            <dt>Gateways</dt>
            <dd>{network.gateways.map((url) => new URL(url).origin).join(", ") || "none"}</dd>
          </>
        )}
        <dt>Licences</dt>
        <dd>
          Hearth is under Apache-2.0; <a href="./licenses.txt">what it is made of</a>
        </dd>
      </dl>
      {fault !== undefined && <Failure error={fault} />}
      <p class="soft">
        The page computes this CID from the files that it was served{opened.by === "kept" ? ", here by this browser's own copy" : ""}. A changed page could lie about it: compare it with the
        one of the release by <code>hearth web --verify</code>, or build it yourself by <code>make web</code>.
      </p>
      <PickAnother context={context} />
      <Forget />
    </>
  );
}
