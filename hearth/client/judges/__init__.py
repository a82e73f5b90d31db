"""Judge contracts that the client knows."""
