// A market by its network file, at the reader's word: shown whole before it is taken.

import { Fragment } from "preact";
import { useState } from "preact/hooks";

import { type NetworkFile, ofAddress, ofFile, pickMarket, reached } from "../../data/market";
import type { Context } from "../context";
import { clearFileField } from "./clear-file-field";
import { AskWhom, Lasts } from "./ask-whom";
import { Failure } from "./failure";
import { Stranger, Whole } from "./values";

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
          onClick={clearFileField}
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
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd><Whole hex={one} /></dd>
          </Fragment>
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
      <AskWhom id="network" file={{ ...file, network }} button="Use this market" choose={(chosen) => context.choose(pickMarket(chosen, location))} />
      <Lasts />
    </>
  );
}
