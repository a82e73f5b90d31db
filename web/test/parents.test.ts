import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import {
  type Condition,
  endedBy,
  endsAtWorst,
  packParents,
  type Parent,
  parentsHash,
  progressOf,
  unpackParents,
} from "../src/core/parents";
import { vectors } from "./vectors";

type Said = readonly (readonly [Hex, Condition])[];

interface Told {
  readonly out?: unknown;
  readonly code?: string;
}

interface Vectors {
  readonly lists: readonly (Told & { readonly parents: Said })[];
  readonly packed: readonly (Told & { readonly packed: readonly Hex[] })[];
  readonly words: readonly (Told & { readonly word: string })[];
  readonly progress: readonly (Told & { readonly parents: Said; readonly words: readonly string[] })[];
}

const cases = vectors<Vectors>("parents");
const parentsOf = (said: Said): Parent[] => said.map(([job, condition]) => ({ job, condition }));
const wanted = (told: Told): unknown => told.code ?? told.out;

// A refusal has another code by what was refused: a list, or a word.
function result(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    if (error instanceof HearthError && ["BAD_PARENTS", "BAD_WORD"].includes(error.code)) return "refused";
    throw error;
  }
}

describe("parents", () => {
  it.each(cases.lists)("packs $parents.length", (one) => {
    const found = result(() => {
      const packed = packParents(parentsOf(one.parents));
      return [packed, parentsHash(packed)];
    });
    expect(found).toEqual(wanted(one));
  });

  it.each(cases.packed)("unpacks $packed", (one) => {
    const found = result(() => unpackParents(one.packed).map((parent) => [parent.job, parent.condition]));
    expect(found).toEqual(wanted(one));
  });

  it.each(cases.words)("knows how $word ended", (one) => {
    const word = BigInt(one.word);
    expect(result(() => [endedBy(word), endsAtWorst(word)])).toEqual(wanted(one));
  });

  it.each(cases.progress.map((one, at) => [at, one] as const))("knows what unlock may do (%i)", (_, one) => {
    expect(result(() => progressOf(parentsOf(one.parents), one.words.map(BigInt)))).toEqual(wanted(one));
  });
});
