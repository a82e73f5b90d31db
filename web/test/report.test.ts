import { describe, expect, it } from "vitest";

import { fromHex, utf8 } from "../src/core/bytes";
import { decode, type Json } from "../src/core/canonical";
import { codeOf } from "../src/core/errors";
import { checkResult, contradicts, logsOf, readReport } from "../src/core/result";
import { vectors } from "./vectors";

interface Vectors {
  results: { text: string; index: number; outcome: string; code?: string; is?: unknown[] }[];
  reports: { text: string; detail: string; stderr_tail: string; kept_until: number | null; logs: unknown }[];
  logs: { job: string; index: number; result: string; kept: string | null; why: string }[];
}

const said = vectors<Vectors>("report");
const SPEC = Uint8Array.from({ length: 32 }, (_, at) => at);

function logs(document: Json): unknown {
  try {
    const cid = logsOf(document);
    return cid === undefined ? null : { cid: String(cid) };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

describe("result and report", () => {
  it("takes exactly the results that the library takes for a unit's", () => {
    for (const { text, index, outcome, ...expected } of said.results) {
      let found: { code?: string; is?: unknown[] };
      try {
        const result = checkResult(decode(utf8(text)), SPEC, index, outcome);
        expect(result.outcome).toBe(outcome);
        found = { is: [result.status, result.exitCode, result.outputs] };
      } catch (error) {
        found = { code: codeOf(error) };
      }
      expect({ text, index, ...found }).toEqual({ text, index, ...expected });
    }
    expect(new Set(said.results.map(({ code }) => code))).toEqual(new Set([undefined, "BAD_DOCUMENT"]));
  });

  it("believes of a report what the library believes", () => {
    for (const { text, ...expected } of said.reports) {
      const document = decode(utf8(text));
      const { detail, stderrTail, keptUntil } = readReport(document);
      const found = { detail, stderr_tail: stderrTail, kept_until: keptUntil ?? null, logs: logs(document) };
      expect({ text, ...found }).toEqual({ text, ...expected });
    }
    expect(said.reports.some(({ kept_until: moment }) => moment !== null)).toBe(true);
  });

  it("says which log names another result than storage keeps", () => {
    for (const { job, index, result, kept, why } of said.logs) {
      const event = { jobId: fromHex(job), index, result: fromHex(result) };
      expect(contradicts(event, kept === null ? undefined : fromHex(kept))).toBe(why);
    }
    expect(said.logs.some(({ why }) => why !== "")).toBe(true);
  });
});
