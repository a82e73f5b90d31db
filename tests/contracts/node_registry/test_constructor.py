"""NodeRegistry's constructor: the bounds of each parameter, and what can be read back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import world as w
from tests.kit.evm import NATIVE, Contract, Evm, reverts

GOOD: dict[str, Any] = dict(
    dead_after=900,
    ask_notice=600,
    unbonding=86_400,
    minimum_stake=10,
    fee_reference=10,
    liveness_fee=10,
    ration_bps=100,
)


@pytest.fixture
def evm() -> Evm:
    return Evm()


def _deploy(evm: Evm, jobs: str | None = None, **changes: int) -> Contract:
    escrow = evm.deploy("Escrow", NATIVE)
    return evm.deploy("NodeRegistry", escrow, jobs or evm.account("jobs"), *{**GOOD, **changes}.values(), NATIVE)


def test_constructor__world__reads_back_every_parameter(market: w.World) -> None:
    nodes = market.nodes.call
    assert nodes.ESCROW() == market.escrow.address
    assert nodes.ASSET() == (market.token.address if market.token else NATIVE)
    assert nodes.JOBS() == market.jobs.address
    assert (nodes.DEAD_AFTER(), nodes.ASK_NOTICE(), nodes.UNBONDING()) == (w.DEAD_AFTER, w.ASK_NOTICE, w.UNBONDING)
    assert (nodes.MINIMUM_STAKE(), nodes.minimum_stake()) == (w.MINIMUM_STAKE, w.MINIMUM_STAKE)
    assert (nodes.FEE_REFERENCE(), nodes.LIVENESS_FEE()) == (w.FEE_REFERENCE, w.LIVENESS_FEE)
    assert nodes.RATION_BPS() == w.RATION_BPS
    assert nodes.governor() == market.deployer
    assert nodes.offered_governor() == w.ZERO
    assert nodes.paused_until() == 0
    assert nodes.totals() == 1


@pytest.mark.parametrize(
    ("name", "low", "high", "reason"),
    [
        ("dead_after", 3, 86_400, "nodes: dead_after out of range"),
        ("ask_notice", 0, 86_400, "nodes: ask_notice out of range"),
        ("unbonding", 1, 30 * 86_400, "nodes: unbonding out of range"),
        ("minimum_stake", 10, 2**80 - 1, "nodes: minimum out of range"),
        ("fee_reference", 1, 2**80 - 1, "nodes: reference out of range"),
        ("liveness_fee", 0, 10, "nodes: fee above minimum"),
        ("ration_bps", 0, 10_000, "nodes: ration out of range"),
    ],
)
def test_constructor__parameter_at_and_beyond_its_bounds__is_taken_and_refused(
    evm: Evm, name: str, low: int, high: int, reason: str
) -> None:
    _deploy(evm, **{name: low})
    _deploy(evm, **{name: high})
    with reverts(reason):
        _deploy(evm, **{name: high + 1})
    if name in ("dead_after", "unbonding", "fee_reference"):
        with reverts(reason):
            _deploy(evm, **{name: low - 1})


def test_constructor__minimum_of_zero__reverts(evm: Evm) -> None:
    _deploy(evm, minimum_stake=1, liveness_fee=0)
    with reverts("nodes: minimum out of range"):
        _deploy(evm, minimum_stake=0, liveness_fee=0)


def test_constructor__jobs_zero__reverts(evm: Evm) -> None:
    with reverts("nodes: jobs zero"):
        _deploy(evm, jobs=NATIVE)


def test_constructor__minimum_stake_and_governor__are_logged(evm: Evm) -> None:
    nodes = _deploy(evm, minimum_stake=11)
    assert [(log.name, log.args, log.address) for log in evm.last_logs] == [
        ("MinimumStakeChanged", {"amount": 11}, nodes.address),
        ("GovernorChanged", {"governor": NATIVE}, nodes.address),
    ]
