"""One job: how it stands, what it costs, what came of it, and what its submitter or judge may do."""
