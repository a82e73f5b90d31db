// Whom the page asks of a market: its RPCs and gateways, as the network file names them or as its reader writes them.

import { useState } from "preact/hooks";

import { HearthError } from "../../core/errors";
import { asking, needsConsent, type NetworkFile } from "../../data/market";
import { sharedOrigin } from "../../data/origin";
import { read } from "./fields";

interface Props {
  // What the ids of its fields begin with.
  readonly id: string;
  readonly file: NetworkFile;
  readonly button: string;
  readonly choose: (chosen: NetworkFile) => void;
}

export function AskWhom({ id, file, button, choose }: Props) {
  const [rpc, setRpc] = useState(file.network.rpc.join("\n"));
  const [gateways, setGateways] = useState(file.network.gateways.join("\n"));
  const chosen = read(() => asked(file, rpc, gateways));
  const consent = (chosen.value?.network.rpc ?? []).some((url) => needsConsent(url, location));
  return (
    <>
      <Lines id={`${id}-rpc`} label="RPCs, the first is asked first" value={rpc} change={setRpc} />
      <Lines id={`${id}-gateways`} label="Gateways" value={gateways} change={setGateways} />
      {consent && (
        <p role="note">
          An RPC of this machine is asked by a page from elsewhere only where your browser lets it: allow local access when it asks,
          or run <code>hearth web</code>.
        </p>
      )}
      {chosen.held !== "" && <p class="failure" role="alert">{chosen.held}</p>}
      <p class="row">
        <button type="button" disabled={chosen.value === undefined} onClick={() => chosen.value !== undefined && choose(chosen.value)}>
          {button}
        </button>
      </p>
    </>
  );
}

// How long a choice stands.
export function Lasts() {
  return (
    <p class="soft">
      {sharedOrigin(location)
        ? "This address is shared with other sites: the choice lasts until the page is left, and nothing is signed."
        : "This browser keeps the choice until you forget it on the page About."}
    </p>
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
