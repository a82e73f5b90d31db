// Said above what was kept of an earlier look: of which block it is, how old, and what it is not.

import { useEffect, useState } from "preact/hooks";

import type { LastSeen } from "../../chain/last-seen";
import { formatDuration } from "../../core/units";
import { TEXTS } from "../texts";
import { Moment } from "./values";

export function LastSeenNote({ last: { at, seen } }: { readonly last: LastSeen }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <p role="note" class="stale">
      <strong>{TEXTS.last(at.number)}</strong> <Moment at={Math.floor(seen / 1_000)} />, {formatDuration(Math.max(0, Math.floor((now - seen) / 1_000)))} ago.{" "}
      {TEXTS.lastEnd}
    </p>
  );
}
