"""The units of a market's parameters: each has one, and one table says them everywhere."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hearth.client.governance.changes import policy_values
from hearth.client.governance.parameters import AMOUNTS, NODE_UNITS, POLICY_UNITS, SHARES, SPANS, in_words, unit_of
from hearth.market.changes import Change, ChangeOp
from hearth.market.network import NodeParameters
from hearth.market.profiles import DEVNET
from hearth.protocol import words
from hearth.protocol.types import Policy
from hearth.protocol.units import NATIVE


def test_unit_of__a_parameter_that_is_in_no_list__is_refused() -> None:
    with pytest.raises(ValueError, match="the parameter new_delay has no unit"):
        unit_of("new_delay")


def test_units__numbers_without_one__are_named_and_no_other_is() -> None:
    plain = {name for name, unit in (POLICY_UNITS | NODE_UNITS).items() if unit == "number"}
    assert plain == {"version", "reserved", "reserved_high"}
    assert set(POLICY_UNITS) == {one.name for one in fields(Policy)} == plain | {*AMOUNTS, *SHARES, *SPANS}
    assert set(NODE_UNITS) == {one.name for one in fields(NodeParameters)}


def test_policy_values__of_a_change__are_said_as_the_parameters_are() -> None:
    change = Change(ChangeOp.SET_POLICY, words.pack_policy(DEVNET.policy), 0)
    said = {name: in_words(POLICY_UNITS[name], getattr(DEVNET.policy, name), NATIVE) for name in POLICY_UNITS}
    assert dict(policy_values(change, NATIVE)) == said
    assert said["fee_bps"] == "500 (5 %)"
