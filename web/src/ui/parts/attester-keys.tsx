// Who the attesters of a set are, whole.

import type { AttesterSet } from "../../core/attesters";
import { Whole } from "./values";

export function AttesterKeys({ set }: { readonly set: AttesterSet }) {
  return <ul>{set.keys.map((key) => <li key={key}><Whole hex={key} /></li>)}</ul>;
}
