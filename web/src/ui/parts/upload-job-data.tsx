// What a job brings, put where workers find it, and looked for there block by block.

import { useState } from "preact/hooks";

import { counted } from "../../core/counted";
import { HearthError } from "../../core/errors";
import { carOfLoad, giversFor, type Load, putLoad, requireStored } from "../../data/job-data";
import { sharedOrigin } from "../../data/origin";
import { save } from "../../data/save";
import type { Context } from "../context";
import { Button } from "./button";
import { Failure } from "./failure";

interface Props {
  readonly context: Context;
  readonly load: Load | HearthError;
  readonly onThere: () => void;
}

export function UploadJobData({ context, load, onThere }: Props) {
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { opened, network } = context;
  const writable = opened.by === "hearth web" && opened.local.writable && !sharedOrigin(location);
  if (load instanceof HearthError) return <Failure error={load} />;

  const run = async (act: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await act();
    } catch (why) {
      setSaid("");
      setError(why);
    }
    setBusy(false);
  };
  const look = async (): Promise<void> => {
    const givers = giversFor(opened, network?.gateways ?? []);
    const count = await requireStored(load, givers, (blocks) => setSaid(`looking for its blocks: ${blocks} are there`));
    setSaid(`${count === 1 ? "Its one block is" : `All ${count} blocks are`} there, by ${givers.givers.map(({ name }) => name).join(", ")}.`);
    onThere();
  };
  const bring = async (): Promise<void> => {
    await putLoad(load, (src, { blocks }) => setSaid(`putting ${src}: ${counted(blocks, "block")}`));
    await look();
  };
  const car = async (): Promise<void> => {
    save(await carOfLoad(load), "job.car", "application/vnd.ipld.car");
    setSaid("saved job.car: hearth store import job.car brings it into a store");
  };
  return (
    <>
      <h2>Are its data there?</h2>
      <p>Its document, its program and its inputs, where workers look for them. Everything that is uploaded is public.</p>
      <p class="row">
        <Button busy={busy} disabled={!writable} onClick={() => void run(bring)}>
          Put it all into my store
        </Button>
        <Button busy={busy} onClick={() => void run(car)}>
          Save as CAR
        </Button>
        <Button busy={busy} onClick={() => void run(look)}>
          Look whether it is there
        </Button>
      </p>
      {!writable && (
        <p class="soft">
          This page may put nothing into a store: run <code>hearth web</code> and open the address that it prints, or save the CAR
          file and run <code>hearth store import job.car</code>.
        </p>
      )}
      <p role="status" id="there">{said}</p>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
