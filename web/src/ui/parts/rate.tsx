// A price per hour, rounded as people read it; the exact one stands in its title.

import { type Asset, formatRate, showRate } from "../../core/units";

export function Rate({ rate, asset }: { readonly rate: bigint | undefined; readonly asset: Asset }) {
  if (rate === undefined) return null;
  return <data value={String(rate)} title={formatRate(rate, asset)}>{showRate(rate, asset)}</data>;
}
