// Errors that a person reads: a code of the library (SPEC, "Commands"), one sentence that says what is wrong, and what
// to do next. Everything the page refuses is one of these; anything else that is thrown is a fault of the page.

export class HearthError extends Error {
  override readonly name = "HearthError";

  constructor(
    readonly code: string,
    message: string,
    readonly hint = "",
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

// What was refused, as vectors say it: the code of a HearthError; anything else is thrown on.
export function codeOf(error: unknown): string {
  if (error instanceof HearthError) return error.code;
  throw error;
}
