"""NodeRegistry.slashed: a judge's verdict takes a bond whole; at most six tenths of it reach anybody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, reputation
from hearth.protocol.reputation import ONE
from hearth.protocol.types import Gate, NodeFlag, Status
from tests.kit.evm import reverts
from tests.kit.steps import BOND, ask, credited, engage, from_jobs, node_state
from tests.kit.vault import share
from tests.kit.world import DAY, DEAD, DEAD_AFTER, ETHER, MINIMUM_STAKE, UNBONDING, World

NOBODY = [0, 0, 0]


def _held(seated: World, *, bond: int = BOND, stake: int = 100 * ETHER) -> int:
    """Register a node and let it hold the bond of a submitted lease."""
    node = seated.register(stake=stake)
    engage(seated, node, bond=bond)
    from_jobs(seated, "submitted", node, seated.operator)
    return node


def test_slashed__shares__reach_whom_they_name_and_the_rest_is_burnt(seated_market: World) -> None:
    world = seated_market
    node = _held(world)
    given = [share(world.submitter, 3), share(world.stranger, BOND // 2), share(world.keeper, 4)]
    with credited(world) as got:
        receipt = from_jobs(world, "slashed", node, BOND, given)
    paid = 7 + BOND // 2
    assert got == {"submitter": 3, "stranger": BOND // 2, "keeper": 4, "dead": BOND - paid}
    until = world.evm.now + 7 * DAY
    event = receipt.event("Rejected")
    assert event == {"node": node, "shares": given, "burnt": BOND - paid, "until": until}
    assert world.node(node).stake == world.staked(node) == 100 * ETHER - BOND
    assert world.nodes.call.totals() >> 160 == 100 * ETHER - BOND
    assert node_state(world, node).bond == 0


def test_slashed__record__is_ten_failures_and_a_week_aside(seated: World) -> None:
    node = _held(seated)
    before = node_state(seated, node)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    state = node_state(seated, node)
    until = seated.evm.now + 7 * DAY
    assert state == reputation.reject(replace(before, bond=0), seated.evm.now)
    assert (state.s, state.trips, state.cusum) == (10 * ONE, 1, 128)
    assert (state.quarantine, state.status) == (until, before.status | NodeFlag.SLASHED)
    record = seated.node(node)
    for moment, status in ((until - 1, Status.SLASHED), (until, Status.INACTIVE)):
        assert formulas.status(record, moment, DEAD_AFTER, MINIMUM_STAKE) == status
        seated.evm.at(moment)
        seated.nodes.send.beat(node, sender=seated.operator)
        gate = Gate.QUARANTINED if moment < until else Gate.FITS
        assert seated.nodes.call.gate(node, ask()) == gate


def test_slashed__longer_quarantine__stays(seated: World) -> None:
    """Thirteen trips end in a week each; a verdict in the midst of one never shortens it, nor adds to it."""
    node = _held(seated)
    for _ in range(2):
        engage(seated, node)
    from_jobs(seated, "submitted", node, seated.operator)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    first = node_state(seated, node).quarantine
    seated.evm.warp(DAY)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    assert node_state(seated, node).quarantine == seated.evm.now + 7 * DAY == first + DAY


@pytest.mark.parametrize("bond", [BOND, 9, 8, 1, 19])
def test_slashed__shares__may_be_six_tenths_rounded_down(seated: World, bond: int) -> None:
    most = bond * 6_000 // 10_000
    for parts in ([most + 1, 0, 0], [most, 1, 0], [most // 2, most - most // 2, 1], [0, 0, bond]):
        with seated.evm.isolated():
            node = _held(seated, bond=bond)
            with reverts("nodes: shares too large"):
                from_jobs(seated, "slashed", node, bond, [share(seated.keeper, part) for part in parts])
    node = _held(seated, bond=bond)
    with credited(seated) as got:
        from_jobs(seated, "slashed", node, bond, [share(seated.keeper, most), 0, 0])
    assert got.get("keeper", 0) == most and got["dead"] == bond - most


def test_slashed__largest_amounts__do_not_wrap_round(seated: World) -> None:
    """Three shares of almost 2^96 add up; their sum is compared as it is."""
    node = _held(seated)
    whole = share(seated.keeper, 2**96 - 1)
    with reverts("nodes: shares too large"):
        from_jobs(seated, "slashed", node, BOND, [whole, whole, whole])


def test_slashed__share_for_nobody__reverts_in_escrow(seated: World) -> None:
    node = _held(seated)
    with reverts("escrow: share for nobody"):
        from_jobs(seated, "slashed", node, BOND, [1 << 160, 0, 0])


def test_slashed__whole_stake__leaves_a_node_of_nothing(seated: World) -> None:
    node = _held(seated, bond=100 * ETHER)
    from_jobs(seated, "slashed", node, 100 * ETHER, NOBODY)
    record = seated.node(node)
    assert (record.stake, record.owner, seated.staked(node)) == (0, seated.owner, 0)
    seated.evm.warp(7 * DAY)
    seated.nodes.send.beat(node, sender=seated.operator)
    assert seated.nodes.call.gate(node, ask(bond=0)) == Gate.NOT_ACTIVE


def test_slashed__other_leases__keep_their_bonds_and_slots(seated: World) -> None:
    node = seated.register()
    for bond in (5, BOND, 7):
        engage(seated, node, bond=bond)
    from_jobs(seated, "submitted", node, seated.operator)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    state = node_state(seated, node)
    assert (state.bond, state.busy) == (12, 2)


def test_slashed__ration__spares_no_verdict_and_is_not_filled(seated: World) -> None:
    """The ration is for outages; a verdict is no outage, and takes nothing from what an outage may burn."""
    node = _held(seated, bond=10 * ETHER)
    totals = seated.nodes.call.totals()
    with credited(seated) as got:
        from_jobs(seated, "slashed", node, 10 * ETHER, NOBODY)
    assert got == {"dead": 10 * ETHER} and 10 * ETHER > 3 * MINIMUM_STAKE
    assert seated.nodes.call.totals() % 2**160 == totals % 2**160


def test_slashed__dead_or_exiting_node__is_slashed_all_the_same(seated: World) -> None:
    node = _held(seated)
    seated.nodes.send.exit_start(node, sender=seated.owner)
    seated.evm.warp(UNBONDING + DEAD_AFTER)
    with reverts("nodes: bond outstanding"):
        seated.nodes.send.exit_finish(node)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    status = node_state(seated, node).status
    assert status & NodeFlag.EXITING and status & NodeFlag.SLASHED
    assert not node_state(seated, node).silent
    seated.nodes.send.exit_finish(node)
    assert seated.credit(seated.owner) == 100 * ETHER - BOND


def test_slashed__then_a_new_operator__keeps_the_mark(seated: World) -> None:
    node = _held(seated)
    from_jobs(seated, "slashed", node, BOND, NOBODY)
    before = node_state(seated, node)
    seated.nodes.send.set_operator(node, seated.keeper, sender=seated.owner)
    seated.nodes.send.beat(node, sender=seated.keeper)
    after = node_state(seated, node)
    assert (after.status, after.quarantine, after.s) == (before.status, before.quarantine, before.s)


@pytest.mark.parametrize("role", ["operator", "owner", "deployer", "keeper"])
def test_slashed__not_the_job_registry__reverts(seated: World, role: str) -> None:
    node = _held(seated)
    with reverts("nodes: not the job registry"):
        seated.nodes.send.slashed(node, BOND, NOBODY, sender=getattr(seated, role))
    assert seated.credit(DEAD) == 0
