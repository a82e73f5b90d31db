// A box by which a reader waves a refusal off: of which document it was ticked, undefined for none.

import type { Hex } from "./bytes";

export type Waiver = Hex | undefined;

// Whether it counts as ticked. One that does not stand, since nothing is refused, is not; nor one of another document.
export const isWaived = (waiver: Waiver, digest: Hex, stands: boolean): boolean => stands && waiver === digest;

// What is left of it: a refusal that comes back is a new one.
export const waiverAfter = (waiver: Waiver, stands: boolean): Waiver => (stands ? waiver : undefined);
