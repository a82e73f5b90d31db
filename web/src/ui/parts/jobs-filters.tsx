// Which jobs of a list are shown: by state, by submitter, by the name that this browser knows. The address of the page says it.

import { useEffect, useState } from "preact/hooks";

import { type Standing, stateOfStanding as stateOf } from "../../chain/jobs";
import { addressOf } from "../../core/recipient";
import { shownLine } from "../../core/text";
import { STATE_NAMES } from "../../core/types";
import { labelled } from "../../data/addresses";
import { hrefOf } from "../router";
import type { Names } from "../use-names";

const MINE = "mine";
// A job's name is no longer.
const LONGEST = 64;
const ASKED = ["state", "submitter", "name"] as const;

type Asked = Readonly<Record<(typeof ASKED)[number], string>>;

const STATES: readonly string[] = ["", ...STATE_NAMES, "ended"];

// Read them from an address, which anybody may have written: nothing of it filters without being seen.
export function askedIn(query: ReadonlyMap<string, string>): Asked {
  const state = query.get("state") ?? "";
  return {
    state: STATES.includes(state) ? state : "",
    submitter: query.get("submitter") ?? "",
    name: shownLine((query.get("name") ?? "").trim(), LONGEST),
  };
}

// Return what says whether a job is one of those. Throws BAD_ADDRESS for a submitter that is no address.
export function filterOf({ state, submitter, name }: Asked, names: Names): (one: Standing) => boolean {
  const of = submitter === MINE ? labelled(location).map(({ address }) => address) : submitter.trim() === "" ? undefined : [addressOf(submitter.trim())];
  const part = name.toLowerCase();
  return (one) => {
    const { spec, submitter: by } = one.posted.terms;
    return (state === "" || stateOf(one) === state) && (of === undefined || of.includes(by)) && (part === "" || (names?.get(spec) ?? "").toLowerCase().includes(part));
  };
}

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
      <label>
        State{" "}
        <select value={asked.state} onChange={(event) => go({ state: event.currentTarget.value })}>
          {STATES.map((one) => (
            <option key={one} value={one}>
              {one === "" ? "any" : one}
            </option>
          ))}
        </select>
      </label>
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
