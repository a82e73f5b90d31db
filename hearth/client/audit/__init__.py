"""The market's books recomputed from its events, and what others need to do the same."""
