// The node that a route names, as its page and its owner's show it.

import { type NodeView, readNode } from "../chain/owning";
import { beatOf, useLoad } from "./load";
import type { Loaded } from "./unreachable";
import type { Context } from "./context";

// Read anew when something happened, and as its beats run out.
export function useNode({ live, network }: Context, id: number | undefined): Loaded<NodeView> {
  const ready = live.state === "ready" ? live : undefined;
  return useLoad(
    ready === undefined || id === undefined ? undefined : () => readNode(ready.market, ready.head, id),
    `node ${id}`,
    [ready?.market, ready?.changed.hash, beatOf(ready?.head.time, network?.nodeParameters.dead_after)],
    ready?.seen,
  );
}

// A node's number in a link, which anybody may have written.
export function nodeIdOf(part: string | undefined): number | undefined {
  const id = /^[1-9][0-9]{0,9}$/.test(part ?? "") ? Number(part) : 0;
  return id > 0 && id < 2 ** 32 ? id : undefined;
}
