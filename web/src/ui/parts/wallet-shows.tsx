// What the wallet will show of a call, beside the button that asks it.

import type { Hex } from "../../core/bytes";
import type { Network } from "../../core/network";
import { formatAmount } from "../../core/units";
import { Whole } from "./shown";

interface Props {
  readonly id: string;
  readonly network: Network;
  // What the call takes of the market's asset, the contract that it calls, and the function.
  readonly takes: bigint;
  readonly to: Hex;
  readonly name: string;
}

export function WalletShows({ id, network, takes, to, name }: Props) {
  const { asset } = network;
  const inToken = asset.address !== null && takes > 0n;
  return (
    <p id={id}>
      What your wallet will show:{" "}
      {asset.address !== null && inToken && (
        <>
          first an approval of exactly {formatAmount(takes, asset)} by <Whole hex={asset.address} />, function <code>approve</code>; then{" "}
        </>
      )}
      {asset.address === null && takes > 0n ? formatAmount(takes, asset) : "no coin"} to <Whole hex={to} />, function <code>{name}</code>.
    </p>
  );
}
