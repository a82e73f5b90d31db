"""Nodes of the market: what they offer, how they stand, and what their owners do."""
