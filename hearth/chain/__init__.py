"""The chain as the rest of Hearth sees it: a narrow port with two adapters, the transaction path, the cursor, keys."""
