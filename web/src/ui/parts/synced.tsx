// Up to which block the page has read, how long ago, and why it reads no further.

import { useEffect, useState } from "preact/hooks";

import type { Live } from "../context";
import { passes } from "../unreachable";
import { TEXTS } from "../texts";
import { Failure } from "./failure";

export function Synced({ live }: { readonly live: Live }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  if (live.state === "none") return null;
  if (live.state === "opening") return <p class="soft synced">{TEXTS.opening}</p>;
  if (live.state === "refused") {
    return (
      <>
        <Failure error={live.error} />
        <p class="row">
          <button type="button" onClick={live.retry}>
            Try again
          </button>
          {passes(live.error) && <span class="soft">{TEXTS.again}</span>}
        </p>
      </>
    );
  }
  const seconds = Math.max(0, Math.floor((now - live.seen) / 1_000));
  return (
    <>
      <p class="soft synced">{TEXTS.synced(live.head.number, seconds)}</p>
      {live.lost !== undefined && <Failure error={live.lost} />}
    </>
  );
}
