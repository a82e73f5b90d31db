// Labelled fields of a form, and what a form's texts come to.

import { HearthError } from "../../core/errors";

interface Props {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  readonly change: (value: string) => void;
}

export function Field({ id, label, value, hint = "", change }: Props) {
  return (
    <p>
      <label for={id}>{label}</label>
      <input
        type="text"
        id={id}
        value={value}
        spellcheck={false}
        autocomplete="off"
        aria-describedby={hint === "" ? undefined : `${id}-hint`}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {hint !== "" && <span class="hint" id={`${id}-hint`}>{hint}</span>}
    </p>
  );
}

// A value, or why there is none.
export type Read<T> = { readonly value: T; readonly held: "" } | { readonly value: undefined; readonly held: string };

// What is read out of texts; what they are refused for is a sentence.
export function read<T>(make: () => T): Read<T> {
  try {
    return { value: make(), held: "" };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return { value: undefined, held: error.hint === "" ? error.message : `${error.message} (${error.hint})` };
  }
}
