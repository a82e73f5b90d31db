// What went wrong, as the library says it: what, why, and what to do next.

import { HearthError } from "../../core/errors";
import { shown } from "../../core/text";
import { TEXTS } from "../texts";

export function Failure({ error }: { readonly error: unknown }) {
  const known = error instanceof HearthError;
  const message = known ? error.message : `this page failed: ${error instanceof Error ? error.message : "unknown"}`;
  return (
    <p class="failure" role="alert">
      <strong>{known ? error.code : "FAULT"}</strong> {shown(message, 2_000)}
      {known && error.hint !== "" && <span class="hint"> Next: {shown(error.hint, 500)}</span>}
      {known && /another RPC/.test(error.hint) && <> <a href="#/network">{TEXTS.rpcs}</a></>}
    </p>
  );
}
