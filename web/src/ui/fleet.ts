// The market's nodes as a page shows them: read anew when something happened, and as their beats run out.

import { type Fleet, readFleet } from "../chain/nodes";
import { beatOf, useLoad } from "./load";
import type { Loaded } from "./unreachable";
import type { Context } from "./context";

export function useFleet({ live, network }: Context): Loaded<Fleet> {
  const ready = live.state === "ready" ? live : undefined;
  return useLoad(
    ready === undefined ? undefined : () => readFleet(ready.market, ready.head),
    network?.name ?? "",
    [ready?.changed.hash, beatOf(ready?.head.time, network?.nodeParameters.dead_after)],
    ready?.seen,
  );
}
