// The job file of a posted job, put into the editor: at its reader's word where a draft stands there.

import { useEffect, useState } from "preact/hooks";

import { Jobs as Reader } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { fromHex } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { HearthError } from "../../core/errors";
import type { Network } from "../../core/network";
import { givesWay, jobTextOf, type JobText } from "../../core/rerun";
import { Blocks } from "../../data/blocks";
import { jobAddress } from "../job-address";
import { useLoad } from "../load";
import type { Context } from "../context";
import { hrefOf, useRoute } from "../router";
import { TEXTS } from "../texts";
import { Failure } from "./failure";
import type { JobFile } from "./job-file";
import { Whole } from "./values";

interface Props {
  readonly context: Context;
  readonly network: Network;
  readonly file: JobFile;
}

export function Rerun({ context, network, file }: Props) {
  const { live, opened } = context;
  const { parts } = useRoute();
  const address = jobAddress(parts[1]);
  const job = address?.job;
  const ready = live.state === "ready" ? live : undefined;
  // The job that was put into the editor: once is enough, whatever becomes of the text.
  const [taken, setTaken] = useState<Hex>();
  const read = async (): Promise<JobText> => {
    if (ready === undefined || job === undefined) throw new TypeError("there is nothing to read");
    const { market, head } = ready;
    const { terms, log } = await new Reader(market).find(job, head, address?.block);
    const { times } = await market.about([log.blockHash], []);
    // A block is hashed before anybody sees it, and this one's name is the digest of the terms.
    const document = await new Blocks(opened, network.gateways).source(cidOfDigest(fromHex(terms.spec)));
    const { asset, contracts } = network;
    return jobTextOf(document, { terms, posted: times.get(log.blockHash) ?? head.time, asset, attesters: contracts.Attesters });
  };
  const { value, error } = useLoad(ready === undefined || job === undefined ? undefined : read, job ?? "", [ready?.market, ready?.epoch], ready?.seen);
  useEffect(() => {
    if (value === undefined || taken === job || !givesWay(file.text, value.text)) return;
    // Nobody asked for it but a link.
    if (file.text !== value.text) file.lend(value.text);
    setTaken(job);
  }, [value, taken, job, file.text]);
  if (job === undefined) return <Failure error={new HearthError("BAD_ID", "a job's id is 0x and 64 hex digits", "look at the list of jobs")} />;
  const link = <a href={hrefOf(["job", parts[1] ?? job])}><Whole hex={job} /></a>;
  return (
    <div role="status" id="rerun">
      {error !== undefined && <Failure error={error} />}
      {value === undefined && error === undefined && <p>{TEXTS.nothingYet}</p>}
      {value !== undefined && taken === job && (
        <>
          <p>This is the file of job {link}. What is posted from it is a new job, which costs anew.</p>
          {value.notes.map((note) => (
            <p key={note} class="note">{note}</p>
          ))}
        </>
      )}
      {value !== undefined && taken !== job && (
        <p>
          A draft of yours stands below.{" "}
          <button type="button" onClick={() => { file.begin(value.text); setTaken(job); }}>
            Put the file of the job in its place
          </button>{" "}
          {link}
        </p>
      )}
    </div>
  );
}
