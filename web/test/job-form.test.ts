import { describe, expect, it } from "vitest";

import { dumpValues } from "../src/core/dump";
import { HearthError } from "../src/core/errors";
import { faultsOf, formOf, leftOut, readForm, shownValue, sourceWord, typeAt, typedValue, valueAt, withSource, withValue } from "../src/core/job-form";
import { fieldName, type Location } from "../src/core/problems";
import { loadSpec } from "../src/core/spec";
import type { Value, ValueMap } from "../src/core/values";
import { SPEC_MODELS } from "../src/generated/spec";
import { type Field, GROUPS, LEFT_OUT } from "../src/ui/parts/job-fields";
import { vectors } from "./vectors";

const map = (entries: Record<string, Value>): ValueMap => new Map(Object.entries(entries));

// The fields of a job file by their names, of the items of a list as of one.
function names(model: keyof typeof SPEC_MODELS, before: string): string[] {
  return (SPEC_MODELS[model] as readonly { key: string; type: { kind: string } }[]).flatMap(({ key, type }) => {
    const found = JSON.stringify(type).match(/"model":"([A-Za-z]+)"/)?.[1];
    const name = before + key;
    return found === undefined ? [name] : names(found as keyof typeof SPEC_MODELS, `${name}.`);
  });
}

const shown = (field: Field): string[] =>
  field.items === undefined ? [field.where.join(".")] : field.items.map((one) => [...field.where, ...one.where].join("."));

