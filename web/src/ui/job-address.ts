// A job as addresses of this page name it: its id, and the block of its post where the address carries it.

import type { Hex } from "../core/bytes";

const ADDRESS = /^(0x[0-9a-fA-F]{64})(?:@([0-9]{1,15}))?$/;

// Undefined for what names no job.
export function jobAddress(part: string | undefined): { readonly job: Hex; readonly block: number | undefined } | undefined {
  const [, id, block] = ADDRESS.exec(part ?? "") ?? [];
  return id === undefined ? undefined : { job: id.toLowerCase() as Hex, block: block === undefined ? undefined : Number(block) };
}
