"""kill -9 at every named point, chained: the process that shows that one kill lost nothing is the next one's victim.

A job goes through several kills in the order of its life. A kill counts where its process died of it, and the journal
that it left shows the job in the state that the point is named for.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from hearth.protocol.types import JobId
from tests.chaos.evidence import lacking
from tests.chaos.market import ChaosMarket, Keeper, Lane, of_job, states_in
from tests.chaos.processes import Child
from tests.kit.running import Process, wait
from tests.kit.town import example_text, hearth
from tests.worker.runtimes.engines import BUSYBOX
from worker.journal import Moment

TX_STATES = {
    "m2.intent": "intent",
    "m7.signed": "signed",
    "m8.broadcast": "broadcast",
    "m9.mined": "mined",
    "m10.final": "final",
}
"""The points of a transaction, and the state that its journal then shows."""
_PATH = ("m2.intent", "m7.signed", "m8.broadcast", "m9.mined")
WORKER_LIFE = (
    *("m1.seen", "m2.intent@attempt"),
    *(f"{point}@jobs.claim" for point in _PATH),
    *("m3.fetched", "m4.started", "m5.result", "m6.pinned"),
    *(f"{point}@jobs.submit" for point in _PATH),
    *(f"{point}@jobs.settle" for point in _PATH),
)
"""Where a worker is killed, in the order in which a job comes by."""
RUN = frozenset(("m3.fetched", "m4.started", "m5.result", "m6.pinned"))
"""Those while the program is run: what is killed there runs again."""
WORKER_FINAL = tuple(f"m10.final@jobs.{name}" for name in ("claim", "submit", "settle"))
"""The same for what is final, some blocks after it was mined, while the job goes on."""
KEEPER_POINTS = tuple(
    f"{point}@jobs.{name}" for name in ("propose", "settle", "expire") for point in (*_PATH, "m10.final")
)
SUBMITTER_POINTS = tuple(f"{point}@jobs.{name}" for name in ("post", "cancel") for point in _PATH)
MISSED_SECONDS = 30.0
"""How long after the end of its job a process may still meet its point: what is final is so a dozen blocks later."""
MEET_SECONDS = 240.0
SOON_SECONDS = 30.0
"""How long a process that is to die is watched for its first round."""
TRIES = 3


@dataclass
class Kill:
    """One kill: where, of whom, with which evidence, and how soon the next process was ready, where it lived on."""

    who: str
    runtime: str
    point: str
    job: JobId
    moment: float
    """Seconds since the run began."""
    evidence: str = ""
    """The journal's line; empty where the process did not come by."""
    ready: float | None = None

    @property
    def counts(self) -> bool:
        """Say whether a unit was in the state that the point is named for."""
        return bool(self.evidence)


