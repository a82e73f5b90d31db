// What a reader of a table cannot guess, said once beneath it.

import { SHOWN_DIGITS } from "../../generated/bounds";

export function Notes({ reputation }: { readonly reputation?: boolean }) {
  return (
    <p class="soft notes">
      ~ before an amount: rounded to {SHOWN_DIGITS} digits; all of it stands on hover.
      {reputation === true && (
        <>
          {" "}
          Reputation: of what a node took on lately, the share that it did, weighed by what that paid; one that has done nothing yet is at 50 %, and
          half of what was seen is forgotten in 30 days.
        </>
      )}
    </p>
  );
}
