// What the frame of every page says: its name, its notices, its navigation.

export const TEXTS = {
  name: "Hearth",
  unaudited: "Unaudited: use it with test money.",
  nothingYet: "…",
  otherBuild: " Its server has another build of this page by now: load it again.",
  opening: "looking at the chain and its contracts…",
  synced: (block: number, seconds: number) => `synced to block ${block}, ${seconds} s ago`,
  again: "It is asked again by itself, while this tab is shown.",
  last: (block: number) => `Not checked against the chain now. This is what this page saw at block ${block}, at`,
  rpcs: "How to name one",
  wide: "It scrolls sideways →",
  lastEnd: "Nothing can be signed until an RPC answers.",
  nav: { jobs: "Jobs", submit: "Submit", provide: "Provide", market: "Market", workers: "Workers", keepers: "Keepers", network: "Network", gov: "Governance", sign: "Sign", check: "Job file", files: "Files", wallet: "Wallet", about: "About" },
  noPage: "No such page",
  job: (id: string) => `Job ${id}`,
  node: (id: string) => `Node ${id}`,
  theme: { auto: "system", light: "light", dark: "dark", label: "Theme" },
  market: (name: string, by: "reader" | "host") => `market ${name}, ${by === "reader" ? "by the file that you picked" : "by the file of its host"}; `,
  served: {
    web: (network: string) => `market ${network}, served by hearth web`,
    host: "served by a static host: no store of yours",
    stranger: (why: string) => `this machine's hearth web does not know this page: ${why}`,
    kept: "this browser's copy of the page: its server does not answer. Start hearth web, and open the address that it prints",
    shared: "this address is shared with other sites: nothing is signed or stored here",
  },
} as const;
