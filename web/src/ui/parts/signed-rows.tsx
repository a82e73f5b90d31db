// Names and values that are signed, each whole.

import { Fragment } from "preact";

import { MOST_TEXT } from "../../core/prepared";
import { Stranger } from "./values";

export function SignedRows({ id, rows }: { readonly id: string; readonly rows: readonly (readonly [string, string])[] }) {
  return (
    <dl id={id}>
      {rows.map(([name, value], place) => (
        <Fragment key={place}>
          <dt>{name}</dt>
          <dd><Stranger text={value} most={MOST_TEXT} /></dd>
        </Fragment>
      ))}
    </dl>
  );
}
