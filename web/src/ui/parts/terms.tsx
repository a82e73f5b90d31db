// A job's terms, frozen at its post: what it asks for, what it pays at most, who judges it, and the words themselves.

import { type ComponentChildren, Fragment } from "preact";

import type { Standing } from "../../chain/jobs";
import { fromHex, type Hex, hexNumber, hexWord } from "../../core/bytes";
import { cidOfDigest } from "../../core/cid";
import { counted } from "../../core/counted";
import { bond } from "../../core/money";
import { type Parent, unpackParents } from "../../core/parents";
import { slugOf, vendorOf } from "../../core/tiers";
import { leasesOf, nameOf, type Needs, type Terms } from "../../core/types";
import { type Asset, formatAmount, formatDuration, showRate } from "../../core/units";
import { CONDITION } from "../../generated/parents";
import { BILLING, TERMS_FLAG } from "../../generated/states";
import { hrefOf } from "../router";
import { Whole } from "./values";

const BILLED = { [BILLING.FIXED]: "a fixed price", [BILLING.FUEL]: "by fuel", [BILLING.METERED]: "by the second" };

export function TermsOf({ standing, asset, attesters }: { readonly standing: Standing; readonly asset: Asset; readonly attesters: Hex }) {
  const { posted, view } = standing;
  const { terms, parents } = posted;
  const { needs } = terms;
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    ["spec", String(cidOfDigest(fromHex(terms.spec)))],
    ["units", `${counted(terms.units, "unit")} in ${counted(leasesOf(terms), "lease")}`],
    ["billing", `${BILLED[terms.billing]}, at most ${showRate(terms.ceiling, asset)}`],
    ["time", `${formatDuration(terms.maxSeconds)} a unit, ${counted(terms.maxAttempts, "attempt")}`],
    ["keeper fee", formatAmount(terms.keeperFee, asset)],
    ["GPU", needs.gpuCount === 0 ? "none" : `${needs.gpuCount} x ${gpuAsked(needs)}, ${needs.vramGib} GiB`],
    ["cores, RAM, disk", `${needs.cores}, ${needs.ramGib} GiB, ${needs.diskGib} GiB`],
    ["judge", judgeOf(terms, attesters)],
    ["a lease's bond", formatAmount(bond(terms, view.policy), asset)],
    ...(terms.checkpointEvery === 0 ? [] : [["checkpoints", `every ${formatDuration(terms.checkpointEvery)}; another node can resume it`] as const]),
    ...((terms.flags & TERMS_FLAG.KEEP) === 0 ? [] : [["results", "kept: the chain itself has their digests"] as const]),
    ["policy", hexNumber(terms.policy)],
    ["waits for", parents.length === 0 ? "nothing" : <Parents of={unpackParents(parents)} />],
  ];
  return (
    <>
      <h2>Terms</h2>
      <dl>
        {rows.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd class={name === "spec" || name === "policy" ? "mono" : undefined}>{value}</dd>
          </Fragment>
        ))}
      </dl>
      <details>
        <summary>The nine words</summary>
        <pre>{posted.packed.map((word) => (typeof word === "bigint" ? hexWord(word) : word)).join("\n")}</pre>
      </details>
    </>
  );
}

function Parents({ of }: { readonly of: readonly Parent[] }) {
  return (
    <>
      {of.map(({ job, condition }, place) => (
        <Fragment key={job}>
          {place > 0 && ", "}
          <a href={hrefOf(["job", job])}>
            <Whole hex={job} />
          </a>
          {` (${nameOf(CONDITION, condition)})`}
        </Fragment>
      ))}
    </>
  );
}

function judgeOf(terms: Terms, attesters: Hex): string {
  if (BigInt(terms.judge) === 0n) return "none";
  return terms.judge === attesters ? `signatures of attesters (${terms.judge})` : terms.judge;
}

// What a job asks of the GPUs of a slot.
function gpuAsked({ runtimes, tier, exact }: Needs): string {
  if (tier === 0) return "any";
  return `${slugOf(vendorOf(runtimes), tier)} ${exact ? "and no other" : "or better"}`;
}
