// A small output as a table, and a column of numbers as a line. A program wrote it: its words are a stranger's.

import { useMemo, useState } from "preact/hooks";

import { counted } from "../../core/counted";
import { numbersOf, plotOf, type OutputTable as Read, outputTableOf } from "../../core/output-table";
import { shownLine } from "../../core/text";
import { Chart, HIGH } from "./chart";
import { Failure } from "./failure";
import { Stranger } from "./values";
import { Table } from "./table";

interface Props {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export function ShownTable({ path, bytes }: Props) {
  const [read, fault] = useMemo(() => tried(path, bytes), [path, bytes]);
  return (
    <section id="sheet" aria-label="A file as a table">
      <h3><Stranger text={path} most={200} /></h3>
      {read === undefined ? <Failure error={fault} /> : <Shown read={read} />}
    </section>
  );
}

function tried(path: string, bytes: Uint8Array): readonly [Read | undefined, unknown] {
  try {
    return [outputTableOf(path, bytes), undefined];
  } catch (error) {
    return [undefined, error];
  }
}

function Shown({ read }: { readonly read: Read }) {
  const { columns, rows, wide } = read;
  const [drawn, setDrawn] = useState<number>();
  const left = wide - columns.length;
  return (
    <>
      {rows.length > 1 && (
        <label>
          Draw{" "}
          <select value={drawn === undefined ? "" : String(drawn)} onChange={(event) => setDrawn(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}>
            <option value="">no column</option>
            {columns.map((name, at) => (
              <option key={at} value={String(at)}>
                {shownLine(name, 60)}
              </option>
            ))}
          </select>
        </label>
      )}
      {drawn !== undefined && <Drawn key={drawn} read={read} column={drawn} />}
      {left > 0 && <p role="note">{`${counted(left, "more column is", "more columns are")} not shown: save it to see all.`}</p>}
      <Table
        caption={`${counted(rows.length, "row")} of ${counted(wide, "column")}`}
        columns={[
          { head: "row", cell: (at: number) => at + 1, number: true },
          ...columns.map((name, column) => ({
            head: shownLine(name, 60),
            id: column,
            cell: (at: number) => <Stranger text={rows[at]?.[column] ?? ""} />,
          })),
        ]}
        rows={[...rows.keys()]}
        keyOf={String}
        none="It has no rows."
      />
    </>
  );
}

// Whether a column is one of numbers is asked of the one that is picked.
function Drawn({ read, column }: { readonly read: Read; readonly column: number }) {
  const numbers = useMemo(() => numbersOf(read, column), [read, column]);
  if (numbers !== undefined) return <Line read={read} column={column} numbers={numbers} />;
  return <p role="note">Not drawn: not all of this column are numbers, or fewer than two are.</p>;
}

interface LineProps {
  readonly read: Read;
  readonly column: number;
  readonly numbers: readonly (number | null)[];
}

function Line({ read, column, numbers }: LineProps) {
  const { rows, columns } = read;
  const { points, lowest, highest } = useMemo(() => plotOf(numbers), [numbers]);
  const name = shownLine(columns[column] ?? "", 60);
  const cell = (row: number): string => shownLine(rows[row]?.[column] ?? "", 40);
  return (
    <Chart
      title={`Column ${column + 1}`}
      says={
        <>
          <Stranger text={name} />, from <Stranger text={cell(lowest)} /> (row {lowest + 1}) to <Stranger text={cell(highest)} /> (row {highest + 1})
        </>
      }
      lines={[{ name, points: points.map(({ row, height }) => ({ x: row, high: Math.round(HIGH * height) })) }]}
      across={rows.length}
      top={cell(highest)}
      from="row 1"
      to={`row ${rows.length}`}
      table={
        <Table
          caption={`Column ${column + 1}, row by row`}
          columns={[
            { head: "row", cell: (at: number) => at + 1, number: true },
            { head: "value", cell: (at) => cell(at), number: true },
          ]}
          rows={[...numbers.keys()].filter((at) => numbers[at] !== null)}
          keyOf={String}
          none=""
        />
      }
    />
  );
}
