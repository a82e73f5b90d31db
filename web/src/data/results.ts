// A unit's result from whoever has it, checked on the way: the digest on chain, the document's canonical bytes, whose unit it
// is, every block of what it left. A worker may store anything: no more is read than the job's terms pay for.

import type { Hex } from "../core/bytes";
import { fromHex } from "../core/bytes";
import { decode, type Json } from "../core/canonical";
import { type Cid, cidOfDigest, parseCid } from "../core/cid";
import { HearthError } from "../core/errors";
import { checkResult, logsOf, type Report, readReport, type Result } from "../core/result";
import { shownLog } from "../core/text";
import { nameOf, type Terms, type Unit } from "../core/types";
import { type Found, limitsOfMarket, readFile, resolve, walk } from "../core/unixfs";
import { GIB, ZERO_HASH } from "../generated/bounds";
import { MAX_LOG_BYTES, MAX_OUTPUT_ENTRIES } from "../generated/outputs";
import { OUTCOME } from "../generated/states";
import type { Blocks } from "./blocks";

// Which result it is: the unit as the chain has it, and the digests that its last event names.
export interface Place {
  readonly terms: Terms;
  readonly index: number;
  readonly unit: Unit;
  readonly result: Hex;
  readonly report: Hex;
}

export interface Read {
  readonly result: Result;
  readonly report: Report | undefined;
  readonly stdout: string;
  readonly stderr: string;
  // What its outputs hold, the folder itself first; none where it left none.
  readonly files: readonly Found[];
  readonly root: Cid | undefined;
  // Why the report or the logs could not be read: they are beside the result.
  readonly lost: unknown;
}

export const outputLimits = (terms: Terms) =>
  limitsOfMarket(BigInt(terms.needs.diskGib) * BigInt(GIB), MAX_OUTPUT_ENTRIES + 1);

// Read a result with its report, its logs and the list of its files. Throws BLOCK_MISSING, BLOCK_CORRUPT, STORE_DOWN,
// BAD_DOCUMENT for another unit's, TOO_LARGE.
export async function readResult(place: Place, blocks: Blocks): Promise<Read> {
  const { terms, index, unit } = place;
  const document = await documentOf(place.result, blocks);
  const result = checkResult(document, fromHex(terms.spec), index, nameOf(OUTCOME, unit.outcome));
  const files: Found[] = [];
  const root = result.outputs === null ? undefined : parseCid(result.outputs.cid);
  if (root !== undefined) {
    for await (const one of walk(root, blocks.source, outputLimits(terms))) files.push(one);
  }
  const beside = await readBeside(place.report, blocks).catch((lost: unknown) => ({ lost }));
  return { result, files, root, report: undefined, stdout: "", stderr: "", lost: undefined, ...beside };
}

interface Beside {
  readonly report: Report | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

async function readBeside(digest: Hex, blocks: Blocks): Promise<Beside> {
  if (digest === ZERO_HASH) return { report: undefined, stdout: "", stderr: "" };
  const document = await documentOf(digest, blocks);
  const logs = logsOf(document);
  const texts = logs === undefined ? ["", ""] : [await textIn(logs, "stdout", blocks), await textIn(logs, "stderr", blocks)];
  return { report: readReport(document), stdout: texts[0] ?? "", stderr: texts[1] ?? "" };
}

async function documentOf(digest: Hex, blocks: Blocks): Promise<Json> {
  return decode(await blocks.source(cidOfDigest(fromHex(digest))));
}

async function textIn(folder: Cid, name: string, blocks: Blocks): Promise<string> {
  const limits = limitsOfMarket(BigInt(MAX_LOG_BYTES), 3);
  const decoder = new TextDecoder();
  let text = "";
  try {
    const cid = await resolve(folder, name, blocks.source);
    for await (const part of readFile(cid, blocks.source, limits)) text += decoder.decode(part, { stream: true });
  } catch (error) {
    if (error instanceof HearthError && error.code === "NOT_FOUND") return "";
    throw error;
  }
  return shownLog(text + decoder.decode());
}
