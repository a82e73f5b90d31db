// What a reader compares on another machine before he signs: the hash of a call's data, and four words of its job.

import type { Hex } from "../../core/bytes";
import type { CallFingerprint } from "../../core/call-fingerprint";
import type { Network } from "../../core/network";
import { useLoad } from "../load";
import { useWallets } from "../wallet";
import { TEXTS } from "../texts";
import { Whole } from "./values";

interface Props {
  readonly call: { readonly to: Hex; readonly data: Hex };
  readonly network: Network;
}

export function CallMarks({ call, network }: Props) {
  const read = async (): Promise<CallFingerprint> => (await import("../../core/call-fingerprint")).fingerprintOf(call, network);
  const { value, error } = useLoad(read, `${call.to} ${call.data}`, []);
  if (error !== undefined) return <>not known: this part of the page cannot be loaded</>;
  if (value === undefined) return <>{TEXTS.nothingYet}</>;
  return (
    <>
      keccak256 <Whole hex={value.hash} />
      {value.words !== undefined && (
        <>
          ; four words of the job: <strong class="words">{value.words}</strong>
        </>
      )}
    </>
  );
}

// The same of what the wallet asks its owner about now, by the very data that it was given.
export function Asked() {
  const { session } = useWallets(undefined);
  if (session === undefined || session.asked.length === 0) return null;
  return (
    <p id="asked-of-wallet" class="note">
      What your wallet was given to sign:{" "}
      {session.asked.map((call, place) => (
        <span key={place}>
          <CallMarks key={call.data} call={call} network={session.network} />.{" "}
        </span>
      ))}
      On another machine <code>hearth job explain</code>, with the data that your wallet shows, says the same and what it does.
    </p>
  );
}
