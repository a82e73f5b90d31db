import { describe, expect, it } from "vitest";

import { counted } from "../src/core/counted";
import { readCsv } from "../src/core/csv";
import { isOutputTable, MOST_BYTES, numbersOf, plotOf, type OutputTable, outputTableOf } from "../src/core/output-table";
import { refusal } from "./refusal";

const read = (path: string, text: string): OutputTable => outputTableOf(path, new TextEncoder().encode(text));
const refused = (path: string, text: string): string | null => refusal(() => read(path, text));

describe("comma-separated values", () => {
  it("are read as RFC 4180 has them", () => {
    const cases: readonly (readonly [string, readonly (readonly string[])[]])[] = [
      ["", []],
      ["a,b\r\nc,d\r\n", [["a", "b"], ["c", "d"]]],
      ["a,b\nc,d", [["a", "b"], ["c", "d"]]],
      ["a\rb", [["a"], ["b"]]],
      ['"a,b","c\r\nd","e""f",""', [["a,b", "c\r\nd", 'e"f', ""]]],
      [",\n\n,", [["", ""], [""], ["", ""]]],
      ["a,", [["a", ""]]],
      ['5" pipe,x', [['5" pipe', "x"]]],
      ['""""', [['"']]],
      [" \"a\"", [[' "a"']]],
    ];
    for (const [text, rows] of cases) expect([text, readCsv(text, ",")]).toEqual([text, rows]);
    expect(readCsv('a\tb,c\n"x\ty"\tz', "\t")).toEqual([["a", "b,c"], ["x\ty", "z"]]);
  });

  it("are refused where a quote is not closed, or has text behind it", () => {
    for (const text of ['"a', 'a,"b\n', '"a"b', '"a" ,b', '"""']) expect(refusal(() => readCsv(text, ","))).toBe("NO_TABLE");
  });
});

describe("a small output as a table", () => {
  it("has names where the first line has no number, and others follow", () => {
    expect(read("a.csv", "x,y\n1,2\n")).toEqual({ columns: ["x", "y"], rows: [["1", "2"]], wide: 2 });
    expect(read("a.TSV", "word\t3\nother\t4\n")).toEqual({ columns: ["1", "2"], rows: [["word", "3"], ["other", "4"]], wide: 2 });
    expect(read("a.csv", "only,names").rows).toEqual([["only", "names"]]);
    expect(read("a.csv", "\ufeffx,\n1,2,3").columns).toEqual(["x", "2", "3"]);
  });

  it("is made of JSON of every shape", () => {
    expect(read("a.json", '[{"a":1,"b":"x"},{"b":null,"c":[1,2]}]')).toEqual({ columns: ["a", "b", "c"], rows: [["1", "x", ""], ["", "", "[2 values]"]], wide: 3 });
    expect(read("a.json", '{"x":[1,2],"y":[true]}')).toEqual({ columns: ["x", "y"], rows: [["1", "true"], ["2", ""]], wide: 2 });
    expect(read("a.json", "[[1,2],[3]]").rows).toEqual([["1", "2"], ["3"]]);
    expect(read("a.json", '[1,"2",{"a":1}]').rows).toEqual([["1"], ["2"], ["{1 name}"]]);
    expect(read("a.json", '{"accuracy":0.91,"of":{"a":1,"b":2}}').rows).toEqual([["accuracy", "0.91"], ["of", "{2 names}"]]);
    expect([read("a.json", "7").rows, read("a.json", '"7"').rows, read("a.json", "[]").rows, read("a.json", "{}").rows]).toEqual([[["7"]], [["7"]], [], []]);
  });

  it("shows each number as it is written", () => {
    const text = '[9007199254740993, 0.10, 1E999, -0, 1e-7, "n5", "s\\"1, 2", "\\\\"]';
    expect(read("a.json", text).rows).toEqual([["9007199254740993"], ["0.10"], ["1E999"], ["-0"], ["1e-7"], ["n5"], ['s"1, 2'], ["\\"]]);
    expect(read("a.json", '{"1":{"2":3}, "0": 4}').rows).toEqual([["1", "{1 name}"], ["0", "4"]]);
  });

  it("is refused in a sentence where it is none", () => {
    for (const text of ["", " \n", "[1,", "01", "{'a':1}", "[1]x", '["1]', '"a', "NaN", "1.2.3", "[1 2]"]) expect([text, refused("a.json", text)]).toEqual([text, "NO_TABLE"]);
    expect(refusal(() => outputTableOf("a.csv", new Uint8Array([0xff, 0xfe, 0x41])))).toBe("NO_TABLE");
    expect(refusal(() => outputTableOf("a.csv", new Uint8Array(MOST_BYTES + 1).fill(65)))).toBe("NO_TABLE");
  });

  it("is offered for small files of three kinds", () => {
    expect([isOutputTable("/a/b.CSV", 1), isOutputTable("x.tsv", MOST_BYTES), isOutputTable("x.json", 0)]).toEqual([true, true, true]);
    expect([isOutputTable("x.json", MOST_BYTES + 1), isOutputTable("x.json.gz", 1), isOutputTable("csv", 1)]).toEqual([false, false, false]);
  });

  it("does no more work for a hostile one than its bytes are worth", () => {
    const names = Array.from({ length: 10_000 }, (_, at) => `c${at}`);
    const wide = read("a.csv", `${names.join(",")}\n${names.map(() => "1").join(",")}\n`);
    expect([wide.wide, wide.columns.length, wide.rows[0]?.length]).toEqual([10_000, 50, 50]);
    const some = names.slice(0, 1_000);
    const other = read("a.json", `[${some.map((name) => `{"${name}":1}`).join(",")}]`);
    expect([other.wide, other.columns.length, other.rows.length]).toEqual([1_000, 50, 1_000]);
    const deep = 100_000;
    // Deep or refused: it is never gone into.
    for (const text of ["[".repeat(deep) + "]".repeat(deep), `{"a":`.repeat(40_000) + "1" + "}".repeat(40_000)]) {
      try {
        expect(read("a.json", text).rows.length).toBe(1);
      } catch (error) {
        expect(error).toMatchObject({ code: "NO_TABLE" });
      }
    }
    expect(read("a.csv", ",".repeat(MOST_BYTES)).wide).toBe(MOST_BYTES + 1);
    expect(read("a.csv", `x${"\n".repeat(MOST_BYTES - 1)}`).rows.length).toBe(MOST_BYTES - 2);
    expect(refused("a.csv", `${'"'.repeat(MOST_BYTES - 1)}`)).toBe("NO_TABLE");
    expect(read("a.csv", '""'.repeat(MOST_BYTES / 2)).rows.length).toBe(1);
    expect(refused("a.json", `"${"\\".repeat(MOST_BYTES - 2)}`)).toBe("NO_TABLE");
    expect(read("a.json", `"${"\\\\".repeat(MOST_BYTES / 2 - 2)}"`).rows.length).toBe(1);
  });

  it("has no more cells than a file may write, whatever its names and rows", () => {
    const fifty = Array.from({ length: 50 }, (_, at) => `"${at}":1`).join(",");
    const list = (rows: number): string => `[{${fifty}}${",{}".repeat(rows - 1)}]`;
    const columns = (rows: number): string => `{"long":[1${",1".repeat(rows - 1)}],${fifty.replaceAll(":1", ":[]")}}`;
    const most = Math.floor(MOST_BYTES / 50);
    for (const made of [list, columns]) {
      expect(read("a.json", made(most)).rows.length).toBe(most);
      expect(refused("a.json", made(most + 1))).toBe("NO_TABLE");
    }
    expect([refused("a.json", list(87_000)), refused("a.json", columns(130_000))]).toEqual(["NO_TABLE", "NO_TABLE"]);
    // One column has as many rows as its bytes allow.
    expect(read("a.json", `[${"{},".repeat(80_000)}{"a":1}]`).rows.length).toBe(80_001);
  });

  it("takes no name for one of the language's own", () => {
    const sheet = read("a.json", '[{"__proto__":{"x":1},"constructor":2,"a":3},{"toString":4}]');
    expect(sheet.columns).toEqual(["__proto__", "constructor", "a", "toString"]);
    expect(sheet.rows).toEqual([["{1 name}", "2", "3", ""], ["", "", "", "4"]]);
    expect(({} as Record<string, unknown>)["x"]).toBe(undefined);
    expect(read("a.json", '{"__proto__":[1,2]}')).toEqual({ columns: ["__proto__"], rows: [["1"], ["2"]], wide: 1 });
  });
});

