// A job in a table: a link to its page, which carries the block of its post, and the name that this browser knows.

import type { Hex } from "../../core/bytes";
import { hrefOf } from "../router";
import { short, Stranger } from "./values";

interface Props {
  readonly job: Hex;
  readonly block: number;
  readonly name?: string | undefined;
}

export function JobLink({ job, block, name }: Props) {
  return (
    <>
      <a href={hrefOf(["job", `${job}@${block}`])} title={job}>
        <code>{short(job)}</code>
      </a>
      {name !== undefined && <> <Stranger text={name} /></>}
    </>
  );
}
