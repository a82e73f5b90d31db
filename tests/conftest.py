"""What holds for every test: hypothesis profiles, blocked sockets, and which tests may not run at the same time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
# Unit tests: no sockets but unix ones, unless marked.
UNIT_FOLDERS = (
    "base",
    "chain",
    "checks",
    "cli",
    "client",
    "config",
    "daemon",
    "keeper",
    "local",
    "market",
    "protocol",
    "spec",
    "storage",
    "worker",
)
LOOPBACK_MARKS = ("net", "docker", "kubo", "e2e")
LOOPBACK = ["127.0.0.1", "::1"]
# Tests with one of these marks share an engine, a registry or a Kubo: one at a time.
SHARED_MARKS = ("docker", "kubo")

# What a shell starts in its background ignores Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz",
    max_examples=2_000,
    stateful_step_count=100,
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HEARTH_HYPOTHESIS", "ci"))


def _has(item: pytest.Item, marks: tuple[str, ...]) -> bool:
    return any(item.get_closest_marker(mark) for mark in marks)


def _group(item: pytest.Item, shared: set[Path]) -> str:
    """Name the xdist group: shared services together, a state machine alone, anything else by its file.

    A market of processes is one file's. It mostly waits for blocks, so several run side by side; those of a file with
    tests of the shared services (`shared`) run with these, on the market that they have in common.
    """
    if _has(item, SHARED_MARKS) or (_has(item, ("e2e",)) and item.path in shared):
        return "services"
    if item.get_closest_marker("stateful"):
        return item.nodeid
    return item.path.relative_to(ROOT).as_posix()


def _weight(item: pytest.Item) -> int:
    """Order the longest groups first, so that the last minutes do not wait for one worker."""
    if _has(item, (*SHARED_MARKS, "e2e")):
        return 0
    return 1 if _has(item, ("stateful", "slow")) else 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    shared = {item.path for item in items if _has(item, SHARED_MARKS)}
    for item in items:
        folder = item.path.relative_to(ROOT).parts[0] if item.path.is_relative_to(ROOT) else ""
        if _has(item, LOOPBACK_MARKS):
            if folder in UNIT_FOLDERS:
                item.add_marker(pytest.mark.allow_hosts(LOOPBACK))
        elif folder in UNIT_FOLDERS:
            item.add_marker(pytest.mark.disable_socket)
        item.add_marker(pytest.mark.xdist_group(_group(item, shared)))
    items.sort(key=_weight)
