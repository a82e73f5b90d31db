// Any field of the form of a job file: a single value, or a list or a mapping whose entries come and go.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { shownValue, typeAt, valueAt } from "../../core/job-form";
import type { Value, ValueMap } from "../../core/values";
import { Below, described, Faults, idOf, Leaf, type Props, Text } from "./job-controls";
import type { Field } from "./job-fields";
import { Stranger } from "./values";

export function Control(props: Props) {
  const { field, where } = props;
  const type = typeAt(where);
  if (field.items !== undefined) return <Items {...props} items={field.items} />;
  if (type.kind === "list") return <Texts {...props} />;
  if (type.kind === "map") return <Pairs {...props} />;
  return <Leaf {...props} />;
}

interface SetProps extends Props {
  readonly children: ComponentChildren;
}

function Several({ children, ...props }: SetProps) {
  const { desk, field, where } = props;
  return (
    <fieldset id={idOf(where)} {...described(desk, where, field.hint)} aria-invalid={undefined}>
      <legend>{field.label}</legend>
      {children}
      <Below {...props} />
    </fieldset>
  );
}

interface ButtonProps {
  readonly id?: string;
  readonly does: () => void;
  readonly children: ComponentChildren;
}

const Press = ({ id, does, children }: ButtonProps) => (
  <button type="button" id={id} onClick={does}>
    {children}
  </button>
);

// Once an entry is there, or gone, the keyboard goes on from it.
export const focusSoon = (id: string): void => {
  requestAnimationFrame(() => document.getElementById(id)?.focus());
};

const itemsOf = ({ desk, where }: Props): readonly Value[] => {
  const value = valueAt(desk.data, where);
  return Array.isArray(value) ? (value as readonly Value[]) : [];
};

function Texts(props: Props) {
  const { desk, field, where } = props;
  const items = itemsOf(props);
  const add = (): void => {
    desk.change([...where, items.length], "");
    focusSoon(idOf([...where, items.length]));
  };
  return (
    <Several {...props}>
      {items.map((item, at) => {
        const here = [...where, at];
        return (
          <p key={at} class="row">
            <Text id={idOf(here)} label={`${field.one} ${at + 1}`} value={shownValue(item)} about={described(desk, here, undefined)} change={(text) => desk.change(here, text)} />
            <Press does={() => { desk.change(here, undefined); focusSoon(`${idOf(where)}-add`); }}>Remove {field.one} {at + 1}</Press>
            <Faults desk={desk} where={here} />
          </p>
        );
      })}
      <p><Press id={`${idOf(where)}-add`} does={add}>Add {article(field.one)}</Press></p>
    </Several>
  );
}

function Items({ items: fields, ...props }: Props & { readonly items: readonly Field[] }) {
  const { desk, field, where } = props;
  const items = itemsOf(props);
  const [first] = fields;
  const add = (): void => {
    desk.change([...where, items.length], first === undefined ? new Map() : new Map([[String(first.where[0]), ""]]));
    if (first !== undefined) focusSoon(idOf([...where, items.length, ...first.where]));
  };
  return (
    <Several {...props}>
      {items.map((_, at) => {
        const here = [...where, at];
        return (
          <fieldset key={at} {...described(desk, here, undefined)} aria-invalid={undefined}>
            <legend>{field.one} {at + 1}</legend>
            <div class="fields">
              {fields.map((one) => (
                <Control key={one.where[0]} desk={desk} field={one} where={[...here, ...one.where]} />
              ))}
            </div>
            <Faults desk={desk} where={here} />
            <p><Press does={() => { desk.change(here, undefined); focusSoon(`${idOf(where)}-add`); }}>Remove {field.one} {at + 1}</Press></p>
          </fieldset>
        );
      })}
      <p><Press id={`${idOf(where)}-add`} does={add}>Add {article(field.one)}</Press></p>
    </Several>
  );
}

// Names stay as they were added: one that passed through another's while it is typed would take that one's place.
function Pairs(props: Props) {
  const { desk, field, where } = props;
  const [name, setName] = useState("");
  const value = valueAt(desk.data, where);
  const pairs = value instanceof Map ? [...(value as ValueMap)] : [];
  const twice = pairs.some(([key]) => key === name);
  const add = (): void => {
    if (name === "" || twice) return;
    desk.change([...where, name], "");
    setName("");
    focusSoon(idOf([...where, name]));
  };
  const id = `${idOf(where)}-name`;
  return (
    <Several {...props}>
      {pairs.map(([key, item]) => {
        const here = [...where, key];
        return (
          <p key={key} class="row">
            <label for={idOf(here)}><Stranger text={key} /></label>
            <Text id={idOf(here)} value={shownValue(item)} about={described(desk, here, undefined)} change={(text) => desk.change(here, text)} />
            <Press does={() => { desk.change(here, undefined); focusSoon(id); }}>Remove <Stranger text={key} /></Press>
            <Faults desk={desk} where={here} />
          </p>
        );
      })}
      <p class="row">
        <label for={id}>Name of {article(field.one)}</label>
        <input type="text" id={id} value={name} spellcheck={false} autocomplete="off" aria-describedby={twice ? `${id}-twice` : undefined} onInput={(event) => setName(event.currentTarget.value)} />
        <Press does={add}>Add {article(field.one)}</Press>
        {twice && <span class="fault" id={`${id}-twice`}>is there already</span>}
      </p>
    </Several>
  );
}

const article = (word = ""): string => `${/^[aeiou]/.test(word) ? "an" : "a"} ${word}`;
