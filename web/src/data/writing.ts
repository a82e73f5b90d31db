// A job file as it is written: its text, whether a draft of it is kept, and what its reader picked for it. A pick is for the file
// that it was made for: another file may use the same words for other things.

import type { AttesterSet } from "../core/attesters";
import type { Named } from "./job-data";
import type { Draft } from "./draft";

// Whether the text lasts over a reload. One that a link put there is nobody's draft until its reader changes it.
export type Kept = "kept" | "not" | "unchanged";

export interface Writing {
  readonly text: string;
  readonly kept: Kept;
  // Which file it is, of all that stood here: edits change it and leave it the same.
  readonly which: number;
  readonly named: ReadonlyMap<string, Named>;
  readonly sets: ReadonlyMap<string, AttesterSet | undefined>;
  // The pick of each source that was made last.
  readonly picked: ReadonlyMap<string, Promise<Named>>;
}

export interface Pen {
  // Change the text of this file.
  setText(text: string): void;
  // Put another file in its place, at the reader's word; "" for none. `picks` come with it.
  begin(text: string, picks?: ReadonlyMap<string, Promise<Named>>): void;
  // Put another file in its place without it.
  lend(text: string): void;
  // Name a source of this file, or a set of attesters. What comes once another file stands here is for nobody.
  name(src: string, one: Named): void;
  // Name a source by what was picked for it, once that is read: of several picks the last one counts. Rejects as the reading does.
  pick(src: string, reading: Promise<Named>): Promise<void>;
  setAttesters(name: string, set: AttesterSet | undefined): void;
}

// Each time new maps: what is read anew for another file is told by them.
const nothing = (): Pick<Writing, "named" | "sets" | "picked"> => ({ named: new Map(), sets: new Map(), picked: new Map() });

export function writingOf(draft: Draft): Writing {
  const text = draft.read();
  return { text, kept: text !== "" && draft.keep(text) ? "kept" : "not", which: 0, ...nothing() };
}

// Return what changes the writing, for the file that stands there now.
export function penOf(draft: Draft, which: number, change: (step: (before: Writing) => Writing) => void): Pen {
  const keep = (text: string): Kept => (draft.keep(text) ? "kept" : "not");
  const ofFile = (step: (before: Writing) => Partial<Writing>) =>
    change((before) => (before.which === which ? { ...before, ...step(before) } : before));
  return {
    setText: (text) => {
      const kept = keep(text);
      change((before) => ({ ...before, text, kept }));
    },
    begin: (text, picks = new Map()) => {
      const kept = keep(text);
      change((before) => ({ text, kept, which: before.which + 1, ...nothing(), picked: picks }));
      // What another pick took the place of, or another file, is for nobody. What cannot be read is the reader's to pick.
      for (const [src, reading] of picks) {
        const take = (one: Named): void => change((now) => (now.picked.get(src) === reading ? { ...now, named: new Map(now.named).set(src, one) } : now));
        reading.then(take, () => undefined);
      }
    },
    lend: (text) => change((before) => ({ text, kept: "unchanged", which: before.which + 1, ...nothing() })),
    name: (src, one) => ofFile(({ named }) => ({ named: new Map(named).set(src, one) })),
    pick: async (src, reading) => {
      ofFile(({ picked }) => ({ picked: new Map(picked).set(src, reading) }));
      const one = await reading;
      ofFile(({ picked, named }) => (picked.get(src) === reading ? { named: new Map(named).set(src, one) } : {}));
    },
    setAttesters: (name, set) => ofFile(({ sets }) => ({ sets: new Map(sets).set(name, set) })),
  };
}
