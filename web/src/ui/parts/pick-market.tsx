// A market by its network file, at the reader's word: shown whole before it is taken.

import { useState } from "preact/hooks";

import { HearthError } from "../../core/errors";
import { asking, needsConsent, type NetworkFile, ofAddress, ofFile, pickMarket, reached } from "../../data/market";
import { sharedOrigin } from "../../data/origin";
import type { Context } from "../main";
import { anew } from "./anew";
import { Failure } from "./failure";
import { read } from "./fields";
import { Stranger, Whole } from "./shown";

export function PickMarket({ context }: { readonly context: Context }) {
  const [address, setAddress] = useState("");
  const [file, setFile] = useState<NetworkFile>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const take = async (reading: Promise<NetworkFile>): Promise<void> => {
    setBusy(true);
    setFile(undefined);
    setError(undefined);
    await reading.then(setFile, setError);
    setBusy(false);
  };
  return (
    <section aria-labelledby="pick-market">
      <h2 id="pick-market">A market by its network file</h2>
      <p>
        The file <code>networks/NAME.json</code> names a market's contracts and whom the page asks. Take it from somebody whom you
        trust: contracts of others agree with their own file.
      </p>
      <p class="row">
        <label for="network-file">Pick a file</label>
        <input
          id="network-file"
          type="file"
          accept=".json"
          disabled={busy}
          onClick={anew}
          onChange={({ currentTarget }) => {
            const [picked] = currentTarget.files ?? [];
            if (picked !== undefined) void take(ofFile(picked));
          }}
        />
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void take(ofAddress(address, location));
        }}
      >
        <label for="network-address">or its address</label>
        <input id="network-address" type="text" class="mono" value={address} spellcheck={false} onInput={(event) => setAddress(event.currentTarget.value)} />
        <button type="submit" disabled={busy || address.trim() === ""}>
          Read it
        </button>
      </form>
      {error !== undefined && <Failure error={error} />}
      {file !== undefined && <Shown key={JSON.stringify(file.raw)} file={file} context={context} />}
    </section>
  );
}

function Shown({ file, context }: { readonly file: NetworkFile; readonly context: Context }) {
  const { network, barred } = reached(file, location);
  const [rpc, setRpc] = useState(network.rpc.join("\n"));
  const [gateways, setGateways] = useState(network.gateways.join("\n"));
  const chosen = read(() => asked(file, rpc, gateways));
  const consent = (chosen.value?.network.rpc ?? []).some((url) => needsConsent(url, location));
  return (
    <>
      <h3>{network.name}</h3>
      <dl id="network-shown">
        <dt>Chain</dt>
        <dd>{String(network.chainId)}</dd>
        <dt>Its first block</dt>
        <dd><Whole hex={network.genesisHash} /></dd>
        <dt>Paid in</dt>
        <dd>
          {network.asset.symbol} of {network.asset.decimals} decimals, {network.asset.address === null ? "the chain's own coin" : <Whole hex={network.asset.address} />}
        </dd>
        {Object.entries(network.contracts).map(([name, one]) => (
          <>
            <dt>{name}</dt>
            <dd><Whole hex={one} /></dd>
          </>
        ))}
      </dl>
      <p class="soft">
        Before anything is shown, the page compares token, decimals and the parameters of nodes with what the chain says. The symbol
        is the file's word.
      </p>
      {barred.length > 0 && (
        <p role="note">
          This page may not ask{" "}
          {barred.map((url, place) => (
            <span key={url}>
              {place > 0 && ", "}
              <Stranger text={url} />
            </span>
          ))}
          : a page asks https alone, and this machine.
        </p>
      )}
      <Lines id="network-rpc" label="RPCs, the first is asked first" value={rpc} change={setRpc} />
      <Lines id="network-gateways" label="Gateways" value={gateways} change={setGateways} />
      {consent && (
        <p role="note">
          An RPC of this machine is asked by a page from elsewhere only where your browser lets it: allow local access when it asks,
          or run <code>hearth web</code>.
        </p>
      )}
      {chosen.held !== "" && <p class="failure" role="alert">{chosen.held}</p>}
      <p class="row">
        <button type="button" disabled={chosen.value === undefined} onClick={() => chosen.value !== undefined && context.choose(pickMarket(chosen.value, location))}>
          Use this market
        </button>
      </p>
      <p class="soft">
        {sharedOrigin(location)
          ? "This address is shared with other sites: the choice lasts until the page is left, and nothing is signed."
          : "This browser keeps the choice until you forget it on the page About."}
      </p>
    </>
  );
}

function asked(file: NetworkFile, rpc: string, gateways: string): NetworkFile {
  const found = asking(file, rpc, gateways, location);
  if (found.network.rpc.length === 0) throw new HearthError("NO_RPC", "nobody is named who can be asked of the chain", "write the address of an RPC");
  return found;
}

interface LinesProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
}

function Lines({ id, label, value, change }: LinesProps) {
  return (
    <>
      <label for={id}>{label}, each in a line of its own</label>
      <textarea id={id} class="mono" rows={3} spellcheck={false} value={value} onInput={(event) => change(event.currentTarget.value)} />
    </>
  );
}
