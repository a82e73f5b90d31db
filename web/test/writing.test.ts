import { describe, expect, it } from "vitest";

import type { AttesterSet } from "../src/core/attesters";
import type { Named } from "../src/data/job-data";
import type { Draft } from "../src/data/draft";
import { type Pen, penOf, type Writing, writingOf } from "../src/data/writing";

const named = (cid: string): Named => ({ cid }) as unknown as Named;
const SET = { quorum: 1 } as unknown as AttesterSet;

// A browser's draft, and a job file as a page holds it.
function desk(stored = "") {
  let kept = stored;
  const draft: Draft = {
    read: () => kept,
    keep: (text) => {
      kept = text;
      return text !== "";
    },
    posted: () => undefined,
  };
  let writing: Writing = writingOf(draft);
  return {
    stored: () => kept,
    now: () => writing,
    pen: (): Pen => penOf(draft, writing.which, (step) => (writing = step(writing))),
    picks: () => [[...writing.named].map(([src, one]) => `${src} ${String(one.cid)}`), [...writing.sets.keys()]],
  };
}

describe("what was picked for a job file", () => {
  const picked = () => {
    const all = desk();
    all.pen().setText("a");
    all.pen().name("main.py", named("one"));
    all.pen().setAttesters("attesters.yaml", SET);
    return all;
  };

  it("stays while its text is edited", () => {
    const all = picked();
    all.pen().setText("b");
    all.pen().setText("");
    expect(all.picks()).toEqual([["main.py one"], ["attesters.yaml"]]);
  });

  it("goes with its file, by whatever the next one came", () => {
    for (const next of [(pen: Pen) => pen.begin("another"), (pen: Pen) => pen.begin(""), (pen: Pen) => pen.lend("a job's")]) {
      const all = picked();
      const { which, named: before } = all.now();
      next(all.pen());
      expect(all.picks()).toEqual([[], []]);
      expect([all.now().which === which, all.now().named === before]).toEqual([false, false]);
    }
  });

  it("comes with a file that brings it, unless another pick or another file takes its place", async () => {
    const later = (): { readonly one: Promise<Named>; readonly read: (cid: string) => Promise<void> } => {
      let tell = (_one: Named): void => undefined;
      const one = new Promise<Named>((done) => (tell = done));
      return { one, read: (cid) => (tell(named(cid)), one.then(() => undefined)) };
    };
    const all = desk();
    const [first, second, failed] = [later(), later(), Promise.reject(new Error("it cannot be read"))];
    all.pen().begin("a", new Map([["main.py", first.one], ["data", second.one], ["more", failed]]));
    await first.read("one");
    expect([all.now().text, all.picks()]).toEqual(["a", [["main.py one"], []]]);
    await all.pen().pick("data", Promise.resolve(named("mine")));
    await second.read("two");
    expect(all.picks()).toEqual([["main.py one", "data mine"], []]);
    const late = later();
    all.pen().begin("b", new Map([["main.py", late.one]]));
    all.pen().begin("c");
    await late.read("three");
    expect(all.picks()).toEqual([[], []]);
  });

  it("is not for another file where it comes late", async () => {
    const all = desk();
    let read = (_one: Named): void => undefined;
    const pen = all.pen();
    const late = pen.pick("main.py", new Promise((done) => (read = done)));
    all.pen().begin("another");
    read(named("one"));
    await late;
    pen.name("main.py", named("two"));
    pen.setAttesters("attesters.yaml", SET);
    expect(all.picks()).toEqual([[], []]);
  });

  it("is what was picked last, whatever is read first", async () => {
    const all = desk();
    let read = (_one: Named): void => undefined;
    const slow = all.pen().pick("data", new Promise((done) => (read = done)));
    await all.pen().pick("data", Promise.resolve(named("small")));
    read(named("large"));
    await slow;
    expect(all.picks()).toEqual([["data small"], []]);
    await expect(all.pen().pick("data", Promise.reject(new Error("gone")))).rejects.toThrow("gone");
    expect(all.picks()).toEqual([["data small"], []]);
  });
});

describe("the text of a job file", () => {
  it("is a draft from its reader's first word", () => {
    const all = desk();
    expect(all.now().kept).toBe("not");
    all.pen().setText("a");
    expect([all.stored(), all.now().kept]).toEqual(["a", "kept"]);
    all.pen().begin("b");
    expect([all.stored(), all.now().kept]).toEqual(["b", "kept"]);
    all.pen().begin("");
    expect([all.stored(), all.now().kept]).toEqual(["", "not"]);
    expect(desk("old").now()).toMatchObject({ text: "old", kept: "kept" });
  });

  it("that a link put there is none until its reader changes it", () => {
    const all = desk("written in another tab");
    all.pen().lend("a job's");
    expect([all.now().text, all.stored(), all.now().kept]).toEqual(["a job's", "written in another tab", "unchanged"]);
    all.pen().setText("a job's, changed");
    expect([all.stored(), all.now().kept]).toEqual(["a job's, changed", "kept"]);
  });
});
