// What can be wrong with a job spec, and how it is told: file, line, field, reason, hint. Mirrors
// hearth/jobfile/problems.py.

import { HearthError } from "./errors";

// The path of a value in a spec: ["inputs", 0, "dst"].
export type Location = readonly (string | number)[];

// One thing that is wrong: where, why, what to do about it, and the error code.
export interface Problem {
  readonly where: Location;
  readonly message: string;
  readonly hint: string;
  readonly code: string;
}

export function problem(where: Location, message: string, hint = "", code = "BAD_SPEC"): Problem {
  return { where, message, hint, code };
}

// A place as one string, different for different places: what lines are kept by.
export const placeKey = (where: Location): string => JSON.stringify(where);

// Where a spec came from: the name to show, and the line (from 1) of each value in it, by `placeKey`.
export class Source {
  constructor(
    readonly name: string,
    readonly lines: ReadonlyMap<string, number> = new Map(),
  ) {}

  // The line of a value, or of the nearest thing around it that has one.
  lineOf(where: Location): number | null {
    for (let end = where.length; end >= 0; end -= 1) {
      const line = this.lines.get(placeKey(where.slice(0, end)));
      if (line !== undefined) return line;
    }
    return null;
  }

  // The error that tells all the problems, and each different hint once; code, line and field are the first one's.
  refuse(problems: readonly Problem[]): HearthError {
    const told = problems.map((one) => ({ line: this.lineOf(one.where), one }));
    told.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    const first = told[0];
    if (first === undefined) throw new RangeError("there is no problem to tell");
    const sentences = told.map(({ line, one }) => this.sentence(line, one));
    const hints = new Set(told.map(({ one }) => one.hint).filter((hint) => hint !== ""));
    const details = {
      file: this.name,
      line: first.line,
      field: fieldName(first.one.where),
      problems: told.map(({ line, one }) => ({
        line,
        field: fieldName(one.where),
        message: one.message,
        hint: one.hint,
        code: one.code,
      })),
    };
    return new HearthError(first.one.code, sentences[0] as string, [...hints].join("; "), details, sentences.slice(1));
  }

  private sentence(line: number | null, one: Problem): string {
    const place = line === null ? this.name : `${this.name}:${line}`;
    const field = fieldName(one.where);
    return `${place}: ${field ? `${field}: ` : ""}${one.message}`;
  }
}

// A location as people write it: "inputs[0].dst".
export function fieldName(where: Location): string {
  let text = "";
  for (const part of where) text += typeof part === "number" ? `[${part}]` : text ? `.${part}` : part;
  return text;
}
