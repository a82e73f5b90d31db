"""hearth.daemon.metrics: keepers and workers call the same thing by the same name, and what counts is a counter."""

from __future__ import annotations

import re

import pytest

from hearth.daemon.metrics import Metrics
from keeper.health import KeeperMetrics
from worker.metrics import WorkerMetrics


@pytest.mark.parametrize("program", ["keeper", "worker"])
def test_metrics__of_each_program__have_one_vocabulary(program: str) -> None:
    metrics = {"keeper": KeeperMetrics, "worker": WorkerMetrics}[program]()
    names = {family.name.removeprefix(f"hearth_{program}_"): family.type for family in metrics.registry.collect()}
    assert names.items() >= {
        ("head_block", "gauge"),
        ("head_age_seconds", "gauge"),
        ("failures", "counter"),
        ("gas_spent_wei", "counter"),
        ("gas_capped", "gauge"),
        ("settings_refused", "gauge"),
    }
    # The client library takes any text as a name; a query takes these.
    assert [name for name in names if not re.fullmatch("[a-z][a-z0-9_]*", name)] == []


def test_counted__what_something_else_counts__is_a_counter_read_at_each_scrape() -> None:
    metrics, found = Metrics("test"), [0]
    metrics.counted("lost", "What was lost", lambda: found[0])
    assert metrics.registry.get_sample_value("hearth_test_lost_total") == 0, "a series that shows its first increase"
    found[0] = 2
    assert metrics.registry.get_sample_value("hearth_test_lost_total") == 2
    assert [family.type for family in metrics.registry.collect() if family.name == "hearth_test_lost"] == ["counter"]
