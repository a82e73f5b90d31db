// What a job came to, whose it is, and until when: what its page says first.

import type { Network } from "../../core/network";
import type { Posted } from "../../core/posted";
import { verification } from "../../core/steps";
import { countedLabels } from "../../core/state-labels";
import { isFinished, tallyOf, labelOf } from "../../core/view";
import type { WholeJob } from "../job";
import { hrefOf } from "../router";
import { Moment, State, Whole } from "./values";

// Where its job file is opened to be changed and posted anew.
export function RerunLink({ posted }: { readonly posted: Posted }) {
  return <p><a href={hrefOf(["submit", `${posted.jobId}@${posted.log.blockNumber}`])}>Rerun with changes</a></p>;
}

interface HeadProps {
  readonly whole: WholeJob;
  readonly network: Network;
  readonly now: number;
}

export function Head({ whole, network, now }: HeadProps) {
  const { view, posted } = whole.standing;
  const { Attesters } = network.contracts;
  const tally = tallyOf(view);
  return (
    <>
      <p>
        <State {...labelOf(view)} />
        {tally.size > 1 && `: ${countedLabels(tally)}`}
      </p>
      {whole.seen.waits && <p>{whole.seen.waits}</p>}
      <dl>
        <dt>Submitter</dt>
        <dd>
          <a href={hrefOf(["jobs"], new Map([["submitter", posted.terms.submitter]]))}>
            <Whole hex={posted.terms.submitter} />
          </a>
        </dd>
        <dt>Deadline</dt>
        <dd><Moment at={posted.terms.deadline} now={isFinished(view) ? undefined : now} /></dd>
        <dt>Checked by</dt>
        <dd>{verification(posted.terms, Attesters)}</dd>
      </dl>
      <RerunLink posted={posted} />
    </>
  );
}
