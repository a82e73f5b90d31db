// The units of an array at one look: a map of how each stands, how many stand so, and the one that its reader picks.

import { useMemo, useState } from "preact/hooks";

import { counted } from "../../core/counted";
import { MEANINGS } from "../../core/state-meanings";
import { leasesOf } from "../../core/types";
import { AT_ONCE, standsAt, tally, typedUnit, UNREAD, unitAt, type Window, windowAt } from "../../core/unit-map";
import type { WholeJob } from "../job";
import { colourOf, pathsOf, shapeOf, SQUARE } from "../unit-shapes";
import { Failure } from "./failure";
import { Table } from "./table";
import { UnitRows } from "./units";

// As wide as it is drawn, in pixels, where there is room.
const WIDEST = 800;

interface Props {
  readonly whole: WholeJob;
  readonly chosen: number | undefined;
  readonly choose: (unit: number) => void;
}

export function UnitMap(props: Props) {
  return leasesOf(props.whole.standing.view.terms) > 1 ? <Mapped {...props} /> : null;
}

function Mapped({ whole, chosen, choose }: Props) {
  const { view } = whole.standing;
  const leases = leasesOf(view.terms);
  const [start, setStart] = useState(0);
  const part = windowAt(leases, start);
  const counts = useMemo(() => [...tally(view)], [view]);
  const go = (index: number): void => {
    setStart(index - (index % AT_ONCE));
    choose(index);
  };
  const last = part.first + part.count - 1;
  return (
    <section aria-labelledby="unit-map">
      <h2 id="unit-map">Map of its units</h2>
      <Drawn whole={whole} part={part} chosen={chosen} choose={choose} />
      {leases > part.count && (
        <p class="row">
          <button type="button" disabled={start === 0} onClick={() => setStart(start - AT_ONCE)}>
            Units before
          </button>
          <span>{`units ${part.first} to ${last} of ${leases}`}</span>
          <button type="button" disabled={last === leases - 1} onClick={() => setStart(start + AT_ONCE)}>
            Units after
          </button>
        </p>
      )}
      <Table
        caption={`How its ${counted(leases, "unit")} stand`}
        columns={[
          { head: "state", cell: ([stands]: readonly [string, number]) => <Key stands={stands} /> },
          { head: "units", cell: ([, count]) => count, number: true },
          { head: "means", cell: ([stands]) => meaningOf(stands) },
        ]}
        rows={counts}
        keyOf={([stands]) => stands}
        none=""
      />
      <Picked whole={whole} leases={leases} chosen={chosen} choose={go} />
    </section>
  );
}

interface DrawnProps {
  readonly whole: WholeJob;
  readonly part: Window;
  readonly chosen: number | undefined;
  readonly choose: (unit: number) => void;
}

function Drawn({ whole, part, chosen, choose }: DrawnProps) {
  const { view } = whole.standing;
  const paths = useMemo(() => [...pathsOf(view, part)], [view, part.first]);
  const [width, height] = [SQUARE * part.columns, SQUARE * part.rows];
  const marked = chosen === undefined ? -1 : chosen - part.first;
  return (
    <svg
      class="units"
      width={Math.min(2 * width, WIDEST)}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label="Its units by state; the table and the field below say and do the same"
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const unit = unitAt(part, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
        if (unit !== undefined) choose(unit);
      }}
    >
      {paths.map(([stands, path]) => (
        <path key={stands} d={path} fill={colourOf(stands)} />
      ))}
      {marked >= 0 && marked < part.count && (
        <rect
          x={SQUARE * (marked % part.columns)}
          y={SQUARE * Math.floor(marked / part.columns)}
          width={SQUARE}
          height={SQUARE}
          fill="none"
          stroke="currentColor"
          stroke-width={1.5}
        />
      )}
    </svg>
  );
}

function Key({ stands }: { readonly stands: string }) {
  return (
    <>
      <svg width={16} height={16} viewBox={`0 0 ${SQUARE} ${SQUARE}`} aria-hidden="true">
        <path d={`M0 0${shapeOf(stands)}`} fill={colourOf(stands)} />
      </svg>{" "}
      {stands}
    </>
  );
}

interface PickedProps {
  readonly whole: WholeJob;
  readonly leases: number;
  readonly chosen: number | undefined;
  readonly choose: (unit: number) => void;
}

function Picked({ whole, leases, chosen, choose }: PickedProps) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<unknown>();
  const show = (written: string): void => {
    try {
      choose(typedUnit(written, leases));
      setFault(undefined);
    } catch (error) {
      setFault(error);
    }
  };
  return (
    <>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          show(text);
        }}
      >
        <label>
          Unit <input id="pick-unit" inputMode="numeric" size={8} value={text} placeholder={`0 to ${leases - 1}`} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Show this unit</button>
      </form>
      {fault !== undefined && <Failure error={fault} />}
      {chosen !== undefined && (
        <div id="picked">
          {chosen < whole.standing.view.units.length ? (
            <UnitRows whole={whole} caption={`Unit ${chosen}`} of={[chosen]} none="" />
          ) : (
            <p>{`Unit ${chosen}: ${standsAt(whole.standing.view, chosen)}, ${meaningOf(standsAt(whole.standing.view, chosen))}.`}</p>
          )}
        </div>
      )}
    </>
  );
}

const MEANS: ReadonlyMap<string, string> = new Map([...MEANINGS, [UNREAD, "somebody has touched it, and how it stands was not read"]]);

function meaningOf(stands: string): string {
  const [state = "", not] = stands === UNREAD ? [stands] : stands.split(", ");
  return `${MEANS.get(state) ?? ""}${not === undefined ? "" : "; the program failed"}`;
}
