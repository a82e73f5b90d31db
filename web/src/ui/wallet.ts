// The wallets of this browser and the one that the reader connected, for every page of this tab. Nothing is remembered: a new
// tab connects anew.

import { useEffect, useState } from "preact/hooks";

import { isSameMarket, type Network } from "../core/network";
import { type Announced, discover } from "../wallet/discover";
import { requireOwnPlace } from "../wallet/signing-place";
import { Session } from "../wallet/request";

export interface Wallets {
  readonly found: readonly Announced[];
  readonly session: Session | undefined;
  connect(wallet: Announced): Promise<void>;
  leave(): void;
}

const hearers = new Set<() => void>();
let found: readonly Announced[] | undefined;
let session: Session | undefined;

const tell = (): void => hearers.forEach((hear) => hear());

// Hear of wallets while a page shows them. Of another network the connection is another.
export function useWallets(network: Network | undefined): Wallets {
  const [, render] = useState(0);
  useEffect(() => {
    const hear = (): void => render((count) => count + 1);
    hearers.add(hear);
    if (found === undefined) {
      found = [];
      discover(window, (wallets) => {
        found = wallets;
        tell();
      });
      hear();
    }
    return () => {
      hearers.delete(hear);
    };
  }, []);
  return {
    found: found ?? [],
    session: session === undefined || network === undefined || isSameMarket(session.network, network) ? session : undefined,
    connect: async (wallet) => {
      if (network === undefined) return;
      const made = new Session(wallet, network, tell, () => requireOwnPlace(window));
      await made.connect();
      session?.close();
      session = made;
      tell();
    },
    leave: () => {
      session?.close();
      session = undefined;
      tell();
    },
  };
}
