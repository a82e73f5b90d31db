// The form of a job file, beside its text. The text is the one source: a form is read from it, and a change in the form writes it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { dumpValues } from "../../core/dump";
import { HearthError } from "../../core/errors";
import { faultsOf, readForm, sourceWord, valueAt, withSource, withValue } from "../../core/job-form";
import { fieldName, type Location } from "../../core/problems";
import { shown } from "../../core/text";
import type { Value, ValueMap } from "../../core/values";
import { nameSource } from "../../data/job-data";
import { fromInput } from "../../data/picked-files";
import { Failure } from "./failure";
import { type Desk, Faults, idOf } from "./job-controls";
import { type Field, type Group, GROUPS } from "./job-fields";
import type { JobFile } from "./job-file";
import { Control, focusSoon } from "./job-lists";

interface Props {
  readonly file: JobFile;
  // What the file was refused for.
  readonly errors: readonly unknown[];
}

// What the form shows was read from this text; `why` says why a newer one has none.
interface Held {
  readonly text: string;
  readonly data: ValueMap;
  readonly why: unknown;
}

export function JobForm({ file, errors }: Props) {
  const { text } = file;
  const faults = useMemo(() => faultsOf(errors), [errors]);
  const [held, setHeld] = useState<Held>({ text: "", data: new Map(), why: undefined });
  const [before, setBefore] = useState<string>();
  const [failed, setFailed] = useState<unknown>();
  // What was written last, here or in the text: what is read of an older one comes too late, and would take back what was typed since.
  const [newest, given] = [useRef(text), useRef(text)];
  if (given.current !== text) given.current = newest.current = text;
  useEffect(() => {
    // What this form wrote it need not read.
    if (held.text === text) return;
    const take = (next: (last: Held) => Held): void => {
      if (newest.current === text) setHeld(next);
    };
    readForm(text).then(
      ({ data }) => take(() => ({ text, data, why: undefined })),
      (why: unknown) => take((last) => ({ text, data: last.data, why })),
    );
  }, [text]);
  // Until a text was read, a change would be one of the text before it; while the first one is, nothing can be changed.
  const open = held.text === text && held.why === undefined;
  const plain = text.trim() === "" || dumpValues(held.data) === text;
  const change = (where: Location, value: Value | undefined): void => write(withValue(held.data, where, value));
  const write = (changed: ValueMap): void => {
    if (!open) return;
    const data: ValueMap = changed.has("version") ? changed : new Map<string, Value>([["version", 1n], ...changed]);
    const written = dumpValues(data);
    if (!plain) setBefore(text);
    newest.current = written;
    setHeld({ text: written, data, why: undefined });
    file.setText(written);
  };
  const pick = (where: Location, files: readonly File[]): void => {
    const [first] = files;
    if (first === undefined || !open) return;
    const picked = (first.webkitRelativePath.split("/")[0] ?? "") || first.name;
    const src = sourceWord(held.data, where, picked, file.named);
    const changed = withSource(held.data, where, src, picked);
    if (dumpValues(changed) !== dumpValues(held.data)) write(changed);
    file.pick(src, nameSource(fromInput(files), fieldName(where) === "workdir")).then(() => setFailed(undefined), setFailed);
  };
  const desk: Desk = { data: held.data, faults, change, pick };
  return (
    <fieldset id="job-form" aria-busy={held.text !== text} disabled={held.text === text ? held.why !== undefined : held.text === ""}>
      <legend><h2>The job as a form</h2></legend>
      {held.why !== undefined && held.text === text && (
        <p class="fault" id="form-closed">
          The form is closed, and shows what the text said before: {reasonOf(held.why)}
        </p>
      )}
      {open && !plain && <p class="hint">What you change here writes the text anew: its comments and its layout are lost.</p>}
      {before !== undefined && (
        <p>
          <button type="button" onClick={() => { file.setText(before); setBefore(undefined); focusSoon("job-file"); }}>
            Back to the text as it was before the form
          </button>
        </p>
      )}
      {failed !== undefined && <Failure error={failed} />}
      {GROUPS.map((group) => (
        <Fields key={group.title} group={group} desk={desk} />
      ))}
    </fieldset>
  );
}

function Fields({ group, desk }: { readonly group: Group; readonly desk: Desk }) {
  const { title, common, rare } = group;
  const around = [...new Set([...common, ...rare].flatMap(({ where }) => where.slice(0, -1).map((_, at) => fieldName(where.slice(0, at + 1)))))];
  const wrong = around.filter((name) => desk.faults.has(name)).map((name) => `${idOf([name])}-fault`);
  return (
    <section aria-label={title} aria-describedby={wrong.length === 0 ? undefined : wrong.join(" ")}>
      <h3>{title}</h3>
      {around.map((name) => (
        <Faults key={name} desk={desk} where={[name]} />
      ))}
      {common.length > 0 && <Controls fields={common} desk={desk} />}
      {rare.length > 0 && <Rare key={title} fields={rare} desk={desk} only={common.length === 0} />}
    </section>
  );
}

const Controls = ({ fields, desk }: { readonly fields: readonly Field[]; readonly desk: Desk }) => (
  <div class="fields">
    {fields.map((one) => (
      <Control key={fieldName(one.where)} desk={desk} field={one} where={one.where} />
    ))}
  </div>
);

// Rare fields are there unasked where the file says something of them, or something is wrong with one.
function Rare({ fields, desk, only }: { readonly fields: readonly Field[]; readonly desk: Desk; readonly only: boolean }) {
  const names = fields.map(({ where }) => fieldName(where));
  const wrong = names.some((name) => [...desk.faults.keys()].some((fault) => fault === name || fault.startsWith(`${name}.`) || fault.startsWith(`${name}[`)));
  const said = fields.some(({ where }) => valueAt(desk.data, where) !== undefined);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (wrong || said) setOpen(true);
  }, [wrong, said]);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{only ? "Rarely needed" : "More, rarely needed"}</summary>
      <Controls fields={fields} desk={desk} />
    </details>
  );
}

const reasonOf = (why: unknown): string => shown(why instanceof HearthError ? why.message : "it cannot be read", 500);
