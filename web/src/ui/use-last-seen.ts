// What was shown last, where no provider answers: kept while one does, read once none does.

import { useEffect, useState } from "preact/hooks";

import type { Block } from "../chain/answers";
import type { Standing } from "../chain/jobs";
import type { Kind, LastSeen } from "../chain/last-seen";
import type { MarketEvent } from "../core/events";
import type { Live } from "./context";
import { POLL } from "./live";
import { isLost, lastShown } from "./unreachable";

// What is kept is at most so much older than what was shown, in looks.
const OFTEN = 8;

// Jobs as they were read at a block, and the events of a job that is shown alone.
export interface Shown {
  readonly at: Block;
  readonly jobs: readonly Standing[];
  readonly events?: readonly MarketEvent[];
}

// Keep what is shown: as of the newest block, where the market has not changed since it was read.
export function useKeep(live: Live, kind: Kind | undefined, shown: Shown | undefined): void {
  const ready = live.state === "ready" && live.lost === undefined ? live : undefined;
  const holds = ready !== undefined && shown !== undefined && ready.changed.number <= shown.at.number;
  const beat = Math.floor((ready?.seen ?? 0) / (OFTEN * POLL));
  useEffect(() => {
    if (!holds || kind === undefined) return;
    const { jobs, events = [] } = shown;
    void ready.last?.keep(kind, { at: ready.head, seen: ready.seen, jobs, events: events.map(({ log }) => log) });
  }, [holds, kind, shown?.at.hash, beat]);
}

// What was kept under the first of these names that has anything; undefined while a provider answers that has not been lost.
export function useLastSeen(live: Live, ...kinds: readonly Kind[]): LastSeen | undefined {
  const [held, setHeld] = useState<{ readonly key: string; readonly last: LastSeen }>();
  const key = kinds.join();
  const lost = isLost(live);
  useEffect(() => {
    if (!lost || (live.state !== "refused" && live.state !== "ready")) return undefined;
    let ended = false;
    const read = async (): Promise<void> => {
      for (const kind of kinds) {
        const last = await live.last?.read(kind);
        if (ended || last === undefined) continue;
        setHeld({ key, last });
        return;
      }
    };
    void read();
    return () => {
      ended = true;
    };
  }, [lost, key]);
  return lastShown(live, held, key);
}
