// What a worker stored of a unit: the result, which is held against the chain, and the report, which is its worker's
// word alone. Mirrors `check_result`, `contradicts` and the reading of reports of hearth/client/job/results.py
// (protocol.md "Result and report"; worker/attempt/results.py writes both).

import { FAR_MOMENT, MAX_DETAIL } from "../generated/results";
import { type Bytes, type Cid, parseCid } from "./cid";
import { toHex } from "./bytes";
import type { Json, JsonObject } from "./canonical";
import { HearthError } from "./errors";
import { first } from "./unicode";

const HINT = "hearth job show JOB";

// A unit's result: `outputs` null where it left none; their CID is a text that is not parsed yet.
export interface Result {
  readonly outcome: string;
  readonly status: string;
  readonly exitCode: number | null;
  readonly outputs: { readonly cid: string; readonly size: number } | null;
}

// What is believed of a report, or of a refusal: texts of 4096 characters at most, "" where there is none; the second
// of the chain until which outputs are kept, undefined where it says none.
export interface Report {
  readonly detail: string;
  readonly stderrTail: string;
  readonly keptUntil: number | undefined;
}

// Return a result whose document is of the unit that the chain says: `spec` the 32 bytes of its terms, `index` the
// unit, `outcome` the chain's word for it ("ok", "exit", ...). Throws BAD_DOCUMENT for another's, or what is no result.
export function checkResult(document: Json, spec: Uint8Array, index: number, outcome: string): Result {
  const fields = objectOf(document);
  const expected: readonly (readonly [string, Json])[] = [
    ["spec", toHex(spec).slice(2)],
    ["index", index],
    ["outcome", outcome],
  ];
  for (const [name, value] of expected) {
    if (fields?.[name] === value) continue;
    const found = brief(JSON.stringify(fields === undefined ? document : (fields[name] ?? null)));
    throw bad(`the result's ${name} is ${found}, and the chain says ${JSON.stringify(value)}: it is not this unit's`);
  }
  const { outputs, status, exit_code: exitCode } = fields ?? {};
  const named = outputs === null || outputs === undefined ? null : outputsOf(outputs);
  if (named === undefined) throw bad("the result names no outputs that can be read");
  if (outputs === undefined || typeof status !== "string" || !/^[a-z_]{1,32}$/.test(status)) {
    throw bad("the result document lacks a field");
  }
  if (exitCode !== null && typeof exitCode !== "number") throw bad("the result's exit code is no number");
  return { outcome, status, exitCode, outputs: named };
}

// Return what a report says; one that is not of the form says nothing.
export function readReport(document: Json): Report {
  const fields = objectOf(document) ?? {};
  const moment = fields["kept_until"];
  const keptUntil = typeof moment === "number" && moment > 0 && moment < FAR_MOMENT ? moment : undefined;
  return { detail: wordsIn(fields, "detail"), stderrTail: wordsIn(fields, "stderr_tail"), keptUntil };
}

// Return the CID of the folder with stdout and stderr, undefined where a report names none. Throws BAD_CID.
export function logsOf(document: Json): Cid | undefined {
  const logs = objectOf(objectOf(document)?.["logs"]);
  if (logs === undefined) return undefined;
  const { cid } = logs;
  if (typeof cid === "string") return parseCid(cid);
  throw new HearthError("BAD_CID", "the report names its logs by no CID", HINT);
}

// Return why a log of a result is not the unit's, by the digest that storage keeps of it; "" where it may be.
export function contradicts(
  event: { readonly jobId: Bytes; readonly index: number; readonly result: Bytes },
  kept: Uint8Array | undefined,
): string {
  const [inLog, inStorage] = [toHex(event.result), kept === undefined ? undefined : toHex(kept)];
  if (inStorage === undefined || inLog === inStorage) return "";
  return (
    `unit ${event.index} of job ${toHex(event.jobId).slice(0, 14)} has the result ${inStorage.slice(2, 18)} in ` +
    `storage, and its log names ${inLog.slice(2, 18)}`
  );
}

// ---- inside ----

function objectOf(value: Json | undefined): JsonObject | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

// Return a result's outputs, a CID's text and a number of bytes; undefined where they are not.
function outputsOf(outputs: Json): { cid: string; size: number } | undefined {
  const { cid, size } = objectOf(outputs) ?? {};
  return typeof cid === "string" && typeof size === "number" && size >= 0 ? { cid, size } : undefined;
}

function wordsIn(report: JsonObject, name: string): string {
  const found = report[name];
  return typeof found === "string" ? first(found, MAX_DETAIL) : "";
}

const brief = (text: string): string => (text.length <= 80 ? text : `${first(text, 77)}...`);

function bad(why: string): HearthError {
  return new HearthError("BAD_DOCUMENT", why, HINT);
}
