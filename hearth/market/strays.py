"""Logs under a market's addresses that no contract of it writes: counted and stepped over, so none stops a reader."""

from __future__ import annotations

from typing import Final

from hearth.chain.port import Log

NAMED: Final = 5
"""Strays that are named."""


class Strays:
    """What a reader has stepped over: each log once, however often it was read."""

    def __init__(self) -> None:
        self.first: list[str] = []
        """Where the first of them stand, and why each is a stray."""
        self._places: set[tuple[bytes, bytes, int]] = set()

    def __len__(self) -> int:
        """Count them."""
        return len(self._places)

    def note(self, log: Log, why: str) -> None:
        """Count a log that is stepped over."""
        place = log.block_hash, log.tx_hash, log.log_index
        if place not in self._places and len(self.first) < NAMED:
            self.first.append(f"log {log.log_index} of block {log.block_number}: {why}")
        self._places.add(place)

    def in_words(self) -> str:
        """Return what people are told, "" where nothing was stepped over."""
        if not self.first:
            return ""
        where = "under the market's addresses"
        many = f"a log {where} is" if len(self) == 1 else f"{len(self)} logs {where} are"
        return f"{many} none that its contracts write, and stepped over: {'; '.join(self.first)}"
