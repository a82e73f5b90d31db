// What the page sees: MetaMask's own page provider, announced by EIP-6963, over a stream of window messages.

import { WindowPostMessageStream } from "@metamask/post-message-stream";
import { initializeProvider } from "@metamask/providers/initializeInpageProvider";

import { CONTENT, INPAGE } from "./names.js";

initializeProvider({
  connectionStream: new WindowPostMessageStream({ name: INPAGE, target: CONTENT }),
  providerInfo: {
    uuid: crypto.randomUUID(),
    name: "Test wallet",
    icon: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><rect width='1' height='1'/></svg>",
    rdns: "org.example.wallet",
  },
});
