// A job file as it is written, checked on this machine by the rules of `hearth check`, and what it brings.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";

import type { AttesterSet } from "../../core/attesters";
import { sha256, toHex } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { HearthError } from "../../core/errors";
import { canonicalBytes, dataOf, type ResolvedSpec, resolve } from "../../core/resolve";
import { type LoadedSpec, loadSpec, localSources } from "../../core/spec";
import type { Network } from "../../core/network";
import { shown } from "../../core/text";
import { type Named, nameSource } from "../../data/job-data";
import { type Draft, draftOf, MOST_DRAFT } from "../../data/draft";
import { fromInput } from "../../data/picked-files";
import { type Kept, type Pen, penOf, writingOf } from "../../data/writing";
import { clearFileField } from "./clear-file-field";
import { Failure } from "./failure";
import { offline } from "./lazy";
import { Stranger } from "./values";

// Names of one folder that are told.
const MOST_LEFT = 8;

export interface Found {
  readonly loaded: LoadedSpec;
  readonly document: ResolvedSpec | undefined;
  readonly digest: Uint8Array<ArrayBuffer> | undefined;
  // Why there is no document yet.
  readonly lacks: unknown;
}

export interface JobFile extends Pen {
  readonly text: string;
  // Which file it is, of all that stood here.
  readonly which: number;
  // Whether the text lasts over a reload; undefined where there is no market.
  readonly kept: Kept | undefined;
  readonly draft: Draft;
  readonly named: ReadonlyMap<string, Named>;
  // The set of attesters picked for the file that a job file names.
  attestersOf(name: string): AttesterSet | undefined;
  readonly found: Found | undefined;
  readonly error: unknown;
  setError(error: unknown): void;
}

export function useJobFile(network?: Network): JobFile {
  const draft = useMemo(() => draftOf(network), [network]);
  const [writing, change] = useState(() => writingOf(draft));
  const { text, which, named, sets } = writing;
  const pen = penOf(draft, which, change);
  const [last, setFound] = useState<Found & { readonly which: number }>();
  // What was found in another file says nothing of this one.
  const found = last?.which === which ? last : undefined;
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let ended = false;
    if (text.trim() === "") {
      setFound(undefined);
      setError(undefined);
      return undefined;
    }
    check(text, named).then(
      (value) => {
        if (ended) return;
        setFound({ ...value, which });
        setError(undefined);
      },
      (why: unknown) => {
        if (ended) return;
        setFound(undefined);
        setError(why);
      },
    );
    return () => {
      ended = true;
    };
  }, [text, named]);
  const kept = network === undefined ? undefined : writing.kept;
  return { ...pen, text, which, kept, draft, named, attestersOf: (name) => sets.get(name), found, error, setError };
}

// A button that goes with what it does leaves the keyboard at the text.
const toText = (): void => document.getElementById("job-file")?.focus();

// The text, beside whatever else shows it.
export function Editor({ file, children }: { readonly file: JobFile; readonly children?: ComponentChildren }) {
  const { text, setText, begin, error, setError, found } = file;
  const showExample = async (): Promise<void> => {
    try {
      const { text: shown, picks } = (await import("../../data/example")).example();
      begin(shown, picks);
      toText();
    } catch {
      setError(offline());
    }
  };
  return (
    <>
      <p class="row">
        <label>
          Open{" "}
          <input
            type="file"
            accept=".yaml,.yml,.json"
            onClick={clearFileField}
            onChange={(event) => void event.currentTarget.files?.[0]?.text().then(begin, setError)}
          />
        </label>
        {text.trim() === "" && (
          <button type="button" onClick={() => void showExample()}>
            Show an example
          </button>
        )}
      </p>
      <div class="sides">
        {children}
        <div>
          <label for="job-file">The job file</label>
          <textarea id="job-file" rows={16} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <Keeping file={file} />
          <div aria-live="polite">
            {error !== undefined && <Problems error={error} />}
            {found !== undefined && (
              <>
                <p class="good">This is a job file.</p>
                {found.loaded.notes.map((note) => (
                  <p key={note}>{note}</p>
                ))}
              </>
            )}
          </div>
        </div>
      </div>
    </>
  );
}

// Whether the text is there again after a reload; what was picked is not.
function Keeping({ file: { text, begin, kept } }: { readonly file: JobFile }) {
  if (text === "" || kept === undefined) return null;
  const why = text.length > MOST_DRAFT ? "it is too long" : "it stores nothing for this page";
  return (
    <p class="row">
      <span class="soft" id="draft">
        {kept === "kept" && "A draft: this browser keeps the text until it is posted, but not the files that you pick."}
        {kept === "unchanged" && "The file of a posted job, which a link put here: this browser keeps it once you change it."}
        {kept === "not" && `Not kept by this browser: ${why}.`}
      </span>
      <button type="button" onClick={() => { begin(""); toText(); }}>
        Discard it
      </button>
    </p>
  );
}

