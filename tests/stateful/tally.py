"""Count what a state machine's rules did, so that a machine that does nothing cannot pass."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.kit.evm import ROOT

REPORTS = ROOT / ".build" / "assurance"
# A rule that succeeds more rarely than this explores nothing.
LEAST_SUCCESS = 0.05


class Tally:
    """Per rule: tries that did something, that were refused as the model said, and that moved nothing.

    `visits` counts anything else that must not stay unseen: a state, a transition, a reason.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.succeeded: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.idle: Counter[str] = Counter()
        self.visits: Counter[str] = Counter()
        self.runs = 0

    def success(self, rule: str) -> None:
        """Count one try that did what it is for."""
        self.succeeded[rule] += 1

    def refusal(self, rule: str, reason: str) -> None:
        """Count one try that the contract refused with the reason that the model expects."""
        self.refused[rule] += 1
        self.visits[f"refusal {rule}: {reason or '(no reason)'}"] += 1

    def nothing(self, rule: str) -> None:
        """Count one try that was accepted and had nothing to do, such as a withdrawal of zero."""
        self.idle[rule] += 1

    def visit(self, what: str) -> None:
        """Count one visit."""
        self.visits[what] += 1

    def table(self) -> dict[str, dict[str, int]]:
        """Return attempted, succeeded, refused and idle for each rule."""
        return {
            rule: {
                "attempted": self.succeeded[rule] + self.refused[rule] + self.idle[rule],
                "succeeded": self.succeeded[rule],
                "refused": self.refused[rule],
                "idle": self.idle[rule],
            }
            for rule in sorted({*self.succeeded, *self.refused, *self.idle})
        }

    def publish(self) -> Path:
        """Print the table and leave it in .build/assurance as JSON, for docs/ASSURANCE.md."""
        document = {"machine": self.name, "runs": self.runs, "rules": self.table(), "visits": dict(self.visits)}
        REPORTS.mkdir(parents=True, exist_ok=True)
        path = REPORTS / f"{self.name}.json"
        path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{self.name}: {self.runs} runs")
        for rule, row in self.table().items():
            print(f"  {rule:<28}" + "".join(f"  {name} {count:>5}" for name, count in row.items()))
        return path

    def demand(self, rules: set[str], *, visits: dict[str, int] | None = None) -> None:
        """Fail where a rule never ran or rarely succeeded, or where something was visited less often than asked."""
        table = self.table()
        missing = rules - set(table)
        assert not missing, f"{self.name}: never tried: {sorted(missing)}"
        for rule, row in table.items():
            rate = row["succeeded"] / row["attempted"]
            assert rate >= LEAST_SUCCESS, f"{self.name}: {rule} succeeded in {row['succeeded']} of {row['attempted']}"
        for what, least in (visits or {}).items():
            assert self.visits[what] >= least, f"{self.name}: {what} was visited {self.visits[what]} times, not {least}"
