// Who judges a job's results, until when, and what was said of them.

import { useMemo } from "preact/hooks";

import type { Standing } from "../../chain/jobs";
import { readConfirmations } from "../../chain/confirmed";
import type { Market } from "../../chain/market";
import type { MarketEvent } from "../../core/events";
import { type Confirmation, confirmationInWords, type JudgedUnit, judgedUnits } from "../../core/judged";
import { bond } from "../../core/money";
import { verification } from "../../core/steps";
import { unitLabel } from "../../core/state-labels";
import { ZERO_ADDRESS } from "../../generated/bounds";
import { STATE } from "../../generated/states";
import { useLoad } from "../load";
import { Amount, Moment, State, Whole } from "./values";
import { Table } from "./table";

interface Props {
  readonly market: Market;
  readonly standing: Standing;
  readonly events: readonly MarketEvent[];
}

export function Judged({ market, standing, events }: Props) {
  const { terms } = standing.posted;
  return terms.judge === ZERO_ADDRESS ? null : <Judge market={market} standing={standing} events={events} />;
}

function Judge({ market, standing, events }: Props) {
  const { posted, view } = standing;
  const { terms } = posted;
  const { asset, contracts } = market.network;
  const attested = terms.judge === contracts.Attesters;
  const units = useMemo(() => judgedUnits(view, events, asset), [view, events, asset]);
  const ruled = units.filter(({ tx }) => tx !== null).map(({ tx, index }) => `${index} ${tx}`).join();
  const { value: confirmed } = useLoad(
    attested && ruled !== "" ? () => readConfirmations(market, posted, units) : undefined,
    posted.jobId,
    [ruled],
  );
  const known = [...(confirmed?.values() ?? [])][0];
  return (
    <section aria-labelledby="judge">
      <h2 id="judge">Judge and verdict</h2>
      <dl>
        <dt>Judge</dt>
        <dd>{attested ? "signatures of attesters, taken by " : ""}<Whole hex={terms.judge} /></dd>
        <dt>Verification</dt>
        <dd>{verification(terms, contracts.Attesters)}</dd>
        {attested && (
          <>
            <dt>Signatures needed</dt>
            <dd id="needed">
              {known === undefined
                ? "not known yet: the chain holds only a digest of the set, its submitter has the file"
                : `${known.quorum} of ${known.keys.length} attesters, as a confirmation shows whose set has this digest`}
            </dd>
          </>
        )}
        <dt>Bond of a lease</dt>
        <dd><Amount value={bond(terms, view.policy)} asset={asset} /></dd>
      </dl>
      {known !== undefined && (
        <details>
          <summary>The attesters</summary>
          <ul>{known.keys.map((key) => <li key={key}><Whole hex={key} /></li>)}</ul>
        </details>
      )}
      <Table
        caption="Results, and what was said of them"
        columns={[
          { head: "unit", cell: ({ index }: JudgedUnit) => index, number: true },
          { head: "state", cell: ({ unit }) => <State word={unitLabel(unit)} /> },
          { head: "judged until", cell: ({ until }) => (until === null ? "it is over" : <Moment at={until} now={view.now} />) },
          { head: "verdict", cell: (unit) => verdictIn(unit, confirmed?.get(unit.index)) },
          { head: "result", cell: ({ result }) => (result === null ? "" : <code>{result}</code>) },
        ]}
        rows={units}
        keyOf={({ index }) => String(index)}
        none="There is no result to judge yet."
      />
    </section>
  );
}

const verdictIn = ({ said, unit }: JudgedUnit, confirmed: Confirmation | undefined): string => {
  const open = unit.state === STATE.SUBMITTED || unit.state === STATE.DISPUTED;
  if (said === "") return open ? "none yet" : "none was given";
  return confirmed === undefined ? said : `${said}; ${confirmationInWords(confirmed)}`;
};