async function check(text: string, named: ReadonlyMap<string, Named>): Promise<Found> {
  const loaded = await loadSpec(text, "job.yaml");
  try {
    const document = resolve(loaded.spec, (src) => {
      const one = named.get(src);
      return one === undefined ? undefined : dataOf(one.cid, one.size);
    });
    return { loaded, document, digest: await sha256(canonicalBytes(document)), lacks: undefined };
  } catch (lacks) {
    if (!(lacks instanceof HearthError)) throw lacks;
    return { loaded, document: undefined, digest: undefined, lacks };
  }
}

interface Told {
  readonly line: number | null;
  readonly field: string;
  readonly message: string;
  readonly hint: string;
}

export function Problems({ error }: { readonly error: unknown }) {
  const problems = error instanceof HearthError ? error.details["problems"] : undefined;
  if (!Array.isArray(problems)) return <Failure error={error} />;
  return (
    <div class="failure" role="alert">
      <ul>
        {(problems as readonly Told[]).map((one) => (
          <li key={`${one.line} ${one.field} ${one.message}`}>
            {one.line !== null && `line ${one.line}: `}
            {one.field !== "" && <code>{one.field}</code>} <Stranger text={one.message} most={500} />
            {one.hint !== "" && <span class="hint"> Next: {one.hint}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

// The files and folders of this machine that a job names, each once.
const sourcesOf = ({ loaded }: Found): string[] =>
  [...new Set(localSources(loaded.spec).map(([, src]) => src))].filter((src) => !src.includes("://"));

// What the job brings: each is named by the file or folder that the reader picks for it.
export function Sources({ file, found }: { readonly file: JobFile; readonly found: Found }) {
  const [error, setError] = useState<unknown>();
  const { named } = file;
  const sources = sourcesOf(found);
  if (sources.length === 0) return null;
  const take = async (src: string, files: readonly File[]): Promise<void> => {
    try {
      await file.pick(src, nameSource(fromInput(files), src === found.loaded.spec.workdir));
      setError(undefined);
    } catch (why) {
      setError(why);
    }
  };
  return (
    <>
      <h2>What it brings</h2>
      {error !== undefined && <Failure error={error} />}
      <ul>
        {sources.map((src) => (
          <li key={src}>
            <Stranger text={src} />{" "}
            {named.has(src) && <code>{named.get(src)?.cid}</code>}
            <LeftOut paths={named.get(src)?.left ?? []} />
            <span class="row">
              <label>
                {named.has(src) ? "another file" : "as a file"}{" "}
                <input type="file" onClick={clearFileField} onChange={(event) => void take(src, [...(event.currentTarget.files ?? [])])} />
              </label>
              <label>
                or a folder{" "}
                <input
                  type="file"
                  {...{ webkitdirectory: true }}
                  onClick={clearFileField}
                  onChange={(event) => void take(src, [...(event.currentTarget.files ?? [])])}
                />
              </label>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

// What of a picked folder no job takes: its reader may miss it in the job.
function LeftOut({ paths }: { readonly paths: readonly string[] }) {
  if (paths.length === 0) return null;
  return (
    <p class="soft">
      Left out, since no job takes what may hold keys or tokens: <Stranger text={paths.slice(0, MOST_LEFT).join(", ")} most={500} />
      {paths.length > MOST_LEFT && ` and ${paths.length - MOST_LEFT} more`}
    </p>
  );
}

export function Document({ file, found }: { readonly file: JobFile; readonly found: Found }) {
  if (found.document === undefined || found.digest === undefined) {
    const missing = sourcesOf(found).filter((src) => !file.named.has(src));
    return (
      <>
        <h2>Its document</h2>
        {missing.length === 0 ? (
          <Failure error={found.lacks} />
        ) : (
          <p id="missing">
            It is named once you have picked, above:{" "}
            {missing.map((src, place) => (
              <span key={src}>
                {place > 0 && ", "}
                <Stranger text={src} />
              </span>
            ))}
          </p>
        )}
      </>
    );
  }
  return (
    <>
      <h2>Its document</h2>
      <dl>
        <dt>Digest</dt>
        <dd class="mono" id="spec-digest">{toHex(found.digest)}</dd>
        <dt>CID</dt>
        <dd class="mono">{String(cidOfDigest(found.digest))}</dd>
      </dl>
      <details>
        <summary>As every worker reads it</summary>
        <pre>{shown(JSON.stringify(found.document, null, 2), 2_000_000)}</pre>
      </details>
    </>
  );
}
