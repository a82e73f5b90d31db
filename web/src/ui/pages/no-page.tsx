// What stands at an address of this page that is none: that there is nothing, and where to go.

import { jobAddress } from "../job-address";
import { Stranger } from "../parts/values";
import { hrefOf, useRoute } from "../router";
import { TEXTS } from "../texts";

export function NoPage() {
  const { parts } = useRoute();
  const job = parts.find((part) => jobAddress(part) !== undefined);
  return (
    <>
      <h1>{TEXTS.noPage}</h1>
      <p>
        This page has nothing at <code><Stranger text={`#/${parts.join("/")}`} most={200} /></code>.
      </p>
      <ul id="instead">
        {job !== undefined && (
          <li>
            <a href={hrefOf(["job", job])}>The job of this id</a>
          </li>
        )}
        <li>
          <a href={hrefOf(["jobs"])}>The jobs of this market</a>
        </li>
        <li>
          <a href={hrefOf(["submit"])}>Submit a job</a>
        </li>
        <li>
          <a href={hrefOf(["provide"])}>Provide a machine</a>
        </li>
      </ul>
      <p>Every other page is in the menu above. A link from elsewhere may be of another version of this page.</p>
    </>
  );
}
