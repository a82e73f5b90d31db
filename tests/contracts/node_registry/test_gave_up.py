"""NodeRegistry.gave_up: slot and bond are free, a part of the stake is burnt, the failure counts."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import Gate
from tests.kit.evm import reverts
from tests.kit.steps import BOND, SLASH, ask, credited, engage, from_jobs, node_state
from tests.kit.world import ETHER, FEE_REFERENCE, MINIMUM_STAKE, World


def test_gave_up__default__burns_and_observes(seated_market: World) -> None:
    node = seated_market.register()
    engage(seated_market, node)
    engage(seated_market, node, bond=9)
    with credited(seated_market) as got:
        from_jobs(seated_market, "gave_up", node, seated_market.operator, BOND, 10**15, FEE_REFERENCE)
    assert got == {"dead": 10**15}
    state = node_state(seated_market, node)
    assert (state.busy, state.bond, state.s, state.cusum) == (1, 9, ONE, 64)
    assert seated_market.node(node).stake == seated_market.staked(node) == 100 * ETHER - 10**15
    totals = words.unpack(words.TOTALS, seated_market.nodes.call.totals())
    assert (totals["burnt"], totals["total"]) == (0, 100 * ETHER - 10**15)


@pytest.mark.parametrize(("fee", "weight", "sixteenths"), [(0, 0, 0), (FEE_REFERENCE // 2, ONE // 2, 32)])
def test_gave_up__fee__weighs_the_failure(seated: World, fee: int, weight: int, sixteenths: int) -> None:
    node = seated.register()
    engage(seated, node)
    from_jobs(seated, "gave_up", node, seated.operator, BOND, SLASH, fee)
    state = node_state(seated, node)
    assert (state.busy, state.bond, state.s, state.cusum) == (0, 0, weight, sixteenths)


def test_gave_up__hours_ration__spares_nobody(seated: World) -> None:
    """Another's slash fills the ration; who gives up is no victim of an outage."""
    node, ration = seated.register(), 3 * MINIMUM_STAKE
    engage(seated, node, bond=ration)
    from_jobs(seated, "reclaimed", node, 1, ration, ration, 0, 0, 0, seated.keeper)
    engage(seated, node)
    with credited(seated) as got:
        from_jobs(seated, "gave_up", node, seated.operator, BOND, SLASH, 0)
    assert got == {"dead": SLASH}


def test_gave_up__not_the_operator__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for operator in (seated.owner, seated.stranger):
        with reverts("nodes: not the operator"):
            from_jobs(seated, "gave_up", node, operator, BOND, 1, 1)


def test_gave_up__not_the_job_registry__reverts(seated: World) -> None:
    node = seated.register()
    engage(seated, node)
    for sender in (seated.operator, seated.owner, seated.deployer):
        with reverts("nodes: not the job registry"):
            seated.nodes.send.gave_up(node, seated.operator, BOND, 1, 1, sender=sender)


def test_gave_up__past_2038__tells_each_quarantine_once_and_whole(seated: World) -> None:
    """From then on a second needs all of its lane's 32 bits."""
    seated.evm.at(2**31)
    node = seated.register()

    def told(fee: int) -> list[dict[str, Any]]:
        engage(seated, node, bond=0)
        return from_jobs(seated, "gave_up", node, seated.operator, 0, 0, fee).events("Quarantined")

    assert told(FEE_REFERENCE) == told(FEE_REFERENCE) == []
    until = seated.evm.now + 3_600
    assert told(FEE_REFERENCE) == [{"node": node, "until": until}]
    assert node_state(seated, node).quarantine == until
    seated.evm.at(until - 1)
    seated.nodes.send.beat(node, sender=seated.operator)
    assert seated.nodes.call.gate(node, ask(bond=0)) == Gate.QUARANTINED
    seated.evm.warp(1)
    assert seated.nodes.call.gate(node, ask(bond=0)) == Gate.FITS
    assert told(FEE_REFERENCE // 4) == []
