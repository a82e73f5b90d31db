// Between the page's world and the wallet's: what comes from the page goes to the background by a port, and back. Chromium
// stops a background that rests; the next question wakes it by a new port.

import { WindowPostMessageStream } from "@metamask/post-message-stream";

import { CONTENT, INPAGE } from "./names.js";

const stream = new WindowPostMessageStream({ name: CONTENT, target: INPAGE });
let port = connect();
stream.on("data", (said) => (port ??= connect()).postMessage(said));

function connect() {
  const made = chrome.runtime.connect({ name: "page" });
  made.onMessage.addListener((said) => stream.write(said));
  made.onDisconnect.addListener(() => {
    port = undefined;
  });
  return made;
}
