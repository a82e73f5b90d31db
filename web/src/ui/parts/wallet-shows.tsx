// What a wallet shows of a call, and how to compare it, beside the button that asks it.

import type { Hex } from "../../core/bytes";
import type { Network } from "../../core/network";
import { formatAmount } from "../../core/units";
import { Whole } from "./values";

interface Props {
  readonly id: string;
  readonly network: Network;
  // What the call takes of the market's asset, the contract that it calls, and the function.
  readonly takes: bigint;
  readonly to: Hex;
  readonly name: string;
  // Whether it is of a job, which four words name.
  readonly job?: boolean;
}

export function WalletShows({ id, network, takes, to, name, job = false }: Props) {
  const { asset } = network;
  const inToken = asset.address !== null && takes > 0n;
  return (
    <div id={id} class="note">
    <p>
      Compare with your wallet before you say yes:{" "}
      {asset.address !== null && inToken && (
        <>
          first an approval of exactly <strong>{formatAmount(takes, asset)}</strong>, to <Whole hex={asset.address} grouped />; then{" "}
        </>
      )}
      <strong>{asset.address === null && takes > 0n ? formatAmount(takes, asset) : "no coin"}</strong> to <Whole hex={to} grouped />, on chain{" "}
      {String(network.chainId)}.
    </p>
    <p class="soft">
      Most wallets shorten the address: its first and its last digits must be these. Some show no amount where it is none, and few name the
      method (<code>{name}</code>); the rest is raw data. While your wallet asks, the hash of those data{" "}
      {job && "and four words of the job "}stand here, and <code>hearth job explain</code> on another machine says the same of them. If
      anything differs, refuse it: nothing is sent then.
    </p>
    </div>
  );
}
