// What is known of a file's calls before its reader asks for anything: a job that is on chain already, a call that this browser
// had signed. It is said, and decides nothing: the same is looked at again before a wallet opens.

import type { Block } from "../../chain/answers";
import type { Market } from "../../chain/market";
import type { Hex } from "../../core/bytes";
import { moment } from "../../core/moments";
import type { Prepared } from "../../core/prepared";
import type { CallSummary } from "../../core/call-summary";
import { browserSigned, SignedCalls, signedId } from "../../wallet/signed";
import { useLoad } from "../load";
import { hrefOf } from "../router";
import { Failure } from "./failure";
import { Whole } from "./values";

interface Props {
  readonly market: Market;
  readonly calls: readonly { readonly call: Prepared; readonly told: CallSummary }[];
  readonly head: Block;
  readonly changed: Hex;
  readonly seen: number;
}

export function KnownCalls({ market, calls, head, changed, seen }: Props) {
  const posts = calls.flatMap(({ call, told }) => (call.function === "post" && told.job !== undefined ? [told.job] : []));
  const posted = useLoad(
    posts.length === 0
      ? undefined
      : async () => {
          const [words] = await market.read(head, market.jobs(posts));
          return posts.filter((_, place) => words[place] !== 0n);
        },
    "",
    [changed],
    seen,
  );
  const signed = useLoad(() => signedAt(market, calls.map(({ call }) => call)), "", [changed]);
  return (
    <div id="known">
      {posted.error !== undefined && <Failure error={posted.error} />}
      {posted.value?.map((job) => (
        <p key={job} role="note">
          <strong>This job is posted already:</strong>{" "}
          <a href={hrefOf(["job", job])}>
            <Whole hex={job} />
          </a>
          . A market takes it once: there is nothing to sign.
        </p>
      ))}
      {signed.value?.map(({ place, at, done }) => (
        <p key={place} role="note">
          {`Call ${place + 1} of ${calls.length} ${done ? "was signed in this browser and is in a block" : "may have been sent from this browser"}, asked for at ${moment(at)}.`}
        </p>
      ))}
    </div>
  );
}

async function signedAt({ network }: Market, calls: readonly Prepared[]): Promise<{ place: number; at: number; done: boolean }[]> {
  const records = new SignedCalls(browserSigned);
  const found = await Promise.all(calls.map(async (call) => records.find(await signedId(call, network)).catch(() => undefined)));
  return found.flatMap((one, place) => (one === undefined || one.refused !== undefined ? [] : [{ place, at: one.at, done: one.done }]));
}
