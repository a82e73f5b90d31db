"""An action's name, journal key and call: what journals, status files and metrics of running keepers hold."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from hearth.chain.port import Call
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import SENTINEL, JobId, NodeId
from hearth.protocol.words import TermsWords
from keeper import actions
from keeper.actions import ALL, Action, CheckLiveness, Close, Expire, Propose, Reclaim, Settle, Unlock, name_of
from keeper.config import Config

JOB, OTHER = JobId(b"\xab" * 32), JobId(b"\xcd" * 32)
A, B = "0x" + "ab" * 32, "0x" + "cd" * 32
PAYEE = "0x" + "11" * 20
NODE = NodeId(7)


class Recorder:
    """Build a call that says which builder was asked for it, and with what."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: Call(None, b"", 0, repr((name, *args)))


def packed(job: JobId) -> TermsWords:
    return (job[0], bytes(32), 0, 0, 0, 0, 0, 0, bytes(32))


PAY = {"reward": 5, "gas": 9}
AFTER = (Parent(OTHER, Condition.FAILURE),)
LISTED = (bytes(31) + b"\2", OTHER)
CASES: list[tuple[Action, str, tuple[str, ...], str, tuple[Any, ...]]] = [
    (
        Propose(JOB, 3, NODE, 99, **PAY),
        f"propose/{A}/3/12",
        (f"{A}/3",),
        "node 7, earns 5",
        ("propose", packed(JOB), 3, NODE, PAYEE),
    ),
    (
        Propose(JOB, 4, NODE, 99, follows=True, **PAY),
        f"propose/{A}/4/12",
        (f"{A}/4",),
        "node 7, earns 5",
        ("propose", packed(JOB), SENTINEL, NODE, PAYEE),
    ),
    (
        Propose(JOB, 0, NODE, 99, improves=True, **PAY),
        f"improve/{A}/0/12",
        (f"{A}/0",),
        "node 7, earns 5",
        ("propose", packed(JOB), 0, NODE, PAYEE),
    ),
    (
        Reclaim(JOB, 1, NODE, **PAY),
        f"reclaim/{A}/1/12",
        (f"{A}/1",),
        "node 7, earns 5",
        ("reclaim", packed(JOB), 1, PAYEE),
    ),
    (Expire(JOB, 2, **PAY), f"expire/{A}/2/12", (f"{A}/2",), "earns 5", ("expire", packed(JOB), 2, PAYEE)),
    (
        Expire(JOB, ALL, **PAY),
        f"expire/{A}/all/12",
        (f"{A}/all",),
        "earns 5",
        ("expire", packed(JOB), SENTINEL, PAYEE),
    ),
    (
        Unlock(JOB, 0, AFTER, True, **PAY),
        f"unlock/{A}/0/12",
        (f"{A}/0",),
        "its parents ended as asked, earns 5",
        ("unlock", packed(JOB), LISTED, PAYEE),
    ),
    (
        Unlock(JOB, ALL, AFTER, False, **PAY),
        f"unlock/{A}/all/12",
        (f"{A}/all",),
        "a parent ended otherwise than asked: refunded, earns 5",
        ("unlock", packed(JOB), LISTED, PAYEE),
    ),
    (Close(JOB, 0, **PAY), f"close/{A}/0/12", (f"{A}/0",), "earns 5", ("close", packed(JOB), 0, PAYEE)),
    (Settle(((JOB, 6),), **PAY), f"settle/{A}/6/12", (f"{A}/6",), "earns 5", ("settle", packed(JOB), 6, PAYEE)),
    (
        Settle(((JOB, 6), (OTHER, 0), (JOB, 1)), **PAY),
        f"settle/{A}/6 and 2 more/12",
        (f"{A}/6", f"{B}/0", f"{A}/1"),
        "earns 5",
        ("settle_batch", [(packed(JOB), 6), (packed(OTHER), 0), (packed(JOB), 1)], PAYEE),
    ),
    (
        CheckLiveness((NODE,), **PAY),
        "check_liveness/node 7/12",
        ("node 7",),
        "earns 5",
        ("check_liveness", (NODE,), PAYEE),
    ),
    (
        CheckLiveness((NODE, NodeId(9)), **PAY),
        "check_liveness/node 7 and 1 more/12",
        ("node 7", "node 9"),
        "earns 5",
        ("check_liveness", (NODE, NodeId(9)), PAYEE),
    ),
]


@pytest.mark.parametrize(("action", "key", "ids", "why", "call"), CASES, ids=[case[1][:8] for case in CASES])
def test_action__each_kind__knows_its_key_ids_and_call(
    action: Action, key: str, ids: tuple[str, ...], why: str, call: tuple[Any, ...]
) -> None:
    assert action.tx_key(12) == key
    assert action.ids == ids
    assert action.why == why
    assert f"{action.kind}/{action.id}/12" == key
    assert action.call(Recorder(), packed, PAYEE).label == repr(call)


def test_action__every_kind__is_in_the_table() -> None:
    kinds = {kind for _, kind in inspect.getmembers(actions, inspect.isclass) if issubclass(kind, Action)}
    assert {type(case[0]) for case in CASES} == {kind for kind in kinds if not inspect.isabstract(kind)}


def test_name_of__several__first_whole_and_the_number_of_the_others() -> None:
    assert name_of([f"{A}/6"]) == f"{A}/6"
    assert name_of([f"{A}/6", f"{B}/0", f"{A}/1"]) == f"{A}/6 and 2 more"


@pytest.mark.parametrize("max_loss", [0, 7_000])
@pytest.mark.parametrize("gas", [0, 1, 50_000])
def test_worth_of__any_gas__is_the_highest_price_at_which_it_is_worth_it(gas: int, max_loss: int) -> None:
    config = Config(PAYEE, PAYEE, max_loss=max_loss, coin_price=10**15)
    most = config.worth_of(10**6, gas)
    assert config.is_worth(10**6, gas, most)
    assert config.is_worth(10**6, gas, most + 1) is (gas == 0)
