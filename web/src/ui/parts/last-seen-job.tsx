// A job as this page saw it last, where no provider answers: how it stood, its terms in short, its units, what had happened.
// What hangs on the chain as it is now is left out: whose turn it is, what may be done, what it was paid.

import { useMemo } from "preact/hooks";

import type { Standing } from "../../chain/jobs";
import { labelOfStanding } from "../../chain/jobs";
import type { LastSeen } from "../../chain/last-seen";
import { fromHex } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { Strays } from "../../core/logs";
import { escrowAtPost } from "../../core/money";
import type { Network } from "../../core/network";
import { eventsIn } from "../../core/posted";
import { eventFacts, outcomeLabel } from "../../core/sentences";
import { unitLabel } from "../../core/state-labels";
import { LastSeenNote } from "./last-seen-note";
import { Amount, Moment, State, Stranger, Whole } from "./values";
import { Table } from "./table";

interface Props {
  readonly last: LastSeen;
  readonly standing: Standing;
  readonly network: Network;
}

export function LastSeenJob({ last, standing, network }: Props) {
  const { posted, view } = standing;
  const events = useMemo(() => [...eventsIn(last.events, network, new Strays())], [last]);
  return (
    <>
      <LastSeenNote last={last} />
      <p>
        <State {...labelOfStanding(standing)} />
      </p>
      <dl>
        <dt>Submitter</dt>
        <dd>
          <Whole hex={posted.terms.submitter} />
        </dd>
        <dt>Deadline</dt>
        <dd>
          <Moment at={posted.terms.deadline} />
        </dd>
        <dt>spec</dt>
        <dd class="mono">{String(cidOfDigest(fromHex(posted.terms.spec)))}</dd>
        <dt>at most</dt>
        <dd>
          <Amount value={escrowAtPost(posted.terms)} asset={network.asset} />
        </dd>
      </dl>
      {events.length > 0 && (
        <>
          <h2>Timeline</h2>
          <ol class="timeline">
            {events.map((event) => (
              <li key={`${event.log.blockHash}${event.log.txHash}${event.log.logIndex}`}>
                <span class="soft">block {event.log.blockNumber}</span> <Stranger text={eventFacts(event, network.asset).text} most={1_000} />
              </li>
            ))}
          </ol>
        </>
      )}
      <h2>Units</h2>
      <Table
        caption="As they stood then"
        columns={[
          { head: "unit", cell: (index: number) => index, number: true },
          { head: "state", cell: (index) => <State word={view.units[index] === undefined ? "" : unitLabel(view.units[index])} /> },
          { head: "outcome", cell: (index) => outcomeLabel(view.units[index]?.outcome ?? 0) },
          { head: "node", cell: (index) => view.units[index]?.node || "", number: true },
        ]}
        rows={view.units.map((_, index) => index)}
        keyOf={String}
        none="Nobody had taken a unit yet."
      />
    </>
  );
}
