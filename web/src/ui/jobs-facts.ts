// What a list of jobs says besides how they stand, by their ids: the seconds of their posts, and what they cost so far. What was not
// read is left out.

import type { Jobs } from "../chain/jobs";
import type { Hex } from "../core/bytes";

export interface Facts {
  // By whom they were read: a reorg makes another one.
  readonly by: Jobs;
  readonly posted: ReadonlyMap<Hex, number>;
  readonly costs: ReadonlyMap<Hex, bigint>;
  // Jobs that had ended when their costs were read: these change no more.
  readonly ended: ReadonlySet<Hex>;
}
