// A job's units: each with its state, who may act on it next, and its leases.

import { useMemo } from "preact/hooks";

import type { MarketEvent } from "../../core/events";
import { type Attempt, type FoldedUnit, JobFold } from "../../core/job-from-events";
import type { Posted } from "../../core/posted";
import { outcomeLabel } from "../../core/sentences";
import { nextStep } from "../../core/steps";
import { unitLabel } from "../../core/state-labels";
import { endOf } from "../../core/node-leases";
import type { Unit } from "../../core/types";
import { untouched } from "../../core/view";
import type { WholeJob } from "../job";
import { hrefOf } from "../router";
import { State } from "./values";
import { Table } from "./table";

export function Units({ whole }: { readonly whole: WholeJob }) {
  const rest = untouched(whole.standing.view);
  return (
    <>
      <h2>Units</h2>
      <UnitRows
        whole={whole}
        caption={rest > 0 ? (rest === 1 ? "1 more waits to be taken" : `${rest} more wait to be taken`) : "Who may act next, and until when"}
        of={[...whole.standing.view.units.keys()]}
        none="Nobody has taken a unit yet."
      />
    </>
  );
}

interface UnitRowsProps {
  readonly whole: WholeJob;
  readonly caption: string;
  // Which of the touched units.
  readonly of: readonly number[];
  readonly none: string;
}

export function UnitRows({ whole, caption, of, none }: UnitRowsProps) {
  const { view, posted } = whole.standing;
  const attempts = useMemo(() => attemptsOf(posted, whole.events), [posted, whole.events]);
  return (
    <Table
      caption={caption}
      columns={[
        { head: "unit", cell: ([index]: readonly [number, Unit]) => index, number: true },
        { head: "state", cell: ([, unit]) => <State word={unitLabel(unit)} /> },
        { head: "outcome", cell: ([, unit]) => outcomeLabel(unit.outcome) },
        { head: "node", cell: ([, unit]) => (unit.node === 0 ? "" : <a href={hrefOf(["node", String(unit.node)])}>{unit.node}</a>), number: true },
        { head: "attempts", cell: ([index, unit]) => <Attempts count={unit.attempts} of={attempts[index]?.attempts ?? []} /> },
        { head: "next", cell: ([index]) => nextStep(view, index, whole.seen) },
      ]}
      rows={of.flatMap((index) => {
        const unit = view.units[index];
        return unit === undefined ? [] : [[index, unit] as const];
      })}
      keyOf={([index]) => String(index)}
      none={none}
    />
  );
}

// Each unit's leases, from their starts to what ended them, by the job's events.
function attemptsOf(posted: Posted, events: readonly MarketEvent[]): readonly FoldedUnit[] {
  // The second of its post is that of untouched units, which have no attempts.
  const fold = new JobFold(posted, 0);
  for (const event of events) fold.add(event);
  return fold.units;
}

function Attempts({ count, of }: { readonly count: number; readonly of: readonly Attempt[] }) {
  if (of.length < 2) return <>{count}</>;
  return (
    <details>
      <summary>{count}</summary>
      <ol>
        {of.map(({ number, node, end, resumedFrom }) => (
          <li key={number} value={number}>
            {`node ${node}`}
            {resumedFrom !== null && `, from the checkpoint of attempt ${resumedFrom}`}
            {end !== null && `: ${endOf(end) ?? ""}`}
          </li>
        ))}
      </ol>
    </details>
  );
}
