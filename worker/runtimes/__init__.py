"""The sandboxes that run strangers' code: WebAssembly (wasm) and containers (docker)."""
