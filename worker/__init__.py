"""Hearth worker: watches the chain, runs jobs in WASM or Docker, gets paid."""
