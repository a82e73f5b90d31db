// What every page is given: what was opened, the market and its network, and what is known of the chain now.

import type { Block } from "../chain/answers";
import type { LastSeenJobs } from "../chain/last-seen";
import type { Market } from "../chain/market";
import type { HearthError } from "../core/errors";
import type { Network } from "../core/network";
import type { Opened } from "../data/opened-with";
import type { Named } from "../data/market";

export type Live =
  | { readonly state: "none" }
  | { readonly state: "opening" }
  // Where nobody answers it is looked at again by itself; `last` has what was shown before, of another visit too.
  | { readonly state: "refused"; readonly error: unknown; readonly retry: () => void; readonly last: LastSeenJobs | undefined }
  // `changed` is the newest block in which the market may have changed: pages read again when it moves, and else ask
  // nothing. `epoch` grows with each reorg. `lost` is why the last look at the head failed; what is shown is as old as
  // `seen`, in milliseconds since the epoch.
  | {
      readonly state: "ready";
      readonly market: Market;
      readonly last: LastSeenJobs | undefined;
      readonly head: Block;
      readonly changed: Block;
      readonly epoch: number;
      readonly seen: number;
      readonly lost: unknown;
    };

export interface Context {
  readonly opened: Opened;
  readonly network: Network | undefined;
  // Who names the market where no `hearth web` does.
  readonly by: Named["by"] | undefined;
  // What its file says.
  readonly raw?: Named["raw"] | undefined;
  // Why the network file cannot be used.
  readonly refused: HearthError | undefined;
  readonly live: Live;
  readonly choose: (named: Named | undefined) => void;
}

// A market that is known, at its newest block.
export interface Ready {
  readonly market: Market;
  readonly head: Block;
  readonly changed: Block;
}
