"""What holds for every test: hypothesis profiles, blocked sockets, which may not run at the same time; a browser."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from tests.kit.browser import Watched, browser, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
    "web",
    "worker",
)
# Groups of a minute and more, the longest first: the run must not end by waiting for one of them.
LONGEST = (
    "services",
    "e2e/test_wheel.py",
    "worker/test_shell.py",
    "e2e/test_readme.py",
    "e2e/test_web.py",
    "e2e/test_demo.py",
    "chaos/test_geth.py",
    "chaos/test_campaign.py",
    "e2e/test_market.py",
    "worker/test_take.py",
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
# Of `tools.mutate`: a failure is all that it wants, not the smallest one.
settings.register_profile("mutation", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))
PROFILE = os.environ.get("HEARTH_HYPOTHESIS", "ci")
settings.load_profile(PROFILE)
if PROFILE != "fuzz":
    # Hypothesis also draws the constants of whatever modules of ours are imported. Which these are depends on the tests
    # that a process ran before, so that the same test would see other examples from run to run.
    providers.is_local_module_file = lambda file: False  # type: ignore[assignment]


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


def _waits(item: pytest.Item) -> bool:
    """Say whether a test mostly waits, for blocks and for other processes."""
    return _has(item, (*SHARED_MARKS, "e2e"))


def _order(groups: dict[str, list[pytest.Item]]) -> list[pytest.Item]:
    """Spread the groups that wait evenly among those that compute, so that neither leaves the cores idle."""
    waiting = [name for name, items in groups.items() if any(_waits(item) for item in items)]
    waiting.sort(key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
    computing = [name for name in groups if name not in waiting]
    # Of those that compute, the state machines are the longest.
    computing.sort(key=lambda name: not any(_has(item, ("stateful", "slow")) for item in groups[name]))
    place = {name: at / len(names) for names in (waiting, computing) for at, name in enumerate(names)}
    return [item for name in sorted(groups, key=lambda name: place[name]) for item in groups[name]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    shared = {item.path for item in items if _has(item, SHARED_MARKS)}
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        folder = item.path.relative_to(ROOT).parts[0] if item.path.is_relative_to(ROOT) else ""
        if _has(item, LOOPBACK_MARKS):
            if folder in UNIT_FOLDERS:
                item.add_marker(pytest.mark.allow_hosts(LOOPBACK))
        elif folder in UNIT_FOLDERS:
            item.add_marker(pytest.mark.disable_socket)
        group = _group(item, shared)
        groups.setdefault(group, []).append(item)
        item.add_marker(pytest.mark.xdist_group(group))
    items[:] = _order(groups)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a module."""
    with browser() as running:
        yield running


@pytest.fixture
def seen(chromium: Browser) -> Iterator[Watched]:
    """A page in a profile of its own, which may complain of nothing."""
    with watched(chromium) as found:
        yield found


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Leave the log as it was: a program that a test ran in this process has chosen its own level."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
