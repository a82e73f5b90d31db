// What the words for states mean, where they stand.

import { Fragment } from "preact";

import { MEANINGS } from "../../core/state-meanings";
import { iconOf } from "./values";

export function Legend() {
  return (
    <details id="legend">
      <summary>What the states mean</summary>
      <dl>
        {[...MEANINGS].map(([state, means]) => (
          <Fragment key={state}>
            <dt>
              <span aria-hidden="true">{iconOf(state)}</span> {state}
            </dt>
            <dd>{means}</dd>
          </Fragment>
        ))}
      </dl>
    </details>
  );
}
