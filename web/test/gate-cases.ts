// Nodes at the gates of jobs, as the library's vectors have them.

import type { Json, NodeFields } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: number;
  readonly unit: string;
  readonly best: string;
  readonly node: NodeFields;
  readonly now: number;
  readonly ask: readonly Json[];
  readonly askInForce: Json;
  readonly mayNewcomer: boolean;
  readonly gate: number;
  readonly propose: { readonly out?: number; readonly code?: string };
  readonly claim: { readonly out?: number; readonly code?: string };
}

interface Vectors {
  readonly deadAfter: number;
  readonly minimumStake: string;
  readonly cases: readonly Case[];
  readonly terms: readonly (readonly string[])[];
}

const DATA = vectors<Vectors>("gates");
export const CASES = DATA.cases.map((one) => ({ ...one, terms: DATA.terms[one.terms] as readonly string[] }));
export const MARKET = { deadAfter: DATA.deadAfter, minimumStake: BigInt(DATA.minimumStake) };
