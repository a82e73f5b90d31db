"""What holds for every test: hypothesis profiles, blocked sockets, which may not run at the same time; a browser."""

from __future__ import annotations

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import cache
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
    "jobfile",
    "keeper",
    "local",
    "market",
    "protocol",
    "storage",
    "web",
    "worker",
)
# Groups of a minute and more, the longest first: the run must not end by waiting for one of them.
LONGEST = (
    "docker",
    "worker/test_loop.py",
    "e2e/test_web_submit.py",
    "e2e/test_web.py",
    "worker/test_take.py",
    "e2e/test_web_wallet.py",
    "e2e/test_gov.py",
    "e2e/test_deploy.py",
    "worker/test_reload.py",
    "e2e/test_unlock.py",
    "e2e/test_market.py",
    "e2e/test_web_sign.py",
    "e2e/test_devnet.py",
    "e2e/test_attested.py",
    "e2e/test_checkpoints.py",
)
LOOPBACK_MARKS = {"net", "docker", "kubo", "e2e"}
LOOPBACK = ["127.0.0.1", "::1"]
# Tests with one of these marks share an engine with its registry, or a Kubo: one at a time.
SHARED_MARKS = {"docker", "kubo"}

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


def _group(item: pytest.Item, marks: set[str], shared: dict[Path, str]) -> str:
    """Name the xdist group: all tests of a shared service, a state machine alone, anything else by its file.

    A market of processes is one file's. It mostly waits for blocks, so several run side by side; those of a file with
    tests of a shared service (`shared`) run with these, on the market that they have in common.
    """
    if marks & SHARED_MARKS or ("e2e" in marks and item.path in shared):
        return shared[item.path]
    if "stateful" in marks:
        return item.nodeid
    return _place(item.path).as_posix()


@cache
def _place(path: Path) -> Path:
    """Return where a file of tests is below their root, or its whole path where it is elsewhere."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _order(groups: dict[str, list[pytest.Item]], marks: dict[str, set[str]]) -> list[pytest.Item]:
    """Spread the groups that wait evenly among those that compute, so that neither leaves the cores idle."""
    # What waits for blocks and for other processes.
    waiting = [name for name in groups if marks[name] & {*SHARED_MARKS, "e2e"}]
    waiting.sort(key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
    computing = [name for name in groups if not marks[name] & {*SHARED_MARKS, "e2e"}]
    # Of those that compute, the state machines are the longest.
    computing.sort(key=lambda name: not marks[name] & {"stateful", "slow"})
    place = {name: at / len(names) for names in (waiting, computing) for at, name in enumerate(names)}
    return [item for name in sorted(groups, key=lambda name: place[name]) for item in groups[name]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    of_item = [(item, {mark.name for mark in item.iter_markers()}) for item in items]
    shared = {item.path: mark for item, marks in of_item for mark in marks & SHARED_MARKS}
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    marks_of: dict[str, set[str]] = defaultdict(set)
    for item, marks in of_item:
        if _place(item.path).parts[0] in UNIT_FOLDERS:
            loopback = marks & LOOPBACK_MARKS
            item.add_marker(pytest.mark.allow_hosts(LOOPBACK) if loopback else pytest.mark.disable_socket)
        group = _group(item, marks, shared)
        groups[group].append(item)
        marks_of[group] |= marks
        item.add_marker(pytest.mark.xdist_group(group))
    items[:] = _order(groups, marks_of)


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight: it took a second each time it looked at all of it.

    That second fell into whatever ran, also where a test bounds the time of a core.
    """
    gc.collect()
    gc.freeze()


BEGAN = pytest.StashKey[float]()


def _cpu() -> float:
    """Return the seconds of a core that this process used, and those of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN] = _cpu()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give each test what it used of a core, for `tools.dearest`."""
    if call.when == "teardown":
        item.user_properties.append(("cpu", f"{_cpu() - item.stash[BEGAN]:.2f}"))
    return (yield)


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
