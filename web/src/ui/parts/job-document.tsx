// The document that a job names, its job file as every worker reads it: fetched at its reader's word, and held against its digest.

import { useState } from "preact/hooks";

import { decode, type Json } from "../../core/canonical";
import { cidOfDigest } from "../../core/cid";
import { fromHex } from "../../core/bytes";
import { shown } from "../../core/text";
import type { Terms } from "../../core/types";
import { Blocks } from "../../data/blocks";
import { learnName } from "../../data/names";
import { useLoad } from "../load";
import type { Context } from "../context";
import { Button } from "./button";
import { Failure } from "./failure";
import { Stranger } from "./values";

interface Props {
  readonly context: Context;
  readonly terms: Terms;
  // Called once it was read: its name may be known now.
  readonly read: () => void;
}

export function JobDocument({ context, terms, read: done }: Props) {
  const [tries, setTries] = useState(0);
  const read = async (): Promise<Json> => {
    const blocks = new Blocks(context.opened, context.network?.gateways ?? []);
    // A block is hashed before anybody sees it, and this one's name is the digest of the terms.
    const document = await blocks.source(cidOfDigest(fromHex(terms.spec)));
    await learnName(terms.spec, document, location).catch(() => undefined);
    done();
    return decode(document);
  };
  const { value, error } = useLoad(tries === 0 ? undefined : read, terms.spec, [tries]);
  const name = typeof value === "object" && value !== null && "name" in value ? value["name"] : undefined;
  return (
    <>
      <h2>Its job file</h2>
      {value === undefined ? (
        <p>
          <Button busy={tries > 0 && error === undefined} onClick={() => setTries(tries + 1)}>
            Read its job file
          </Button>
        </p>
      ) : (
        <>
          <dl>
            <dt>Name</dt>
            <dd id="job-name">{typeof name === "string" ? <Stranger text={name} /> : "none"}</dd>
          </dl>
          <pre id="job-document">{shown(JSON.stringify(value, null, 2), 100_000)}</pre>
        </>
      )}
      {value === undefined && error !== undefined && <Failure error={error} />}
    </>
  );
}
