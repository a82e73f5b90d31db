"""What keeps a node from work, and the command that mends it, from what the chain says of it: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hearth.protocol import formulas
from hearth.protocol.types import Status
from hearth.protocol.units import Asset, format_amount, format_duration

if TYPE_CHECKING:
    from hearth.client.reports import Wait
    from hearth.market.network import NodeParameters
    from hearth.protocol.types import Node

START: Final = "hearth worker start"


def waits_of(node: Node, now: int, parameters: NodeParameters, asset: Asset, *, start: str = START) -> list[Wait]:
    """Return all that keeps a node from leases, or from more than one, at chain second `now`; first what is worst.

    `start` is what makes it beat again, for whoever knows of its process. Mirrors `formulas.status` and the gates of
    the node's own state: a node can wait for more than one of these.
    """
    match formulas.status(node, now, parameters.dead_after, parameters.minimum_stake):
        case Status.EXITED:
            return [_wait("exited", "it has left the market", "hearth worker register")]
        case Status.EXITING:
            left = max(0, node.exit_at - now)
            text = f"it leaves the market, its stake is free in {format_duration(left)}"
            return [_wait("exiting", text, "hearth worker exit --cancel, or then hearth worker exit --finish")]
    waits: list[Wait] = []
    short = formulas.stake_short(node, parameters.minimum_stake)
    if short:
        least = parameters.minimum_stake
        text = f"stake {format_amount(short, asset)} short of half the minimum of {format_amount(least, asset)}"
        waits.append(_wait("stake", text, stake_command(short, least, asset)))
    if node.state.beat == 0:
        waits.append(_wait("beat", "it has not beaten yet", start))
    elif now >= node.state.beat + parameters.dead_after:
        waits.append(_wait("silent", f"it last beat {format_duration(now - node.state.beat)} ago", start))
    if now < node.state.quarantine:
        text = f"in quarantine for {format_duration(node.state.quarantine - now)} more, after failures"
        waits.append(_wait("quarantine", text, "hearth worker earnings"))
    if not node.state.seasoned:
        text = (
            "on probation until about five leases were paid in full: what its leases reserve together is bounded, "
            "and a result is paid after a delay"
        )
        waits.append(_wait("probation", text, "hearth net params"))
    return waits


def stake_command(short: int, minimum: int, asset: Asset) -> str:
    """Return the command for a node that lacks so much, in base units: it then has the minimum, twice what it needs."""
    missing = minimum - formulas.active_stake(minimum) + short
    return f"hearth worker stake {format_amount(missing, asset, symbol=False)}"


def _wait(reason: str, text: str, command: str) -> Wait:
    return {"reason": reason, "text": text, "next": command}
