"""The books of a program that works for the market: what it has spent and earned, kept over restarts."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from hearth.base.files import replace_text
from hearth.protocol import formulas
from hearth.protocol.types import COIN

log = structlog.get_logger("ledger")

LEDGER_FILE: Final = "ledger.json"


@dataclass(slots=True)
class Ledger:
    """What a program has spent, in wei and base units, kept over restarts; a lost file starts the count anew.

    Without a path, as in a dry run, nothing is kept.
    """

    path: Path | None
    gas_paid: int = 0
    coin_cost: int = 0
    """The gas paid, in base units of the market's asset at the prices of each moment."""
    credited_before: int | None = None
    """What had been earned when the ledger began, in base units."""
    mined: Counter[str] = field(default_factory=Counter)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Read the ledger, or begin one."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            before = raw["credited_before"]
            return cls(
                path,
                int(raw["gas_paid"]),
                int(raw["coin_cost"]),
                None if before is None else int(before),
                Counter({str(verb): int(count) for verb, count in raw["mined"].items()}),
            )
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("ledger.unreadable", path=str(path), error=repr(error), then="counting starts anew")
            return cls(path)

    def save(self) -> None:
        """Write the ledger, whole or not at all; without a path, keep nothing.

        What a full disk does not take is written with what comes next.
        """
        if self.path is None:
            return
        body = {
            "gas_paid": str(self.gas_paid),
            "coin_cost": str(self.coin_cost),
            "credited_before": None if self.credited_before is None else str(self.credited_before),
            "mined": dict(self.mined),
        }
        with suppress(OSError):
            replace_text(self.path, json.dumps(body) + "\n")

    def begin(self, credited: int) -> None:
        """Let a ledger that has not begun begin where this much had been earned before."""
        if self.credited_before is None:
            self.credited_before = credited
            self.save()

    def pay(self, wei: int, coin_price: int) -> None:
        """Account for gas, where one coin is worth so many base units of the market's asset."""
        self.gas_paid += wei
        self.coin_cost += formulas.ceil_div(wei * coin_price, COIN)

    def earned(self, credited: int) -> int:
        """Return what was earned since the ledger began, less what was lost; `credited` is what ever was."""
        return credited - (self.credited_before or 0)

    def rewards(self, credited: int) -> int:
        """Return what the payee was credited since the ledger began; `credited` is what it ever was, in base units."""
        return max(0, self.earned(credited))
