// The attesters that a job file names: their file is picked, read by the library's rules, and shown whole.

import { useRef, useState } from "preact/hooks";

import { digestOf } from "../../core/attesters";
import { readSet } from "../../core/attesters-file";
import { HearthError } from "../../core/errors";
import { located } from "../../core/spec";
import { MAX_SET_BYTES } from "../../generated/attesters";
import { clearFileField } from "./clear-file-field";
import { type Found, type JobFile, Problems } from "./job-file";
import { AttesterKeys } from "./attester-keys";
import { Stranger, Whole } from "./values";

export function Attesters({ file, found }: { readonly file: JobFile; readonly found: Found }) {
  const [refused, setRefused] = useState<{ readonly name: string; readonly error: unknown }>();
  const last = useRef(0);
  const { loaded } = found;
  const name = loaded.spec.verify.attesters;
  if (name === null) return null;
  const take = async (picked: File | undefined): Promise<void> => {
    if (picked === undefined) return;
    last.current += 1;
    const turn = last.current;
    // Whatever this one is, the one before it is no longer meant.
    file.setAttesters(name, undefined);
    setRefused(undefined);
    try {
      const set = await readSet(new Uint8Array(await picked.slice(0, MAX_SET_BYTES + 1).arrayBuffer()), name);
      if (turn === last.current) file.setAttesters(name, set);
    } catch (error) {
      if (turn === last.current) setRefused({ name, error: error instanceof HearthError ? located(loaded, error) : error });
    }
  };
  const set = file.attestersOf(name);
  return (
    <>
      <h2>Its attesters</h2>
      <p>
        <label>
          <Stranger text={name} />, as a file{" "}
          <input
            id="attesters-file"
            type="file"
            onClick={clearFileField}
            onChange={(event) => void take(event.currentTarget.files?.[0])}
          />
        </label>
      </p>
      <div aria-live="polite">
        {refused?.name === name && <Problems error={refused.error} />}
        {set !== undefined && (
          <>
            <p>
              {set.quorum} of these {set.keys.length} must sign a result before its worker is paid:
            </p>
            <AttesterKeys set={set} />
            <dl>
              <dt>Workers must accept the set</dt>
              <dd id="attesters-digest"><Whole hex={digestOf(set)} /></dd>
            </dl>
          </>
        )}
      </div>
    </>
  );
}
