"""What the chain says, as pure code: types, words, formulas, zones, GPU tiers, units."""
