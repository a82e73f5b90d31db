"""hearth.client.standing: each thing that a node waits for, by its name, its words and the command that mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.client.standing import waits_of
from hearth.market import profiles
from hearth.protocol.types import Node
from hearth.protocol.units import Asset
from tests.cli.test_cli import _unknown
from tests.worker import test_decide as decided

ETH = Asset("ETH", 18)
NOW = decided.NOW
PARAMETERS = profiles.PUBLIC.node_parameters
GOOD = replace(
    decided.NODE,
    stake=PARAMETERS.minimum_stake,
    state=replace(decided.NODE.state, beat=NOW, quarantine=0, seasoned=True),
)


def node(*, stake: int = GOOD.stake, exit_at: int = 0, operator: str = GOOD.operator, **state: Any) -> Node:
    return replace(GOOD, stake=stake, exit_at=exit_at, operator=operator, state=replace(GOOD.state, **state))


@pytest.mark.parametrize(
    ("given", "reasons", "text", "command"),
    [
        (node(), [], "", ""),
        (node(stake=5 * 10**17), [], "", ""),
        (node(stake=5 * 10**17 - 10**13), ["stake"], "stake 0.00001 ETH short of half", "hearth worker stake 0.50001"),
        (node(stake=5 * 10**17 - 1), ["stake"], "", "hearth worker stake 0.500000000000000001"),
        (node(stake=0, beat=0), ["stake", "beat"], "stake 0.5 ETH short", "hearth worker stake 1"),
        (node(beat=0), ["beat"], "has not beaten yet", "hearth worker start"),
        (node(beat=NOW - PARAMETERS.dead_after), ["silent"], "it last beat 15m ago", "hearth worker start"),
        (node(beat=NOW - PARAMETERS.dead_after + 1), [], "", ""),
        (node(quarantine=NOW + 3600), ["quarantine"], "in quarantine for 1h more", "hearth worker earnings"),
        (node(quarantine=NOW), [], "", ""),
        (node(seasoned=False), ["probation"], "a result is paid after a delay", "hearth net params"),
        (node(exit_at=NOW + 60, stake=0), ["exiting"], "its stake is free in 1m", "hearth worker exit --finish"),
        (node(operator="0x" + "00" * 20), ["exited"], "it has left", "hearth worker register"),
    ],
)
def test_waits_of__each_state__named_with_the_command(given: Node, reasons: list[str], text: str, command: str) -> None:
    waits = waits_of(given, NOW, PARAMETERS, ETH)
    assert [wait["reason"] for wait in waits] == reasons
    assert all(_unknown(wait["next"]) == [] for wait in waits)
    if waits:
        assert text in waits[0]["text"] and command in waits[0]["next"]


def test_waits_of__process_that_was_paused__is_resumed() -> None:
    (wait,) = waits_of(node(beat=0), NOW, PARAMETERS, ETH, start="hearth worker resume")
    assert wait["next"] == "hearth worker resume"
