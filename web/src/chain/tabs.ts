// How tabs of one origin find each other: Web Locks and a BroadcastChannel. Both end with the tab.

import type { Tabs } from "./poller";

// Undefined where this browser lacks either.
export function tabsOf(name: string): Tabs | undefined {
  const locks = (navigator as Partial<Navigator>).locks;
  if (locks === undefined || typeof BroadcastChannel === "undefined") return undefined;
  return {
    lock: async (signal, hold) => {
      await locks.request(name, { signal }, hold);
    },
    channel: (hear) => {
      const channel = new BroadcastChannel(name);
      channel.onmessage = ({ data }: MessageEvent<unknown>) => hear(data);
      return {
        post: (message) => channel.postMessage(message),
        close: () => channel.close(),
      };
    },
  };
}
