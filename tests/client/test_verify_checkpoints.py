"""`hearth net verify` and what kept checkpoints earned: events, splits and storage have to agree."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.client.audit.verify import Verifier, _History
from hearth.client.job.receipt import shares_of
from hearth.market.events import CheckpointPaid, Settled, Split
from hearth.market.reads import UnitStatus, UnitView
from hearth.protocol import formulas, words
from hearth.protocol.types import Accused, Billing, Kept, NodeId, Outcome, State, Unit
from tests.client.test_parents import Place
from tests.kit import build

TERMS = build.terms(billing=Billing.METERED, checkpoint_every=2, max_seconds=600)
POLICY = words.unpack_policy(TERMS.policy)
DONE = Unit(State.SETTLED, Outcome.OK, NodeId(2), 10**18, 1_000, 1_100, attempts=3, resume=2)
KEPT = {2: Kept(40, 10**18, NodeId(1), 1), 1: Kept(30, 10**18, NodeId(3))}
SECOND, FIRST = formulas.checkpoint_pays(TERMS, DONE, KEPT)
JOB = b"\x07" * 32
LOG: Any = None


def told(*pays: formulas.CheckpointPay) -> list[CheckpointPaid]:
    return [CheckpointPaid(LOG, JOB, 0, one.node, one.attempt, one.pay, one.fee) for one in pays]  # type: ignore[arg-type]


def faults(paid: list[CheckpointPaid], unit: Unit = DONE, here: tuple[int, ...] = (1, 2, 3)) -> list[str]:
    verifier = Verifier(Place().reads)
    verifier._here = frozenset(NodeId(one) for one in here)
    posted: Any = SimpleNamespace(terms=TERMS, job_id=JOB)
    stored = UnitStatus(words.pack_unit(unit), UnitView(unit, 0, Accused()), KEPT)
    return list(verifier._checkpoints(posted, 0, stored, paid))


def test_checkpoints__paid_as_the_reference_says__are_in_order() -> None:
    assert faults(told(SECOND, FIRST)) == []
    assert faults([], replace(DONE, resume=0)) == [] == faults([], replace(DONE, outcome=Outcome.EXIT))
    assert faults([], replace(DONE, state=State.REFUNDED)) == []


def test_checkpoints__of_a_node_that_has_left__may_or_may_not_be_paid() -> None:
    assert faults(told(SECOND), here=(1, 2)) == [] == faults(told(SECOND, FIRST), here=(1, 2))


@pytest.mark.parametrize(
    ("paid", "unit"),
    [
        ([], DONE),
        (told(SECOND), DONE),
        (told(FIRST, SECOND), DONE),
        (told(SECOND, FIRST, FIRST), DONE),
        (told(SECOND._replace(pay=SECOND.pay + 1), FIRST), DONE),
        (told(SECOND, FIRST), replace(DONE, outcome=Outcome.EXIT)),
        (told(SECOND, FIRST), replace(DONE, state=State.REFUNDED)),
    ],
    ids=["none", "one", "order", "twice", "more", "failed", "refunded"],
)
def test_checkpoints__paid_otherwise__are_a_fault(paid: list[CheckpointPaid], unit: Unit) -> None:
    (why,) = faults(paid, unit)
    assert "its checkpoints earned" in why


@pytest.mark.parametrize("amounts", [(SECOND.pay, 0, 0, 0), (SECOND.pay - SECOND.fee, SECOND.fee, 0, 1), ()])
def test_history__split_that_pays_another_sum_than_was_told__is_a_fault(amounts: tuple[int, ...]) -> None:
    history = _History()
    (event,) = told(SECOND)
    history.pay(event)
    history.close((SECOND.pay - SECOND.fee, SECOND.fee, 0, 0))
    assert history.faults == []
    history.pay(event)
    history.close(amounts)
    history.close((1, 2, 3, 4))
    assert len(history.faults) == 1 and "the checkpoint of attempt 2 of unit 0" in history.faults[0]


def test_shares__split_of_a_checkpoint__gives_nothing_to_keepers_or_back() -> None:
    registry = "0x" + "ab" * 20

    def split(*amounts: int) -> Split:
        return Split(LOG, registry, bytes(32), tuple(amount << 160 | 1 for amount in amounts))

    end = Settled(LOG, JOB, 0, NodeId(2), words.pack_unit(DONE), 5, 1)  # type: ignore[arg-type]
    other = replace(end, job_id=b"\x08" * 32)  # type: ignore[arg-type]
    events = [end, *told(SECOND), split(7, 1, 0, 0), *told(FIRST), split(6, 1, 0, 0), split(4, 1, 20, 300)]
    assert shares_of([other, *told(FIRST), split(9, 1, 0, 0), split(8, 1, 2, 3), *events], JOB, registry) == (
        300,
        0,
        20,
    )
