"""docs/alerts.yml names only metrics that the programs export, and labels that they set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from ruamel.yaml import YAML

from keeper.health import KeeperMetrics
from worker.metrics import WorkerMetrics

ROOT = Path(__file__).parents[2]


def rules() -> list[dict[str, Any]]:
    groups = YAML(typ="safe").load((ROOT / "docs/alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def exported(registry: CollectorRegistry) -> set[str]:
    names: set[str] = set()
    for family in registry.collect():
        names |= {family.name, f"{family.name}_total"} if family.type == "counter" else {family.name}
    return names


def used(prefix: str) -> set[str]:
    found: set[str] = set()
    for rule in rules():
        found |= set(re.findall(rf"{prefix}_[a-z0-9_]+", rule["expr"]))
    return found


def test_alerts__of_the_keeper__name_its_metrics() -> None:
    assert used("hearth_keeper")
    assert used("hearth_keeper") <= exported(KeeperMetrics().registry)


def test_alerts__of_the_worker__name_its_metrics() -> None:
    assert used("hearth_worker")
    assert used("hearth_worker") <= exported(WorkerMetrics().registry)


def test_alerts__every_rule__says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook"]
