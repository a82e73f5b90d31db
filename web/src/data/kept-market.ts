// What this page keeps of the markets that it reads, in this browser. Loaded beside the first page, which does without.

import { KeptPast, marketKey } from "../chain/cache";
import { IdbStore } from "../chain/idb";
import { LastSeenJobs } from "../chain/last-seen";
import type { LogHistory } from "../chain/log-history";
import type { Tabs } from "../chain/poller";
import type { Rpc } from "../chain/rpc";
import { VisitStore } from "../chain/visit-store";
import { tabsOf } from "../chain/tabs";
import type { Network } from "../core/network";
import { forgetPage } from "./offline";
import { sharedOrigin } from "./origin";
import { forgetWords } from "./remember";

const store = new IdbStore();
const shelf = new VisitStore(store);

export interface Kept {
  readonly past: LogHistory;
  readonly last: LastSeenJobs;
  readonly tabs: Tabs | undefined;
}

// The past of a market over what is kept of it, and the other tabs that show it.
export function keptOf(network: Network, rpc: Rpc): Kept {
  // It may take a while, and the market is not asked for logs at once.
  void shelf.open();
  const key = marketKey(network);
  return { past: new KeptPast(network, rpc, shelf), last: new LastSeenJobs(network, key, shelf), tabs: tabsOf(`hearth.heads.${key}`) };
}

// Forget everything that this page has stored: what it read, its own copy, and words. Until they are loaded again this tab, and every
// other one, keep nothing of what they read.
export async function forgetAll(): Promise<void> {
  forgetWords();
  await forgetPage();
  if (!sharedOrigin(location)) await store.erase().catch(() => undefined);
}
