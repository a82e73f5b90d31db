// What a list of jobs is narrowed by: state, submitter, the name that this browser knows.

import { useEffect, useState } from "preact/hooks";

import { labelled } from "../../data/addresses";
import { ASKED, type Asked, MINE, STATES } from "../jobs-asked";
import { hrefOf } from "../router";
import { Choice } from "./choice";

export function Filters({ asked }: { readonly asked: Asked }) {
  const [submitter, setSubmitter] = useState("");
  const [name, setName] = useState("");
  useEffect(() => setSubmitter(asked.submitter === MINE ? "" : asked.submitter), [asked.submitter]);
  useEffect(() => setName(asked.name), [asked.name]);
  // What stands in the boxes is asked for with whatever is changed beside them.
  const go = (changed: Partial<Asked>): void => {
    const typed = { name: name.trim(), submitter: submitter.trim() || (asked.submitter === MINE ? MINE : "") };
    const query = { ...asked, ...typed, ...changed };
    location.hash = hrefOf(["jobs"], new Map(ASKED.map((one) => [one, query[one]] as const).filter(([, value]) => value !== "")));
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        go({});
      }}
    >
      <Choice name="State" none="any" words={STATES} value={asked.state} pick={(state) => go({ state })} />
      <label>
        Submitter{" "}
        <input type="text" value={submitter} placeholder="0x…" spellcheck={false} onInput={(event) => setSubmitter(event.currentTarget.value)} />
      </label>
      <label title="Of the jobs whose name this browser knows: it posted them, or has read their job file">
        Name{" "}
        <input type="text" value={name} spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <button type="submit">Filter</button>
      {(asked.submitter === MINE || labelled(location).length > 0) && (
        <label>
          <input type="checkbox" checked={asked.submitter === MINE} onChange={(event) => go({ submitter: event.currentTarget.checked ? MINE : "" })} /> of my
          addresses
        </label>
      )}
    </form>
  );
}
