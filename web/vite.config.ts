import { defineConfig } from "vitest/config";

// What is built is committed (hearth/web/app) and built again by `make check`: nothing in it may depend on the machine,
// the folder or the hour. Names carry no hash, so that a changed file is a changed file in a review.
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
      },
    },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    environment: "node",
    include: ["test/**/*.test.ts"],
    // What hangs, or looks back over a stranger's text for every character, ends here; a slow machine does not.
    testTimeout: 60_000,
  },
});
