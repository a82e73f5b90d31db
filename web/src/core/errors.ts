// Errors that a person reads: a code of the library (commands.md "Commands"), one sentence that says what is wrong, and what
// to do next. Everything the page refuses is one of these; anything else that is thrown is a fault of the page.

import { oneLine } from "./text";

// Messages quote strangers, who may have written a line of their own, or what moves text: each is one line. `also` are
// further lines of ours.
export class HearthError extends Error {
  override readonly name = "HearthError";
  readonly hint: string;

  constructor(
    readonly code: string,
    message: string,
    hint = "",
    readonly details: Readonly<Record<string, unknown>> = {},
    also: readonly string[] = [],
  ) {
    super([message, ...also].map(oneLine).join("\n"));
    this.hint = oneLine(hint);
  }
}

// What was refused, as vectors say it: the code of a HearthError; anything else is thrown on.
export function codeOf(error: unknown): string {
  if (error instanceof HearthError) return error.code;
  throw error;
}
