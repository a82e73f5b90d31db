// Bundles one script of the wallet, named by WALLET_SCRIPT, into the folder WALLET_OUT: what Chromium puts into a page is one
// classic script.

import { fileURLToPath } from "node:url";

const script = process.env.WALLET_SCRIPT;
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

export default {
  root: here("."),
  publicDir: false,
  build: {
    outDir: process.env.WALLET_OUT,
    emptyOutDir: false,
    target: "es2022",
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: here(script),
      output: { format: "iife", entryFileNames: script },
      transform: { inject: { process: here("node.js"), Buffer: ["buffer", "Buffer"] } },
    },
  },
};
