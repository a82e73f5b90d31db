"""What the demo's scenes rest on: prices, slots and times that must fit each other, or a scene would not happen."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError, HearthError
from hearth.client import Client
from hearth.config.settings import Settings
from hearth.jobfile.load import load_spec
from hearth.jobfile.plan import billing_of
from hearth.local.demo import (
    ANEW,
    CHEAPEST,
    EXAMPLES,
    KILL_STEP,
    NEWCOMERS,
    PRICES,
    RESUME,
    SANDBOX,
    SLOTS,
    SPOILT,
    STEPS,
    WORKERS,
    DemoStage,
    _check_steps,
    _hold,
    run_demo,
)
from hearth.market.profiles import DEVNET
from hearth.protocol import formulas
from hearth.protocol.types import Billing, State, Unit
from hearth.protocol.units import NATIVE, parse_rate
from tests.kit import build
from worker.decide import MAX_TRIES

POLICY, NODES = DEVNET.policy, DEVNET.node_parameters
SEASONED = 5
"""How many full successes end a probation (protocol.md "Matching")."""
SPEC = load_spec(EXAMPLES / "wordcount-array" / f"{NEWCOMERS}.yaml").spec
RATES = {name: parse_rate(price, NATIVE) for name, price in PRICES.items()}


def price(rate: int) -> int:
    return rate * SPEC.max_seconds // 10**6


def test_newcomers__its_units__go_to_one_worker_on_probation_that_has_more_of_them_than_it_needs() -> None:
    assert SPEC.price.max_rate is not None
    most = parse_rate(SPEC.price.max_rate, NATIVE)
    fit = [name for name in WORKERS if RATES[name] <= most]
    # The cheapest has one slot, which the job that is posted first fills.
    assert fit[0] == CHEAPEST and SLOTS[CHEAPEST] == 1 and len(fit) == 2
    # Each unit of the other one pays the market the fee of a full success, however short it is.
    assert billing_of(SPEC) is Billing.FIXED
    assert price(RATES[fit[1]]) * POLICY.fee_bps // 10_000 >= NODES.fee_reference
    # Without the flag its units would be too dear for a newcomer, or come one at a time.
    assert price(most) > POLICY.probation_price and SPEC.match.newcomers
    # A slot begins a unit every two blocks at most: what it begins until the fifth is settled waits for that too.
    begun = SEASONED + SLOTS[fit[1]] * (2 + POLICY.fresh_delay) // 2
    assert SPEC.array.units - begun >= 4


def test_spoilt__its_tries__outlast_the_time_in_which_it_goes_back_for_nothing() -> None:
    seconds = load_spec(EXAMPLES / SPOILT / "job.yaml").spec.max_seconds
    free = formulas.declinable_until(build.terms(max_seconds=seconds), Unit(state=State.RUNNING, started=0))
    # The executor's pause after each try, and the second before a deadline that a transaction takes at least.
    assert sum(2**tried for tried in range(1, MAX_TRIES + 1)) >= free - 1


def test_resume__a_count_that_would_end_before_its_checkpoint_is_on_chain__stands_still_once_it_is_far_enough(
    tmp_path: Path,
) -> None:
    job = "0x" + "ab" * 32
    states = tmp_path / "workers" / CHEAPEST / "jobs" / f"{job[2:]}-0-1" / "out" / "checkpoints"
    states.mkdir(parents=True)
    # From the 36th step on there are 2.4 s left, too few for a checkpoint and its block.
    count = f"""
import pathlib, sys, time
for step in range(1, {STEPS} + 1):
    time.sleep(0.1)
    pathlib.Path(sys.argv[2], f"step-{{step:06}}").touch()
"""
    program = [sys.executable, "-c", count, SANDBOX.decode(), str(states), f"31337-7697ce-1-{job[2:14]}-0-1"]
    said: list[str] = []
    client = Client(Settings(home=tmp_path))
    stage = DemoStage(client, tmp_path, lambda _, facts: said.append(str(facts["text"])), time.monotonic())
    with closing(client), subprocess.Popen(program) as process:
        try:
            # What is never held would be waited for without end.
            late = threading.Timer(30, stage.over.set)
            late.start()
            _hold(stage, job)
            late.cancel()
            held = len(list(states.iterdir()))
            time.sleep(0.5)
            assert KILL_STEP <= held <= len(list(states.iterdir())) <= held + 1 < STEPS
            assert Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"
        finally:
            process.kill()
    assert f"{RESUME} stands still at step" in said[0]


BAD, VAIN = "[warning] a state cannot be used attempt=", "[info] gathered in vain attempt="


@pytest.mark.parametrize(
    ("steps", "logs", "fault"),
    [
        ([KILL_STEP, STEPS - KILL_STEP], {}, ""),
        ([KILL_STEP, STEPS - KILL_STEP - 1], {}, "lost steps"),
        ([KILL_STEP - 1, STEPS - KILL_STEP + 1], {}, "lost steps"),
        ([STEPS], {}, "no worker logged why"),
        ([STEPS], {"worker2": [f"{VAIN}JOB-0-2"]}, "no worker logged why"),
        ([STEPS], {"worker2": [f"{VAIN}JOB-0-1"], "worker3": [f"{VAIN}JOB-0-1"]}, "no worker logged why"),
        ([STEPS], {"worker2": [f"{BAD}OTHER-0-2", f"{VAIN}OTHER-0-1", f"{VAIN}OTHER-0-2"]}, "no worker logged why"),
        ([STEPS], {"worker2": [f"{BAD}JOB-0-2 \xff"]}, ""),
        ([STEPS], {"worker3": [f"{VAIN}JOB-0-1", f"{VAIN}JOB-0-2"]}, ""),
    ],
)
def test_resume__what_its_result_came_to__is_whole_or_explained_by_one_worker(
    tmp_path: Path, steps: list[int], logs: dict[str, list[str]], fault: str
) -> None:
    job, other = "0x" + "ab" * 32, "cd" * 32
    for name in WORKERS:
        text = "\n".join(logs.get(name, ())).replace("JOB", job[2:]).replace("OTHER", other)
        (tmp_path / f"{name}.log").write_bytes(text.encode("latin-1"))
    said: list[str] = []
    client = Client(Settings(home=tmp_path))
    with closing(client), pytest.raises(HearthError, match=fault) if fault else nullcontext():
        stage = DemoStage(client, tmp_path, lambda _, facts: said.append(str(facts["text"])), time.monotonic())
        _check_steps(stage, job, steps)
    assert len(said) == (not fault and len(steps) == 1)
    assert all(ANEW in text and job[2:] in text for text in said)


def test_run_demo__page_that_is_not_built__is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbuilt() -> None:
        raise ConfigError("no page", code="NO_PAGE")

    monkeypatch.setattr("hearth.local.page.page_files", unbuilt)
    monkeypatch.setattr("hearth.local.demo._run", lambda *_, **__: pytest.fail("it was started"))
    with pytest.raises(ConfigError) as caught:
        run_demo(lambda kind, facts: None, web=True)
    assert caught.value.code == "NO_PAGE"
