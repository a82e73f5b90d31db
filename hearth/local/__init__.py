"""A market on this machine: a local chain with the contracts on it, and the demo."""
