"""Play the tests against mutants: one pytest process collects, and forks a child for each mutant.

The parent imports and collects everything once and runs no test itself, so a child begins with no contract deployed.
First children run every test without a mutant: one that fails then could prove nothing, and the run ends. A child
plants its mutant and runs tests until one fails; those that killed a mutant of the same function before come first.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click
import pytest

from tools.mutate import record
from tools.mutate.mutants import Mutant
from tools.mutate.record import Result

POLL = 0.02
WALL = 4
"""Wall seconds that a child may take for each second of a processor that it may."""


class Plan(Protocol):
    """What is mutated, how a mutant takes the place of what it was made from, and which tests are run on it."""

    @property
    def spare(self) -> int:
        """Seconds of a processor that a child may take beyond twice what its tests took without a mutant."""

    def arguments(self, mutants: Sequence[Mutant]) -> list[str]:
        """Return what pytest is called with: its options, and the tests."""

    def begin(self, mutants: Sequence[Mutant]) -> None:
        """Make ready, in the parent, before any test runs."""

    def watch(self) -> AbstractContextManager[Collection[int]]:
        """Note in numbers, while a test runs without a mutant, what it reaches."""

    def learn(self, test: str, reached: Collection[int]) -> None:
        """Take up in the parent what a test reached."""

    def chosen(self, mutant: Mutant, tests: Mapping[str, pytest.Item]) -> list[str]:
        """Return the tests that could tell a mutant."""

    def plant(self, mutant: Mutant) -> str:
        """Put a mutant in its place, in a child; return INVALID or EQUIVALENT where there is nothing to try."""


@dataclass
class _Child:
    key: str
    out: Path
    done: Callable[[dict[str, Any]], None]
    until: float


class Runner:
    """A pytest plugin in the place of its loop: tries mutants in order, until `count` compiled to other code."""

    def __init__(self, plan: Plan, mutants: Sequence[Mutant], path: Path, *, count: int, jobs: int) -> None:
        self.plan = plan
        self.mutants = mutants
        self.path = path
        self.count = count
        self.jobs = jobs
        self.results: dict[str, Result] = {}
        self.fault = ""
        self._children: dict[int, _Child] = {}
        self._seconds: dict[str, float] = {}
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._outcome = self._why = ""
        self._began = time.monotonic()

    # ---- pytest ----

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Try every mutant; a collection that failed is pytest's to report."""
        if session.testsfailed:
            self.fault = "the tests cannot be collected"
            return None
        # What is expected to fail cannot tell a mutant from the contract.
        items = [item for item in session.items if not item.get_closest_marker("xfail")]
        with tempfile.TemporaryDirectory(prefix="hearth-mutate-") as folder:
            self._folder = Path(folder)
            try:
                self._try_all(items)
            except click.ClickException as error:
                self.fault = error.message
            finally:
                for pid in self._children:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note in a child what became of a test."""
        if report.failed:
            self._outcome, self._why = "failed", report.longreprtext
        elif report.skipped and not self._outcome:
            self._outcome = "skipped"

    # ---- in the parent ----

    def _try_all(self, items: list[pytest.Item]) -> None:
        self._control(items)
        if self.fault:
            return
        tests = {item.nodeid: item for item in items if item.nodeid in self._seconds}
        tried = 0
        known = record.read(self.path)
        by_id = {mutant.id: mutant for mutant in self.mutants}
        for result in known.values():
            if result.id in by_id:
                self._learn(by_id[result.id], result)
        for mutant in self.mutants:
            before = known.get(mutant.id)
            if before is not None and before.source == mutant.source:
                self.results[mutant.id] = before
                tried += before.result in record.TRIED
                continue
            if tried + len(self._children) >= self.count:
                # Those under way may turn out not to be valid.
                self._wait(self.jobs - 1 if tried >= self.count else 0)
                tried = self._tried()
            if tried >= self.count:
                break
            self._wait(self.jobs - 1)
            tried = self._tried()
            self._start(
                mutant.id,
                lambda m=mutant: self._judge(m, self._order(m, tests)),  # type: ignore[misc]
                lambda told, m=mutant: self._note(m, told),  # type: ignore[misc]
                sum(self._seconds[test] for test in self.plan.chosen(mutant, tests)),
            )
        self._wait(0)

    def _tried(self) -> int:
        return sum(result.result in record.TRIED for result in self.results.values())

    def _control(self, items: list[pytest.Item]) -> None:
        """Run every test once without a mutant; note how long each takes."""
        self.plan.begin(self.mutants)
        gc.freeze()
        modules: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            modules[item.nodeid.split("::")[0]].append(item)
        names = sorted(modules)
        for turn in range(self.jobs):
            share = [item for name in names[turn :: self.jobs] for item in modules[name]]
            self._start(f"control {turn}", lambda s=share: self._measure(s), self._time, 3600)  # type: ignore[misc]
        self._wait(0)
        click.echo(f"mutate: {len(self._seconds)} tests pass without a mutant, in {sum(self._seconds.values()):.0f} s")

    def _time(self, told: dict[str, Any]) -> None:
        self._seconds |= told["seconds"]
        for test, reached in told["reached"].items():
            self.plan.learn(test, reached)
        if told["failed"]:
            self.fault = "\n".join([f"these tests fail without a mutant: {', '.join(told['failed'])}", told["why"]])

    def _order(self, mutant: Mutant, tests: Mapping[str, pytest.Item]) -> list[pytest.Item]:
        """Order a mutant's tests: its function's killers, its function's own file, its module's killers, the rest.

        Of what is left, and of its own file, one case of each test comes before all other cases.
        """
        own, near = self._kills[f"{mutant.module}.{mutant.function}"], self._kills[mutant.module]
        place: Counter[str] = Counter()
        keys: dict[str, tuple[float, ...]] = {}
        for test in sorted(self.plan.chosen(mutant, tests), key=lambda test: self._seconds[test]):
            name = test.split("[")[0]
            named = Path(test.split("::")[0]).stem == f"test_{mutant.function.strip('_')}"
            place[name] += 1
            keys[test] = (-own[test], not named, -near[test], place[name], self._seconds[test])
        return [tests[test] for test in sorted(keys, key=lambda test: keys[test])]

    def _learn(self, mutant: Mutant, result: Result) -> None:
        if result.killer:
            self._kills[f"{mutant.module}.{mutant.function}"][result.killer] += 1
            self._kills[mutant.module][result.killer] += 1

    def _note(self, mutant: Mutant, told: dict[str, Any]) -> None:
        result = Result(mutant.id, mutant.source, told["result"], told.get("killer", ""), round(told["seconds"], 1))
        self.results[mutant.id] = result
        record.add(self.path, result)
        self._learn(mutant, result)
        click.echo(
            f"{self._tried():5} {time.monotonic() - self._began:6.0f} s  {result.result:10} {mutant.id} "
            f"line {mutant.line}: {_short(mutant.old)} -> {_short(mutant.new)}  {result.seconds} s {result.killer}"
        )

    # ---- children ----

    def _start(
        self, key: str, work: Callable[[], dict[str, Any]], done: Callable[[dict[str, Any]], None], usual: float
    ) -> None:
        """Fork a child that does `work` and writes what it returns; `usual` are seconds that it takes at most."""
        limit = int(2 * usual) + self.plan.spare
        out = self._folder / f"{len(os.listdir(self._folder))}"
        out.touch()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._be_a_child(out, work, limit)
        self._children[pid] = _Child(key, out, done, time.monotonic() + WALL * limit)

    def _be_a_child(self, out: Path, work: Callable[[], dict[str, Any]], limit: int) -> None:
        try:
            self._children.clear()
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            # Two children that make folders for their tests would make the same.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(self._folder)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            out.write_text(json.dumps(work()), encoding="utf-8")
        finally:
            # A child never goes back into pytest, whatever happened: the parent reads what went wrong.
            if sys.exc_info()[0] is not None:
                out.write_text(json.dumps({"broken": traceback.format_exc()}), encoding="utf-8")
            os._exit(0)

    def _wait(self, most: int) -> None:
        """Wait until at most so many children are left."""
        while len(self._children) > most:
            for pid, child in list(self._children.items()):
                gone, status = os.waitpid(pid, os.WNOHANG)
                if not gone and time.monotonic() < child.until:
                    continue
                if not gone:
                    os.kill(pid, signal.SIGKILL)
                    _, status = os.waitpid(pid, 0)
                del self._children[pid]
                self._read(child, status)
            time.sleep(POLL)

    def _read(self, child: _Child, status: int) -> None:
        text = child.out.read_text(encoding="utf-8")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            told: dict[str, Any] = {"result": record.TIMEOUT, "seconds": 0.0}
        else:
            told = json.loads(text) if text else {"broken": f"the child ended with status {status}"}
        if "broken" in told or (child.key.startswith("control") and "failed" not in told):
            raise click.ClickException(f"{child.key}: {told.get('broken', 'the tests take too long without a mutant')}")
        child.done(told)

    # ---- in a child ----

    def _measure(self, items: list[pytest.Item]) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        reached: dict[str, list[int]] = {}
        failed = []
        for item, after in zip(items, [*items[1:], None], strict=False):
            began = time.process_time()
            with self.plan.watch() as seen:
                outcome = self._play(item, after)
            if outcome == "failed":
                failed.append(item.nodeid)
            elif not outcome:
                seconds[item.nodeid] = round(time.process_time() - began, 4)
                reached[item.nodeid] = list(seen)
        return {"seconds": seconds, "reached": reached, "failed": failed, "why": self._why[-2_000:]}

    def _judge(self, mutant: Mutant, items: list[pytest.Item]) -> dict[str, Any]:
        if none := self.plan.plant(mutant):
            return {"result": none, "seconds": time.process_time()}
        for item, after in zip(items, [*items[1:], None], strict=False):
            if self._play(item, after) == "failed":
                return {"result": record.KILLED, "killer": item.nodeid, "seconds": time.process_time()}
        return {"result": record.SURVIVED, "seconds": time.process_time()}

    def _play(self, item: pytest.Item, after: pytest.Item | None) -> str:
        """Run one test and return "failed", "skipped" or ""."""
        self._outcome = ""
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        return self._outcome


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line}`" if len(line) <= 60 else f"`{line[:57]}...`"


def run(plan: Plan, mutants: Sequence[Mutant], path: Path, *, count: int, jobs: int = 2) -> dict[str, Result]:
    """Try mutants in their order until `count` of them compiled to other code; return the results by name.

    Results are appended to `path` as they come; those that stand there are not tried again. Raises ClickException where
    the tests cannot be collected or fail without a mutant.
    """
    runner = Runner(plan, mutants, path, count=count, jobs=jobs)
    options = ("-q", "--capture=no", "--timeout=0", "--tb=short", "--no-header", "--no-summary")
    code = pytest.main([*options, *plan.arguments(mutants)], plugins=[runner])
    if runner.fault or code != pytest.ExitCode.OK:
        raise click.ClickException(runner.fault or f"pytest ended with {code}")
    return runner.results
