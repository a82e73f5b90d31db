// Which wallet, which account, which chain: found by EIP-6963, connected by a click.

import { useState } from "preact/hooks";

import type { Network } from "../../core/network";
import type { Announced } from "../../wallet/discover";
import { requireOwnPlace } from "../../wallet/signing-place";
import type { Wallets } from "../wallet";
import { Button } from "./button";
import { Failure } from "./failure";
import { Stranger, Whole } from "./values";

interface Props {
  readonly network: Network;
  readonly wallets: Wallets;
}

export function Wallet({ network, wallets }: Props) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const { found, session } = wallets;
  const run = async (act: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    await act().catch(setError);
    setBusy(false);
  };
  const place = refusalOfPlace();
  if (place !== undefined) return <Failure error={place} />;
  return (
    <section aria-label="Wallet">
      {session === undefined ? (
        <Choice found={found} busy={busy} connect={(wallet) => void run(() => wallets.connect(wallet))} />
      ) : (
        <>
          <dl>
            <dt>Wallet</dt>
            <dd><Logo wallet={session.wallet} /> <Stranger text={session.wallet.name} /></dd>
            <dt>Account</dt>
            <dd id="account">{session.account === undefined ? "none: the wallet is locked" : <Whole hex={session.account} />}</dd>
            <dt>Chain</dt>
            <dd id="chain">{session.chainId === undefined ? "not known" : String(session.chainId)}</dd>
          </dl>
          {session.chainId !== network.chainId && (
            <>
              <p>
                The market is on chain {String(network.chainId)}. If the wallet does not know it, it is added with these RPCs:
              </p>
              <ul class="mono">{network.rpc.map((url) => <li key={url}><Stranger text={url} most={2_048} /></li>)}</ul>
            </>
          )}
          <p class="row">
            {session.chainId !== network.chainId && (
              <Button busy={busy} onClick={() => void run(() => session.switchChain())}>
                Switch the wallet to chain {String(network.chainId)}
              </Button>
            )}
            <Button busy={busy} onClick={() => wallets.leave()}>
              Leave this wallet
            </Button>
          </p>
        </>
      )}
      <div aria-live="polite">{error !== undefined && <Failure error={error} />}</div>
    </section>
  );
}

interface ChoiceProps {
  readonly found: readonly Announced[];
  readonly busy: boolean;
  readonly connect: (wallet: Announced) => void;
}

function Choice({ found, busy, connect }: ChoiceProps) {
  if (found.length === 0) {
    return <p>No wallet announces itself in this browser. Install one that follows EIP-6963, use the command line, or save what is to be signed for another machine, where this page offers it.</p>;
  }
  return (
    <p class="row">
      {found.map((wallet) => (
        <Button key={wallet.id} busy={busy} title={wallet.domain} onClick={() => connect(wallet)}>
          <Logo wallet={wallet} /> Connect <Stranger text={wallet.name} />
        </Button>
      ))}
    </p>
  );
}

function Logo({ wallet }: { readonly wallet: Announced }) {
  return wallet.icon === "" ? null : <img class="logo" src={wallet.icon} alt="" width={20} height={20} />;
}

// Why this copy of the page may not sign at all.
function refusalOfPlace(): unknown {
  try {
    requireOwnPlace(window);
    return undefined;
  } catch (error) {
    return error;
  }
}