describe("a column as a line", () => {
  it("is drawn where all of it are numbers, and two at least", () => {
    const sheet = read("a.csv", "a,b,c,d,e\n1,x,,1e999,0x1\n 2.5 ,1,7,1,2\n-3e2,2,,1,3\n");
    expect(numbersOf(sheet, 0)).toEqual([1, 2.5, -300]);
    expect([1, 2, 3, 4, 9].map((column) => numbersOf(sheet, column))).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect(numbersOf(read("a.csv", "a,b\n1,\n,2\n3,4\n"), 0)).toEqual([1, null, 3]);
  });

  it("runs from its lowest to its highest, whatever the numbers", () => {
    expect(plotOf([1, null, 3, 2])).toEqual({ points: [{ row: 0, height: 0 }, { row: 2, height: 1 }, { row: 3, height: 0.5 }], lowest: 0, highest: 2 });
    expect(plotOf([1e308, -1e308, 0]).points.map(({ height }) => height)).toEqual([1, 0, 0.5]);
    expect(plotOf([5, 5]).points.map(({ height }) => height)).toEqual([0.5, 0.5]);
    expect(plotOf([5e-324, 0]).points.every(({ height }) => height >= 0 && height <= 1)).toBe(true);
    expect(plotOf([]).points).toEqual([]);
  });

  it("keeps each peak of many numbers", () => {
    const numbers = Array.from({ length: 100_000 }, (_, at) => (at === 77_777 ? 9 : at === 3 ? -9 : 0));
    const { points, lowest, highest } = plotOf(numbers);
    expect([points.length <= 1_000, lowest, highest]).toEqual([true, 3, 77_777]);
    expect([points.find(({ row }) => row === 77_777)?.height, points.find(({ row }) => row === 3)?.height]).toEqual([1, 0]);
    expect(points.every(({ row }, at) => at === 0 || row > (points[at - 1]?.row ?? 0))).toBe(true);
  });
});

describe("so many of something", () => {
  it("is one or several", () => {
    expect([counted(0, "unit"), counted(1, "unit"), counted(1n, "lease"), counted(2, "more job is", "more jobs are")]).toEqual(["0 units", "1 unit", "1 lease", "2 more jobs are"]);
  });
});