describe("the form of a job file", () => {
  it("has a field for all that a job file says, but for what this version does not offer", () => {
    const fields = GROUPS.flatMap(({ common, rare }) => [...common, ...rare]).flatMap(shown);
    expect(new Set(fields).size).toBe(fields.length);
    expect([...fields, ...LEFT_OUT].sort()).toEqual(names("JobSpec", "").sort());
  });

  it.each(vectors<{ cases: { text: string; variables?: unknown; market?: number }[] }>("spec").cases.filter((one) => one.market !== undefined && one.variables === undefined && !/^command: ["']/m.test(one.text)).map(({ text }) => text))(
    "shows what a file says, and writes it back as the same job: %s",
    async (text) => {
      const { data } = await readForm(text);
      const before = await loadSpec(text);
      const after = await loadSpec(dumpValues(data));
      expect(after.spec).toEqual(before.spec);
      // Written once it is written so for good.
      expect(dumpValues((await readForm(dumpValues(data))).data)).toBe(dumpValues(data));
    },
  );

  it("changes a value and nothing else", async () => {
    const { data } = await readForm("name: a\nenv: {X: '1', Y: '2'}\ncommand: [a, b, c]\ninputs: [{src: a, dst: /in/a}, {src: b, dst: /in/b}]\n");
    const changed = (where: Location, value: Value | undefined) => valueAt(withValue(data, where, value), [where[0] as string]);
    expect(changed(["env", "X"], "0x10")).toEqual(map({ X: "0x10", Y: "2" }));
    expect(changed(["env", "X"], undefined)).toEqual(map({ Y: "2" }));
    expect(changed(["command", 1], undefined)).toEqual(["a", "c"]);
    expect(changed(["command", 3], "")).toEqual(["a", "b", "c", ""]);
    expect(changed(["inputs", 1, "dst"], undefined)).toEqual([map({ src: "a", dst: "/in/a" }), map({ src: "b" })]);
    expect(changed(["inputs", 0], undefined)).toEqual([map({ src: "b", dst: "/in/b" })]);
    expect(changed(["resources", "gpu", "tier"], "h100")).toEqual(map({ gpu: map({ tier: "h100" }) }));
    // It is what it was.
    expect(dumpValues(data)).toContain('command: ["a", "b", "c"]');
  });

  it("writes whatever is typed into any field, and reads the very same", async () => {
    const typed = vectors<{ value: string }[]>("dumps").flatMap(({ value }) => {
      const first = (JSON.parse(value) as { map: [string, unknown][] }).map[0]?.[1];
      return typeof first === "string" && first !== "" ? [first] : [];
    });
    expect(typed).toContain("2030-01-31");
    const leaves = GROUPS.flatMap(({ common, rare }) => [...common, ...rare]).filter(({ where }) => !["bool", "list", "map"].includes(typeAt(where).kind));
    for (const [at, { where }] of leaves.entries()) {
      for (const text of typed.filter((_, place) => place % 4 === at % 4)) {
        const data = withValue(map({ version: 1n }), where, typedValue(text, typeAt(where)));
        expect((await readForm(dumpValues(data))).data).toEqual(data);
        expect(shownValue(valueAt(data, where))).toBe(text);
      }
    }
  });

  it("takes out with the last value of a mapping the mapping itself, which would ask for a GPU", () => {
    const data = map({ image: "x", resources: map({ gpu: map({ tier: "h100" }) }), command: ["a"] });
    expect(withValue(data, ["resources", "gpu", "tier"], undefined).has("resources")).toBe(false);
    expect(withValue(data, ["command", 0], undefined).has("command")).toBe(false);
    // One that was empty stays: it asks for one.
    const asks = map({ resources: map({ gpu: map({}), cpus: 1n }) });
    expect(valueAt(withValue(asks, ["resources", "cpus"], undefined), ["resources"])).toEqual(map({ gpu: map({}) }));
  });

  it("knows what is meant by what is left out", () => {
    const none = map({});
    expect(["limits.runtime", "retry.attempts", "resources.gpu.count", "price.billing", "match.newcomers", "module"].map((name) => leftOut(none, name.split(".")))).toEqual(
      ["10m", "3", "0", "auto", "false", ""],
    );
    expect(leftOut(map({ resources: map({ gpu: map({ tier: "h100" }) }) }), ["resources", "gpu", "count"])).toBe("1");
    expect(leftOut(map({ outputs: [map({ path: "/out" })] }), ["outputs", 0, "required"])).toBe("true");
    expect(leftOut(map({ after: [map({ job: "x" })] }), ["after", 0, "if"])).toBe("success");
  });

  it("makes a number of digits where a number belongs, and text of all else", () => {
    const [whole, text] = [typeAt(["resources", "cpus"]), typeAt(["limits", "runtime"])];
    expect(["", "4", "-1", "07", "1e3", "x"].map((one) => typedValue(one, whole))).toEqual([undefined, 4n, -1n, "07", "1e3", "x"]);
    expect(["", "5", "true", "~"].map((one) => typedValue(one, text))).toEqual([undefined, "5", "true", "~"]);
    expect([undefined, null, 4n, true, ""].map(shownValue)).toEqual(["", "", "4", "true", ""]);
    expect(() => typeAt(["nothing"])).toThrow(TypeError);
  });

  it("reads the older forms as the present one", async () => {
    const { data } = await readForm("image: x\ncommand: a b\nresources: {cpu: 2, gpu: 2xRTX4090}\nverify: none\nafter: '0x1'\ninput_data: ipfs://x\n");
    expect(valueAt(data, ["command"])).toEqual(["a", "b"]);
    expect(valueAt(data, ["resources", "gpu", "tier"])).toBe("rtx-4090");
    expect(valueAt(data, ["resources", "cpus"])).toBe(2n);
    expect(valueAt(data, ["after", 0, "job"])).toBe("0x1");
    expect(valueAt(data, ["inputs", 0, "dst"])).toBe("/in/data");
    expect((await readForm(" \n")).data.size).toBe(0);
  });

  it.each([
    ["resources: [1]", "resources"],
    ["resources: {gpu: [1]}", "resources.gpu"],
    ["command: {a: b}", "command"],
    ["command: [[a]]", "command[0]"],
    ["inputs: [a]", "inputs[0]"],
    ["inputs: [null]", "inputs[0]"],
    ["env: [a]", "env"],
    ["env: {A: {b: c}}", "env.A"],
    ["name: [a]", "name"],
    ["after: [[a]]", "after[0]"],
    ["command: a | b", "command"],
  ])("is closed where a value stands that it has no field for: %s", async (text, field) => {
    await expect(readForm(text)).rejects.toMatchObject({ code: "BAD_SPEC", details: { field } });
  });

  it("leaves keys that it does not know where they are", () => {
    const { data } = formOf(map({ __proto__: "x", nothing: map({ a: 1n }), resources: null }));
    const next = withValue(data, ["resources", "cpus"], 2n);
    expect(valueAt(next, ["nothing", "a"])).toBe(1n);
    expect(valueAt(next, ["resources", "cpus"])).toBe(2n);
  });

  it("says at each field what is wrong with it", async () => {
    const error = await loadSpec("image: x\nresources: {cpus: 0}\nlimits: {runtime: 1}\nretry: {attempts: 99}\n").catch((caught: unknown) => caught);
    const later = new HearthError("NO_PRICE", "price: neither is given", "add one", { field: "price" });
    const faults = faultsOf([error, undefined, later, later, new TypeError("x")]);
    expect([...faults.keys()].sort()).toEqual(["limits.runtime", "price", "resources.cpus", "retry.attempts"]);
    expect(faults.get("limits.runtime")?.[0]).toMatch(/unit/);
    expect(faults.get("price")).toHaveLength(1);
    expect(fieldName(["inputs", 0, "src"])).toBe("inputs[0].src");
  });
});

describe("the word for what is picked at a field", () => {
  const NONE = new Map<string, unknown>();
  const file = (module: string | undefined, ...srcs: string[]): ValueMap =>
    new Map<string, Value>([...(module === undefined ? [] : [["module", module] as const]), ["inputs", srcs.map((src) => new Map([["src", src]]))]]);

  it("offers a place inside the job for what is picked, where the file names none", () => {
    const picked = (data: ValueMap, at: number): unknown[] => {
      const changed = withSource(data, ["inputs", at, "src"], "data.csv", "data.csv");
      return [valueAt(changed, ["inputs", at, "src"]), valueAt(changed, ["inputs", at, "dst"])];
    };
    const inputs = (...items: readonly (readonly [string, string][])[]): ValueMap => new Map([["inputs", items.map((item) => new Map(item))]]);
    expect(picked(inputs([]), 0)).toEqual(["data.csv", "/in/data.csv"]);
    expect(picked(inputs([["dst", ""]]), 0)).toEqual(["data.csv", "/in/data.csv"]);
    expect(picked(inputs([["dst", "/in/mine"]]), 0)).toEqual(["data.csv", "/in/mine"]);
    expect(picked(inputs([["dst", "/in/data.csv"]], []), 1)).toEqual(["data.csv", "/in/data-2.csv"]);
    expect(valueAt(withSource(new Map(), ["module"], "a.wasm", "a.wasm"), ["inputs"])).toBe(undefined);
  });

  it("is none that another field has: two files of one name are two", () => {
    expect(sourceWord(file(undefined, "", ""), ["inputs", 0, "src"], "data.csv", NONE)).toBe("data.csv");
    expect(sourceWord(file(undefined, "data.csv", ""), ["inputs", 1, "src"], "data.csv", NONE)).toBe("data-2.csv");
    expect(sourceWord(file(undefined, "data.csv", "data-2.csv", ""), ["inputs", 2, "src"], "data.csv", NONE)).toBe("data-3.csv");
    expect(sourceWord(file("x.wasm", "ipfs://Qm"), ["inputs", 0, "src"], "x.wasm", NONE)).toBe("x-2.wasm");
    expect(sourceWord(file(undefined, "x.wasm"), ["module"], "x.wasm", NONE)).toBe("x-2.wasm");
    expect(sourceWord(file(undefined, "src"), ["workdir"], "src", NONE)).toBe("src-2");
    expect(sourceWord(new Map([["workdir", "src"]]), ["inputs", 0, "src"], "src", NONE)).toBe("src-2");
    for (const [name, other] of [[".env", ".env-2"], ["a.b.gz", "a.b-2.gz"], ["x.", "x-2."]] as const) {
      expect(sourceWord(file(name, ""), ["inputs", 0, "src"], name, NONE)).toBe(other);
    }
  });

  it("is its own where it has one, alone", () => {
    expect(sourceWord(file("a", "mine.csv"), ["inputs", 0, "src"], "data.csv", new Map([["mine.csv", 1]]))).toBe("mine.csv");
    // Two fields of one word are one thing: what is picked at one of them is not for the other.
    expect(sourceWord(file(undefined, "both.csv", "both.csv"), ["inputs", 0, "src"], "data.csv", NONE)).toBe("both-2.csv");
  });

  it("is none that stands for something already, which the text may name again", () => {
    expect(sourceWord(file(undefined, ""), ["inputs", 0, "src"], "data.csv", new Map([["data.csv", 1]]))).toBe("data-2.csv");
  });
});
