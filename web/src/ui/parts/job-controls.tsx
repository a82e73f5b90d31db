// The controls of single values in the form of a job file, each by the type of its field.

import { useState } from "preact/hooks";

import { leftOut, shownValue, typeAt, typedValue, valueAt } from "../../core/job-form";
import { fieldName, type Location } from "../../core/problems";
import { shown } from "../../core/text";
import type { Value, ValueMap } from "../../core/values";
import { clearFileField } from "./clear-file-field";
import type { Field } from "./job-fields";
import { Stranger } from "./values";

// What the controls share: the values, how one is changed, what is wrong with each by its name.
export interface Desk {
  readonly data: ValueMap;
  readonly faults: ReadonlyMap<string, readonly string[]>;
  change(where: Location, value: Value | undefined): void;
  pick(where: Location, files: readonly File[]): void;
}

export interface Props {
  readonly desk: Desk;
  readonly field: Field;
  readonly where: Location;
}

// No space may stand in an id.
export const idOf = (where: Location): string =>
  ["form", ...where].map((part) => String(part).replace(/[^A-Za-z0-9_.]/g, (one) => `-${one.charCodeAt(0)}-`)).join("-");

export function Faults({ desk, where }: { readonly desk: Desk; readonly where: Location }) {
  const faults = desk.faults.get(fieldName(where)) ?? [];
  if (faults.length === 0) return null;
  return (
    <span class="fault" id={`${idOf(where)}-fault`}>
      {faults.map((one) => (
        <span key={one}>
          <Stranger text={one} most={500} />{" "}
        </span>
      ))}
    </span>
  );
}

// What describes a control, and whether it is wrong.
export function described(desk: Desk, where: Location, hint: string | undefined) {
  const wrong = desk.faults.has(fieldName(where));
  const by = [...(wrong ? [`${idOf(where)}-fault`] : []), ...(hint === undefined ? [] : [`${idOf(where)}-hint`])].join(" ");
  return { "aria-describedby": by === "" ? undefined : by, "aria-invalid": wrong ? ("true" as const) : undefined };
}

export function Below({ desk, field, where }: Props) {
  return (
    <>
      {field.hint !== undefined && <span class="hint" id={`${idOf(where)}-hint`}>{field.hint}</span>} <Faults desk={desk} where={where} />
    </>
  );
}

export function Leaf(props: Props) {
  const { desk, field, where } = props;
  const type = typeAt(where);
  const id = idOf(where);
  const value = valueAt(desk.data, where);
  const about = described(desk, where, field.hint);
  if (type.kind === "bool") return <Tick {...props} />;
  const words = field.choices ?? (type.kind === "word" ? type.words : undefined);
  return (
    <p>
      <label for={id}>{field.label}</label>{" "}
      {words === undefined ? (
        <Text id={id} value={shownValue(value)} about={about} placeholder={leftOut(desk.data, where)} numeric={type.kind === "whole"} change={(text) => desk.change(where, typedValue(text, type))} />
      ) : (
        <Choice id={id} value={shownValue(value)} about={about} words={words} otherwise={leftOut(desk.data, where)} change={(text) => desk.change(where, typedValue(text, type))} />
      )}
      <Picks {...props} />
      <Below {...props} />
    </p>
  );
}

interface TextProps {
  readonly id: string;
  readonly label?: string;
  readonly value: string;
  readonly about: ReturnType<typeof described>;
  readonly placeholder?: string;
  readonly numeric?: boolean;
  readonly change: (text: string) => void;
}

// An input drops the ends of lines, so that a text of several lines stands in another control.
export function Text({ id, label, value, about, placeholder = "", numeric = false, change }: TextProps) {
  const [lines] = useState(() => /[\r\n]/.test(value));
  const props = { id, value, spellcheck: false, autocomplete: "off", "aria-label": label, ...about };
  const seen = shown(value, Infinity);
  // Nobody changes what he does not see; in the text it stands by its number.
  if (seen !== value) return <input type="text" {...props} value={seen} readOnly title="It holds characters that hide or move text: change it in the text." />;
  if (lines || /[\r\n]/.test(value)) return <textarea rows={3} {...props} onInput={(event) => change(event.currentTarget.value)} />;
  return <input type="text" inputMode={numeric ? "numeric" : undefined} placeholder={placeholder} {...props} onInput={(event) => change(event.currentTarget.value)} />;
}

interface ChoiceProps {
  readonly id: string;
  readonly value: string;
  readonly about: ReturnType<typeof described>;
  readonly words: readonly string[];
  readonly otherwise: string;
  readonly change: (text: string) => void;
}

function Choice({ id, value, about, words, otherwise, change }: ChoiceProps) {
  const all = value === "" || words.includes(value) ? words : [value, ...words];
  return (
    <select id={id} value={value} {...about} onChange={(event) => change(event.currentTarget.value)}>
      <option value="">{otherwise === "" ? "left out" : `left out: ${otherwise}`}</option>
      {all.map((word) => (
        <option key={word} value={word}>
          {word}
        </option>
      ))}
    </select>
  );
}

function Tick(props: Props) {
  const { desk, field, where } = props;
  const value = valueAt(desk.data, where) ?? leftOut(desk.data, where) === "true";
  const otherwise = leftOut(desk.data, where) === "true";
  if (typeof value !== "boolean") return <p>{field.label}: <Stranger text={shownValue(value)} /> <Below {...props} /></p>;
  return (
    <p>
      <label>
        <input
          id={idOf(where)}
          type="checkbox"
          checked={value}
          {...described(desk, where, field.hint)}
          onChange={({ currentTarget: { checked } }) => desk.change(where, checked === otherwise ? undefined : checked)}
        />{" "}
        {field.label}
      </label>{" "}
      <Below {...props} />
    </p>
  );
}

function Picks({ desk, field, where }: Props) {
  const one = (what: string, folder: boolean) => (
    <label class="row">
      {what}{" "}
      <input
        type="file"
        aria-label={`${field.label}: ${what}`}
        {...(folder ? { webkitdirectory: true } : {})}
        onClick={clearFileField}
        onChange={(event) => desk.pick(where, [...(event.currentTarget.files ?? [])])}
      />
    </label>
  );
  return (
    <>
      {(field.picks === "file" || field.picks === "either") && one("pick a file", false)}
      {(field.picks === "folder" || field.picks === "either") && one("pick a folder", true)}
    </>
  );
}
