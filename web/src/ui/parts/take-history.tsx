// A market's past from a file, at the reader's word: it is compared with the chain here, and then kept as what earlier visits read.

import { useState } from "preact/hooks";

import { type Compared, compareHistory, provedBy } from "../../chain/compare-history";
import { counted } from "../../core/counted";
import type { HistoryFile } from "../../core/history-file";
import { Blocks } from "../../data/blocks";
import { fromFile, fromPlace } from "../../data/open-history";
import type { Context } from "../context";
import { Failure } from "./failure";

type Taking =
  | { readonly state: "idle" }
  | { readonly state: "busy"; readonly what: string }
  | { readonly state: "done"; readonly history: HistoryFile; readonly compared: Compared; readonly kept: number }
  | { readonly state: "failed"; readonly error: unknown };

export function TakeHistory({ context }: { readonly context: Context }) {
  const [place, setPlace] = useState("");
  const [taking, setTaking] = useState<Taking>({ state: "idle" });
  const { live, network, opened } = context;
  if (live.state !== "ready" || network === undefined) return null;
  const { market } = live;
  const run = async (read: () => Promise<HistoryFile>): Promise<void> => {
    setTaking({ state: "busy", what: "reading the file" });
    try {
      const history = await read();
      const compared = await compareHistory(market, history, (block) => setTaking({ state: "busy", what: `compared up to block ${block}` }));
      setTaking({ state: "done", history, compared, kept: await market.past.take(provedBy(network), compared.parts, history.last) });
    } catch (error) {
      setTaking({ state: "failed", error });
    }
  };
  const busy = taking.state === "busy";
  return (
    <section aria-labelledby="snapshot">
      <h2 id="snapshot">Begin from a snapshot</h2>
      <p>
        A file of <code>hearth net snapshot</code> saves most requests of a first visit to an old market. Whoever gives it to you is not
        believed: where it leaves jobs, units, locks and credits is compared with the chain before anything of it is kept, and
        what happened in between by sample. Of other contracts than Escrow and JobRegistry nothing is taken.
      </p>
      <p class="row">
        <label for="snapshot-file">Pick a file</label>
        <input
          id="snapshot-file"
          type="file"
          disabled={busy}
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? [];
            if (file !== undefined) void run(() => fromFile(file, network));
            currentTarget.value = "";
          }}
        />
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => fromPlace(place.trim(), new Blocks(opened, network.gateways), network));
        }}
      >
        <label for="snapshot-place">or its CID, or an address</label>
        <input id="snapshot-place" type="text" class="mono" value={place} spellcheck={false} onInput={(event) => setPlace(event.currentTarget.value)} />
        <button type="submit" disabled={busy || place.trim() === ""}>
          Fetch and compare
        </button>
      </form>
      <div role="status">
        {taking.state === "busy" && <p>{`${taking.what}…`}</p>}
        {taking.state === "done" && <Said {...taking} />}
      </div>
      {taking.state === "failed" && <Failure error={taking.error} />}
    </section>
  );
}

function Said({ history, compared, kept }: { readonly history: HistoryFile; readonly compared: Compared; readonly kept: number }) {
  const { last, malformed } = history;
  const { verdict, parts, blocks, drawn, range, stretched } = compared;
  const logs = parts.reduce((sum, part) => sum + part.logs.length, 0);
  return (
    <>
      <p class="good">
        {`It agrees with the chain at block ${verdict.at.number} in how it leaves ${counted(verdict.jobs, "job")}, and every lock, credit, unit and stake.`}
      </p>
      <p>
        {`What happened before was compared by sample: the RPC has the same logs of ${drawn} of its ${counted(blocks, "block")} with logs, and of ` +
          `${stretched} of all its ${counted(range, "block")}, drawn by chance. An event elsewhere that was made up, or left out, and changed nothing in the end is not found.`}
      </p>
      <p>
        {kept === 0
          ? "This browser keeps nothing of it: the next reading asks the chain again."
          : `${counted(logs, "log")} of Escrow and JobRegistry up to block ${last.number} are in the file; of ${kept} blocks these are not asked for any more.`}
      </p>
      {malformed > 0 && <p>{`${malformed} lines of it are none of this form, and were left out: their blocks were read from the chain.`}</p>}
    </>
  );
}