@dataclass
class Result:
    """What a run of kills came to, and what it was to come to: each point of `wanted` killed at so many times."""

    wanted: Counter[str] = field(default_factory=Counter)
    kills: list[Kill] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    on_kill: Callable[[Kill], None] = lambda kill: None
    """Hears of each kill that is over, so that what was done is on record whatever comes."""
    began: float = field(default_factory=time.monotonic)

    @property
    def moment(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self.began

    def add(self, kill: Kill) -> None:
        """Take a kill up."""
        self.kills.append(kill)
        self.on_kill(kill)

    def lacking(self) -> list[str]:
        """Return a sentence for each point with fewer kills that count than wanted."""
        seen = Counter(cell(one.who, one.runtime, one.point) for one in self.kills if one.counts)
        return lacking(self.wanted, seen, lambda wanted: wanted)


def cell(who: str, runtime: str, point: str) -> str:
    """Name what is counted: a point of a program with a runtime."""
    return f"{who}, {runtime}, {point}"


class Victim(Protocol):
    """A daemon that is killed and started again."""

    process: Process | None

    def start(self, failpoint: str = "") -> None:
        """Start a process, perhaps one that dies at a named point."""

    @property
    def ready(self) -> bool:
        """Say whether the newest process has done its first round."""


def worker_jobs(rng: random.Random, rounds: int) -> list[tuple[str, ...]]:
    """Divide the points of a worker's life among jobs, `rounds` times: each job's are in the order of its life."""
    jobs: list[tuple[str, ...]] = []
    for _ in range(rounds):
        shares: list[list[str]] = [[], [], [], []]
        for point in WORKER_LIFE:
            # What broke a run three times is given back, and rightly so.
            rng.choice([one for one in shares if point not in RUN or len(RUN & set(one)) < 2]).append(point)
        jobs += [tuple(share) for share in shares if share]
        jobs.append(WORKER_FINAL)
    rng.shuffle(jobs)
    return jobs


def kill_worker(lane: Lane, jobs: Iterator[tuple[str, ...]], result: Result) -> None:
    """Take plans of jobs until there are no more, and kill this lane's worker at the points of each."""
    for points in jobs:
        lane.start(points[0])
        job = lane.post()
        _kill_along(lane, lane, job, points, result, "worker", partial(worker_evidence, lane, job=job))
        with _told(result, f"{lane.name} {job.hex()[:12]}"):
            lane.settled(job, seconds=MEET_SECONDS)
            lane.assert_once(job)
            lane.stop()
            left = [*lane.sandboxes(), *lane.containers()]
            assert not left, f"left behind: {left}"
            assert "signed" not in lane.journal_states().values()


def _kill_along(
    victim: Victim,
    lane: Lane,
    job: JobId,
    points: Sequence[str],
    result: Result,
    who: str,
    evidence: Callable[[str], str],
) -> None:
    """Meet the end of a daemon that dies at the first point, start one for each other in its turn, and one that lives.

    A kill is told when the process after it is ready, or died in its turn.
    """
    for point, following in zip(points, [*points[1:], ""], strict=True):
        one = Kill(who, lane.runtime, point, job, result.moment)
        if _meets(victim, partial(_is_over, lane, job)):
            one.evidence = evidence(point)
        victim.start(following)
        one.ready = _readiness(victim, SOON_SECONDS if following else MEET_SECONDS)
        result.add(one)


def worker_evidence(lane: Lane, point: str, job: JobId) -> str:
    """Return the line of the dead worker's journals that shows the job at this point; "" where none does."""
    name, _, tag = point.partition("@")
    if name in set(Moment) and tag in ("", "attempt"):
        found = [row for row in lane.entries() if row.key.job == job and row.moment == Moment(name)]
        return f"{found[0].key} {found[0].phase} {found[0].moment}" if found else ""
    return tx_evidence(lane.journal_states(), point, job)


def tx_evidence(states: dict[str, str], point: str, job: JobId) -> str:
    """Return the line of a journal of transactions that shows the job's call at this point; "" where none does."""
    name, _, label = point.partition("@")
    kind = label.partition(".")[2]
    found = [(key, state) for key, state in of_job(states, kind, job).items() if state == TX_STATES[name]]
    return " ".join(found[-1]) if found else ""


def kill_keeper(keeper: Keeper, lane: Lane, points: Sequence[str], result: Result) -> None:
    """Kill a keeper at each point, for a job of a lane that leaves it the work; the next keeper ends the job.

    A keeper that somebody was faster than is given TRIES jobs for a point.
    """

    def evidence(point: str, job: JobId) -> str:
        return tx_evidence(keeper.journal_states(), point, job)

    for point in points:
        for _ in range(TRIES):
            name = point.partition("@jobs.")[2]
            if name == "propose":
                keeper.start(point)
                wait(lambda: keeper.ready, "the keeper looks for jobs", MEET_SECONDS)
            job = _job_for(lane, name)
            if name != "propose":
                keeper.start(point)
            _kill_along(keeper, lane, job, (point,), result, "keeper", partial(evidence, job=job))
            with _told(result, f"{lane.name} {job.hex()[:12]}"):
                wait(partial(_is_over, lane, job), f"{point} ends", MEET_SECONDS)
            keeper.kill()
            if result.kills[-1].counts:
                break


def _is_over(lane: Lane, job: JobId) -> bool:
    return lane.state(job).terminal


def _job_for(lane: Lane, name: str) -> JobId:
    """Post a job that a keeper will propose a node for, settle, or expire."""
    if name == "propose":
        return lane.post(match_window=4)
    if name == "settle":
        return lane.post()
    # Nobody asks as little, and there is time for one attempt for ten seconds more.
    seconds, head = 1200, lane.exchange.chain.head().timestamp
    return lane.post(seconds=seconds, ceiling=10**15 - 1, deadline=head + seconds + seconds // 10 + 10)


# ---- waiting ----


def _meets(victim: Victim, over: Callable[[], bool]) -> bool:
    """Wait until a process dies at its point; kill it and return False where its job is over without."""
    process = victim.process
    assert process is not None
    end, ended_at = time.monotonic() + MEET_SECONDS, 0.0
    while time.monotonic() < end:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(0.5)
            assert code == -signal.SIGKILL, f"exit status {code} of {victim}"
            return True
        if not ended_at and over():
            ended_at = time.monotonic()
        if ended_at and time.monotonic() - ended_at > MISSED_SECONDS:
            break
    process.kill()
    process.wait()
    return False


def _readiness(victim: Victim, seconds: float) -> float | None:
    """Return the seconds until a process has done its first round; None where it died before."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if victim.ready:
            return time.monotonic() - began
        if victim.process is None or victim.process.poll() is not None:
            return None
        time.sleep(0.05)
    return time.monotonic() - began


class _told:
    """Write an oracle's complaint down and go on, so that one fault does not hide the rest of a campaign."""

    def __init__(self, result: Result, what: str) -> None:
        self._result, self._what = result, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if isinstance(error, AssertionError):
            self._result.faults.append(f"{self._what}: {error}")
            return True
        return False


@dataclass(frozen=True)
class Plan:
    """Each point killed at `rounds` times a runtime, by `lanes` workers of each runtime at the same time."""

    runtimes: Sequence[str]
    rounds: int
    lanes: int
    seed: int
    keeper_points: Sequence[str] = KEEPER_POINTS

    def cells(self, who: str, points: Iterable[str]) -> Counter[str]:
        """Return how often a daemon is to be killed at each point, by the names of its cells."""
        return Counter({cell(who, runtime, point): self.rounds for runtime in self.runtimes for point in points})


def run_workers(market: ChaosMarket, plan: Plan, result: Result) -> None:
    """Kill workers, all at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    result.wanted += plan.cells("worker", (*WORKER_LIFE, *WORKER_FINAL))
    tasks = []
    with ThreadPoolExecutor(plan.lanes * len(plan.runtimes)) as pool:
        for runtime in plan.runtimes:
            jobs = worker_jobs(random.Random(f"{plan.seed} {runtime}"), plan.rounds)
            for number in range(plan.lanes):
                lane = market.lane(f"{runtime}-{number}", runtime)
                tasks.append((lane, iter(jobs[number :: plan.lanes])))
        futures = [pool.submit(kill_worker, lane, jobs, result) for lane, jobs in tasks]
        for future in futures:
            future.result()


def run_keepers(market: ChaosMarket, plan: Plan, result: Result) -> None:
    """Kill a keeper at each of its points, for jobs of feeders that leave it the work."""
    result.wanted += plan.cells("keeper", plan.keeper_points)
    for runtime in plan.runtimes:
        lane = market.lane(f"feeder-{runtime}", runtime, alone=False)
        keeper = market.keeper(f"keeper-{runtime}")
        points = list(plan.keeper_points) * plan.rounds
        random.Random(f"{plan.seed} {runtime}").shuffle(points)
        lane.start()
        kill_keeper(keeper, lane, points, result)
        with _told(result, lane.name):
            lane.stop()


def run_submitters(market: ChaosMarket, plan: Plan, result: Result) -> None:
    """Kill `hearth submit` and `hearth job cancel` at each point; the same again ends it."""
    from hearth.market.events import JobPosted

    result.wanted += plan.cells("submitter", SUBMITTER_POINTS)
    made = hearth(market.home, "devnet", "up", "--port", str(market.port))
    assert made.code == 0, made.err
    rng = random.Random(plan.seed)
    for runtime in plan.runtimes:
        for number in range(plan.rounds):
            for post, cancel in zip(rng.sample(_PATH, 4), rng.sample(_PATH, 4), strict=True):
                file = _job_file(market, runtime, f"{runtime}-{number}-{post}")
                before = sum(isinstance(event, JobPosted) for event in market.logs())
                submitting = ("submit", str(file), "--anyway", "-q")
                job = _kill_command(market, result, submitting, f"{post}@jobs.post", runtime)
                posted = sum(isinstance(event, JobPosted) for event in market.logs()) - before
                if posted != 1:
                    result.faults.append(f"{file.name} was posted {posted} times")
                cancelling = ("job", "cancel", f"0x{job.hex()}")
                _kill_command(market, result, cancelling, f"{cancel}@jobs.cancel", runtime)


RUNS: dict[str, Callable[[ChaosMarket, Plan, Result], None]] = {
    "worker": run_workers,
    "keeper": run_keepers,
    "submitter": run_submitters,
}
"""The kills of each program."""


def _job_file(market: ChaosMarket, runtime: str, name: str) -> Path:
    """Write the file of a job of its own that nobody takes: nobody asks as little."""
    folder = market.home / "jobs"
    example_text("failing", folder)
    # The test's image names no program.
    program = "module: ./failing.wasm" if runtime == "wasm" else f'image: "{BUSYBOX}"\ncommand: ["true"]'
    path = folder / f"{name}.yaml"
    path.write_text(
        f"""version: 1
name: "{name.replace(".", "-").replace("_", "-")}"
runtime: {runtime}
{program}
resources: {{cpus: 1, memory: 64MiB}}
limits: {{runtime: 10s, deadline: 1h}}
price: {{max_rate: "0.01/h"}}
"""
    )
    return path


def _kill_command(market: ChaosMarket, result: Result, arguments: tuple[str, ...], point: str, runtime: str) -> JobId:
    """Kill a command at a point, then give it again; return the job that its journal names."""
    label, kind = point.partition("@")[2], point.partition("@jobs.")[2]
    log = market.home / f"{label}.log"
    child = Child(log, "hearth", *arguments, HEARTH_HOME=str(market.home), HEARTH_FAILPOINT=point)
    code = child.wait(MEET_SECONDS)
    states = {key: state for key, state in states_in(market.home / "state").items() if key.startswith(f"{kind}/")}
    newest = list(states)[-1]
    job = JobId(bytes.fromhex(newest.split("/")[1]))
    one = Kill("submitter", runtime, point, job, result.moment)
    if code == -signal.SIGKILL:
        one.evidence = tx_evidence(states, point, job)
    again = Child(log, "hearth", *arguments, HEARTH_HOME=str(market.home))
    code = again.wait(MEET_SECONDS)
    # A cancel that was mined before the kill leaves nothing to cancel.
    if code not in ((0,) if kind == "post" else (0, 5)):
        result.faults.append(f"{' '.join(arguments)} again after {point}: exit {code}: {log.read_text()[-500:]}")
    result.add(one)
    return job
