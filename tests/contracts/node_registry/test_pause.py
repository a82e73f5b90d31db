"""NodeRegistry.pause: registrations stop for 7 days; nothing else does (its end: test_register)."""

from __future__ import annotations

from tests.kit.evm import reverts
from tests.kit.steps import around, engage, from_jobs
from tests.kit.world import DAY, ETHER, UNBONDING, World


def test_pause__governor__sets_its_end(seated: World) -> None:
    receipt = seated.nodes.send.pause()
    assert receipt.event("Paused") == {"until": seated.evm.now + 7 * DAY}
    assert seated.nodes.call.paused_until() == seated.evm.now + 7 * DAY


def test_pause__again__waits_for_thirty_days_from_the_last(seated: World) -> None:
    seated.nodes.send.pause()
    for offset in around(seated, seated.evm.now + 30 * DAY):
        if offset < 0:
            with reverts("nodes: paused lately"):
                seated.nodes.send.pause()
        else:
            seated.nodes.send.pause()
            assert seated.nodes.call.paused_until() == seated.evm.now + 7 * DAY


def test_pause__everything_but_register__goes_on(seated: World) -> None:
    node = seated.register()
    seated.nodes.send.pause()
    with reverts("nodes: paused"):
        seated.register()
    seated.pay(seated.nodes, "add_stake", node, seated.owner, ETHER, amount=ETHER, sender=seated.owner)
    seated.nodes.send.set_ask(node, 5, sender=seated.owner)
    seated.nodes.send.beat(node, sender=seated.operator)
    engage(seated, node, bond=0)
    from_jobs(seated, "submitted", node, seated.operator)
    seated.nodes.send.exit_start(node, sender=seated.owner)
    seated.evm.warp(UNBONDING)
    seated.nodes.send.exit_finish(node)


def test_pause__not_the_governor__reverts(seated: World) -> None:
    for sender in (seated.owner, seated.operator, seated.stranger):
        with reverts("nodes: not the governor"):
            seated.nodes.send.pause(sender=sender)
