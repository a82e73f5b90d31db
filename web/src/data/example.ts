// A job file to begin with, whole: its text, and what it brings, as if its reader had picked it.

import { EXAMPLE_FILES, EXAMPLE_TEXT } from "../generated/example";
import { type Named, nameSource } from "./job-data";

export interface Example {
  readonly text: string;
  readonly picks: ReadonlyMap<string, Promise<Named>>;
}

export function example(): Example {
  const picks = Object.entries(EXAMPLE_FILES).map(([src, text]) => {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    return [src, nameSource({ name: src, node: { kind: "file", open: () => new Blob([bytes]) }, emptyFolders: true }, false)] as const;
  });
  return { text: EXAMPLE_TEXT, picks: new Map(picks) };
}
