import { defineConfig } from "vitest/config";

// Modules of the first page that other pages use as well.
const CORE =
  "bytes|changes|errors|events|lapse|logs|moments|money|numbers|parents|posted|recipient|state-labels|stored|text|types|units|view|parent-progress|words";
const GENERATED = "bounds|changes|contracts|events|sentences|states|text|words";

// What is built is named by its CID, which whoever builds it must get: nothing in it may depend on the machine,
// the folder or the hour. Names carry no hash, so that a build differs by what changed.
export default defineConfig({
  base: "./",
  publicDir: false,
  build: {
    outDir: process.env["HEARTH_WEB_OUT"] ?? "../hearth/web/app",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    rolldownOptions: {
      // A worker's script stands by itself: what it needs is in it, and nothing of it in the page.
      input: { index: "index.html", "service-worker": "src/offline/worker.ts" },
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
        // What every page needs stands in two files: many small ones pack badly.
        codeSplitting: {
          groups: [
            { name: "preact", test: /node_modules\/preact/ },
            { name: "base", test: new RegExp(`src/(core/(${CORE})|generated/(${GENERATED}))\\.ts$`) },
          ],
        },
      },
    },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    environment: "node",
    // What hangs, or looks back over a stranger's text for every character, ends here; a slow machine does not.
    testTimeout: 60_000,
    // The files share the page's modules, which are read once for all of them, but for those that put others in place.
    projects: [
      { extends: true, test: { name: "whole", include: ["test/*.test.ts"], exclude: ["test/*.mocked.test.ts"], isolate: false } },
      { extends: true, test: { name: "mocked", include: ["test/*.mocked.test.ts"] } },
    ],
  },
});
