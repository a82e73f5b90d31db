// Which jobs of a list are shown: by state, by submitter, by the name that this browser knows. The address of the page says it.

import { useEffect, useState } from "preact/hooks";

import { type Standing, stateOfStanding as stateOf } from "../../chain/jobs";
import type { Hex } from "../../core/bytes";
import { addressOf } from "../../core/recipient";
import { STATE_NAMES } from "../../core/types";
import { labelled } from "../../data/addresses";
import { hrefOf } from "../router";

const MINE = "mine";
const ASKED = ["state", "submitter", "name"] as const;

type Asked = Readonly<Record<(typeof ASKED)[number], string>>;

export const askedIn = (query: ReadonlyMap<string, string>): Asked => ({
  state: query.get("state") ?? "",
  submitter: query.get("submitter") ?? "",
  name: query.get("name") ?? "",
});

// Return what says whether a job is one of those. Throws BAD_ADDRESS for a submitter that is no address.
export function filterOf({ state, submitter, name }: Asked, names: ReadonlyMap<Hex, string> | undefined): (one: Standing) => boolean {
  const of = submitter === MINE ? labelled(location).map(({ address }) => address) : submitter.trim() === "" ? undefined : [addressOf(submitter.trim())];
  const part = name.trim().toLowerCase();
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
  const go = (changed: Partial<Asked>): void => {
    const query = { ...asked, ...changed };
    location.hash = hrefOf(["jobs"], new Map(ASKED.map((one) => [one, query[one]] as const).filter(([, value]) => value !== "")));
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        // Who looks for a name alone goes on looking among their own.
        go({ name: name.trim(), ...(asked.submitter === MINE && submitter.trim() === "" ? {} : { submitter: submitter.trim() }) });
      }}
    >
      <label>
        State{" "}
        <select value={asked.state} onChange={(event) => go({ state: event.currentTarget.value })}>
          {["", ...STATE_NAMES, "ended"].map((one) => (
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
