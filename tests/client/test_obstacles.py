"""hearth.client.nodes.obstacles: each thing that a node waits for, by its name, its words and the command to mend
it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ChainError
from hearth.client.nodes.obstacles import HOUR, bond_at, covered, dearest, longest, on_probation, short_of, waits_of
from hearth.jobfile.plan import auto_keeper_fee
from hearth.market import profiles
from hearth.protocol import formulas
from hearth.protocol.types import RATE_SCALE, Node
from hearth.protocol.units import (
    Asset,
    amount_at_least,
    format_duration,
    parse_amount,
    parse_rate,
    rate_at_most,
    show_rate,
)
from tests.cli.test_cli import _unknown
from tests.client import test_gates
from tests.worker import test_decide as decided
from worker.scaffold import _warn_of_bond

ETH = Asset("ETH", 18)
NOW = decided.NOW
PARAMETERS = profiles.PUBLIC.node_parameters
GOOD = replace(
    decided.NODE,
    stake=PARAMETERS.minimum_stake,
    state=replace(decided.NODE.state, beat=NOW, quarantine=0),
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
        (node(quarantine=NOW + 3600), ["quarantine"], "quarantined for 1h more", "hearth worker earnings"),
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


POLICY = profiles.PUBLIC.policy
ETHER = 10**18


@pytest.mark.parametrize("stake", [ETHER // 100, ETHER, 7 * ETHER + 1])
def test_dearest_and_longest__one_more__is_not_covered(stake: int) -> None:
    rate = dearest(stake, HOUR, POLICY)
    assert bond_at(rate, HOUR, POLICY) <= stake < bond_at(rate + 1, HOUR, POLICY)
    seconds = longest(stake, 3 * rate, POLICY)
    assert bond_at(3 * rate, seconds, POLICY) <= stake < bond_at(3 * rate, seconds + 1, POLICY)
    assert dearest(0, HOUR, POLICY) == longest(0, rate, POLICY) == 0


def test_bond_at__job_whose_price_is_the_ask__is_its_bond() -> None:
    terms = test_gates.TERMS
    fee = auto_keeper_fee(formulas.unit_price(terms), test_gates.POLICY)
    bond = formulas.bond(replace(terms, keeper_fee=fee))
    assert bond_at(terms.ceiling, terms.max_seconds, test_gates.POLICY) == bond


@pytest.mark.parametrize("registered", [True, False])
def test_short_of__price_that_the_stake_does_not_cover__says_what_would(registered: bool) -> None:
    rate = dearest(ETHER, HOUR, POLICY)
    assert short_of(ETHER, rate, POLICY, ETH, registered=registered) is None
    dear = 4 * rate
    bond, most = amount_at_least(bond_at(dear, HOUR, POLICY), ETH), rate_at_most(rate, ETH)
    said = short_of(ETHER, dear, POLICY, ETH, registered=registered)
    assert said is not None and said.startswith(
        f"a lease of an hour at {show_rate(dear, ETH)} binds at least {bond} of"
    )
    assert (
        f"1 ETH covers at most {most} for an hour, or {format_duration(longest(ETHER, dear, POLICY))} at that" in said
    )
    command = said.partition("; next: ")[2]
    missing = amount_at_least(bond_at(dear, HOUR, POLICY) - ETHER, ETH)
    if registered:
        assert command == f'hearth worker stake "{missing}"; or hearth worker price "{most}"'
    else:
        assert command == f'hearth worker register --stake "{bond}"; or offer.price = "{most}" in worker.toml'
    assert _unknown(command) == []
    # After either command, it is covered.
    assert short_of(parse_amount(bond, ETH), dear, POLICY, ETH, registered=registered) is None
    assert short_of(ETHER, parse_rate(most, ETH), POLICY, ETH, registered=registered) is None


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (1, None),  # an hour is just within
        (2, "on probation it gets jobs of at most 0.02 ETH: 30m at that price"),
        (10**6, "on probation it gets jobs of at most 0.02 ETH: none at that price"),
    ],
)
def test_on_probation__price__says_how_long_a_job_may_take(times: int, said: str | None) -> None:
    most = POLICY.probation_price * RATE_SCALE // HOUR
    assert on_probation(times * most, POLICY, ETH) == said
    assert on_probation(times * most, replace(POLICY, probation_price=0), ETH) is None


def test_covered__stake_below_every_bond__says_that_no_job_comes() -> None:
    assert covered(1, 10**20, POLICY, ETH).endswith("covers no price for an hour: no job at that price")


@pytest.mark.parametrize("registered", [True, False])
def test_short_of__highest_price_that_is_nothing_an_hour__is_not_told(registered: bool) -> None:
    cheap = replace(POLICY, min_keeper_fee=0, min_bond_bps=10_000)
    assert 0 < dearest(1, HOUR, cheap) * HOUR < RATE_SCALE
    said = short_of(1, 10**20, cheap, ETH, registered=registered)
    assert said is not None and "covers no price for an hour" in said and " or " not in said.partition("; next: ")[2]


def test_init__price_that_the_least_stake_does_not_cover__is_warned_of() -> None:
    told: list[tuple[str, str]] = []
    market: Any = SimpleNamespace(policies=lambda: SimpleNamespace(policy=POLICY))
    session: Any = SimpleNamespace(
        market=market,
        network=SimpleNamespace(node_parameters=PARAMETERS),
        asset=ETH,
        tell=lambda kind, facts: told.append((kind, facts["text"])),
    )
    rate = dearest(PARAMETERS.minimum_stake, HOUR, POLICY)
    _warn_of_bond(session, rate)
    assert told == []
    _warn_of_bond(session, 2 * rate)
    ((kind, text),) = told
    assert kind == "warning" and "hearth worker register --stake" in text

    # Where no RPC answers, nothing is said.
    def dead() -> Any:
        raise ChainError("no RPC")

    market.policies = dead
    _warn_of_bond(session, 2 * rate)
    assert len(told) == 1


def test_waits_of__process_that_was_paused__is_resumed() -> None:
    (wait,) = waits_of(node(beat=0), NOW, PARAMETERS, ETH, start="hearth worker resume")
    assert wait["next"] == "hearth worker resume"
