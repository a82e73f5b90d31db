"""What the chain has kept of a lost attempt, where no answer about it comes: no worker ends, and nothing else waits.

Before a unit with a state is taken or started, the worker asks for that (`JobRegistry.checkpoints`) while its round
acts, where the words of the other reads have been taken already.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing

from hearth.base.errors import ChainError
from hearth.chain.port import Block, Call
from hearth.daemon.loop import Backoff
from hearth.market.abi import codec
from hearth.protocol import words
from hearth.protocol.formulas import unit_key
from hearth.protocol.types import NodeId, Outcome
from tests.kit.scripted import ScriptedMarket
from tests.worker.test_decide import KEY, NOW, OTHER
from tests.worker.test_decide_checkpoints import LOST, NEXT, SAVED, metered
from worker.attempt.task import Task
from worker.decide import Gather, LocalStep, Saved, StartRun, SubmitResult
from worker.loop import KEPT_ASKS, Worker
from worker.manifests import Manifests
from worker.metrics import WorkerMetrics

JOB = metered(LOST)
NEWER = (Saved(3, OTHER, 60, b"\x07" * 32), Saved(2, OTHER, 60, b"\x06" * 32))
GATHER = Gather(NEXT, NOW + 60, (SAVED,), 540)
START = StartRun(NEXT, NOW + 600, 1, NOW + 100, 0, SAVED)
RESULT = SubmitResult(KEY, b"\x01" * 32, b"\x02" * 32, Outcome.OK, 0)
KEPT = {"seconds": 60, "rate": 1, "node": OTHER, "resume": 0, "before": 7}


class Round:
    """A worker that has decided some steps and acts on them: what it sends, and what its executor is told."""

    def __init__(self, *steps: LocalStep) -> None:
        self.market = ScriptedMarket()
        self.market.chain.mine()
        self.sent: list[Any] = []
        self.tasks: list[Task] = []
        row = SimpleNamespace(terms=JOB.terms, policy=SimpleNamespace(grace_floor=60), in_vain=0, unheard={})
        worker = self.worker = Worker.__new__(Worker)
        worker._market, worker._head = self.market.market, self.market.chain.head()
        worker._chain = SimpleNamespace(jobs=(), node=SimpleNamespace(id=1))  # type: ignore[assignment]
        worker._watcher = SimpleNamespace(rows={JOB.id: row})  # type: ignore[assignment]
        worker._executor = SimpleNamespace(gather=self.tasks.append, start=self.tasks.append)  # type: ignore[assignment]
        lead = SimpleNamespace(seconds=1.0)
        worker._outbox = SimpleNamespace(send=self.sent.append, lead=lead)  # type: ignore[assignment]
        worker.metrics, worker._pauses = WorkerMetrics(), Backoff(base=0.5, cap=30.0)
        worker.told = SimpleNamespace(node=NodeId(1))  # type: ignore[assignment]
        worker.manifests = Manifests(self.market.market, lambda node: None)
        worker._last = [*steps, RESULT]

    def act(self) -> None:
        assert self.worker._survive(lambda: self.worker._act(NOW))

    def failures(self, code: str) -> float:
        found = self.worker.metrics.registry.get_sample_value("hearth_worker_failures_total", {"code": code})
        return found or 0.0

    def unheard(self, *, attempt: int = 1, fault: str = "RPC_DOWN") -> None:
        """Let no answer about an attempt come, or one that no contract writes."""
        asked = unit_key(JOB.id, 0, 1), attempt

        def answer(call: Call, block: Block) -> bytes:
            told = codec("JobRegistry").decode_input(call.data)
            assert told is not None
            if tuple(told[1].values()) != asked:
                return words.pack(words.KEPT, KEPT).to_bytes(32, "big")
            if fault == "RPC_BROKEN":
                return (1 << 200).to_bytes(32, "big")
            if fault == "WRONG_CONTRACTS":
                return b"\x01"
            raise ChainError("no answer", code="RPC_DOWN")

        self.market.on("JobRegistry", "checkpoints", answer)

    def heard(self) -> None:
        """Let the answer come."""
        self.market.answer("JobRegistry", "checkpoints", ["uint256"], [words.pack(words.KEPT, KEPT)])


@pytest.mark.parametrize("fault", ["RPC_DOWN", "RPC_BROKEN", "WRONG_CONTRACTS"])
@pytest.mark.parametrize("step", [GATHER, START], ids=["gather", "start"])
def test_act__no_answer_about_a_lost_attempt__ends_nothing_and_holds_up_no_result(step: LocalStep, fault: str) -> None:
    """What a provider gains that lies or fails: not the process, in which every lease would be lost, nor another's."""
    told = Round(step)
    told.unheard(fault=fault)
    with structlog.testing.capture_logs() as logs:
        for number in range(1, KEPT_ASKS):
            told.act()
            assert told.sent == [RESULT] * number
            assert told.failures(fault) == number
    assert not told.tasks, "another provider may tell it in the next round"
    assert {(line["step"], line["code"]) for line in logs} == {(type(step).__name__, fault)}


@pytest.mark.parametrize("fault", ["RPC_DOWN", "RPC_BROKEN"])
def test_act__no_answer_that_lasts__gathers_without_that_state_and_those_after_it(fault: str) -> None:
    states = (*NEWER, SAVED)
    told = Round(Gather(NEXT, NOW + 60, states, 540))
    told.unheard(attempt=2, fault=fault)
    for _ in range(KEPT_ASKS):
        assert not told.tasks
        told.act()
    told.heard()
    told.act()
    told.unheard(attempt=2, fault=fault)
    told.act()
    assert [task.states for task in told.tasks] == [states[:1], states], "an answer ends the row of those without one"


def test_act__no_answer_that_lasts__starts_the_lease_with_the_seconds_that_its_log_tells() -> None:
    """A lease that waited for it to its end would cost a part of the bond."""
    told = Round(START)
    told.unheard()
    for _ in range(KEPT_ASKS):
        assert not told.tasks
        told.act()
    assert [(task.states, task.held) for task in told.tasks] == [((SAVED,), 60)]


def test_act__answer_of_a_later_round__is_gone_by() -> None:
    told = Round(GATHER, START)
    told.unheard()
    told.act()
    told.heard()
    told.act()
    assert [(task.states, task.held) for task in told.tasks] == [((SAVED,), 0), ((SAVED,), 67)]
    assert told.sent == [RESULT] * 2
