"""What a job is expected to cost: never more than its ceiling, and no figure where there is nothing to go by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.client.posting import estimate as module
from hearth.client.posting.estimate import Runs, earlier_runs, estimate
from hearth.client.records import Records
from hearth.market.profiles import DEVNET
from hearth.protocol import formulas
from hearth.protocol.runtimes import DOCKER, WASM, RuntimeKind
from hearth.protocol.types import Billing, Header, Needs, Outcome, State, Terms, Unit, UnitFlag
from hearth.protocol.units import Asset, parse_rate
from hearth.protocol.words import pack_header, pack_policy, pack_unit

POLICY = DEVNET.policy
ETH = Asset("ETH", 18)
ASK = parse_rate("0.6/h", ETH)
SPEC = bytes([5]) * 32
TERMS = Terms(
    submitter="0x" + "11" * 20,
    salt=0,
    spec=SPEC,
    needs=Needs(cores=1),
    ceiling=2 * ASK,
    max_seconds=120,
    deadline=1 << 32,
    keeper_fee=8 * 10**12,
    policy=pack_policy(POLICY),
    max_attempts=3,
    match_window=1,
    billing=Billing.METERED,
)
KEEPERS = 5 * 10**12  # a tip of a half, a settlement of an eighth


def costs(terms: Terms, asks: list[int], runs: Runs, kind: RuntimeKind = DOCKER) -> dict[Billing, int | None]:
    return {cost.billing: cost.expected for cost in estimate(terms, kind, asks, runs).costs}


def test_estimate__seven_of_120_seconds__metered_pays_seven() -> None:
    found = estimate(TERMS, DOCKER, [ASK // 2, ASK, 2 * ASK], Runs((6, 7, 90)))
    assert [(cost.billing, cost.seconds, cost.expected) for cost in found.costs] == [
        (Billing.METERED, 7, ASK * 7 // 10**6 + KEEPERS),
        (Billing.FIXED, 120, ASK * 120 // 10**6 + KEEPERS),
    ]
    assert found.lines(TERMS, ETH) == [
        "expected: metered (chosen) ~0.00117167 ETH; fixed ~0.020005 ETH",
        "  by 0.6 ETH/h, the middle ask of the 3 workers that can take it, one attempt each; "
        "7s a unit, the middle of 3 of this spec that ran before",
    ]
    open_claim = replace(TERMS, match_window=0, units=4)
    assert costs(open_claim, [ASK], Runs((7,)))[Billing.METERED] == 4 * (ASK * 7 // 10**6 + 10**12)


def test_estimate__nothing_ran_before__invents_no_time_and_says_at_most() -> None:
    found = estimate(TERMS, DOCKER, [ASK], Runs())
    assert [(cost.billing, cost.seconds) for cost in found.costs] == [(Billing.METERED, None), (Billing.FIXED, 120)]
    assert found.costs[0].expected is None
    assert found.lines(TERMS, ETH) == [
        "expected: metered (chosen) 0.01 ETH for each minute of a unit, at most 0.020005 ETH; fixed ~0.020005 ETH",
        "  by 0.6 ETH/h, the ask of the one worker that can take it, one attempt each; "
        "how long a unit takes is not known: none of this very spec has run and was settled from here",
    ]


def test_estimate__wasm__has_a_figure_by_fuel_where_fuel_was_billed() -> None:
    terms = replace(TERMS, billing=Billing.FUEL)
    known = estimate(terms, WASM, [ASK], Runs((9,), (3,)))
    assert [cost.billing for cost in known.costs] == [Billing.FUEL, Billing.METERED, Billing.FIXED]
    assert [cost.seconds for cost in known.costs] == [3, 9, 120]
    assert "9s and 3s of fuel a unit, as the one of this spec that ran before" in known.lines(terms, ETH)[1]
    assert known.costs[0].expected == ASK * 3 // 10**6 + KEEPERS
    # Which billing is chosen changes none of the figures.
    assert costs(TERMS, [ASK], Runs((9,), (3,)), WASM) == {cost.billing: cost.expected for cost in known.costs}
    timed = estimate(terms, WASM, [ASK], Runs((9,)))
    assert timed.costs[0].expected is None
    assert "fuel (chosen) 0.01 ETH for each 60 billion instructions of a unit, at most" in timed.lines(terms, ETH)[0]


def test_estimate__nobody_can_take_it__has_no_rate_and_no_figure() -> None:
    found = estimate(TERMS, DOCKER, [], Runs((7,)))
    assert [cost.expected for cost in found.costs] == [None, None] and found.rate is None
    assert found.lines(TERMS, ETH) == []


@given(
    ceiling=st.integers(1, 10**22),
    asks=st.lists(st.integers(1, 10**22), min_size=1, max_size=5),
    seconds=st.integers(1, 10**5),
    elapsed=st.lists(st.integers(0, 2 * 10**5), min_size=1, max_size=5),
    fee=st.integers(0, 10**15),
    window=st.integers(0, 300),
    units=st.integers(1, 1_000),
    chosen=st.sampled_from(Billing),
)
def test_estimate__any_job__metered_is_never_dearer_than_fixed_and_none_than_the_ceiling(
    ceiling: int, asks: list[int], seconds: int, elapsed: list[int], fee: int, window: int, units: int, chosen: Billing
) -> None:
    terms = replace(TERMS, ceiling=ceiling, max_seconds=seconds, keeper_fee=fee, match_window=window, units=units)
    terms = replace(terms, max_attempts=1, billing=chosen)
    fitting = sorted(ask for ask in asks if ask <= ceiling)
    runs = Runs(tuple(sorted(elapsed)), tuple(sorted(elapsed)))
    for cost in estimate(terms, WASM, fitting, runs).costs:
        assert cost.at_most == formulas.escrow_at_post(terms)
        assert (cost.expected is None) == (not fitting)
        assert (cost.expected or 0) <= cost.at_most
    found = costs(terms, fitting, runs, WASM)
    if fitting:
        # Here fuel counts as many seconds as the clock.
        assert found[Billing.FUEL] == found[Billing.METERED] <= found[Billing.FIXED]  # type: ignore[operator]


# ---- earlier units ----


def settled(took: int, **changes: Any) -> Unit:
    unit = Unit(state=State.SETTLED, outcome=Outcome.OK, started=1_000, mark=1_000 + took)
    return replace(unit, **changes)


def session_of(tmp_path: Path, jobs: dict[str, Any]) -> Any:
    """A session of a market that holds these jobs: a unit, an array's touched units, or None for never posted."""
    records = Records(tmp_path / "home", tmp_path / "home" / "jobs")
    for number, name in enumerate(jobs):
        records.write(name, "", "a.yaml", replace(TERMS, salt=number))

    def word(job: bytes) -> int:
        one = jobs["0x" + job.hex()]
        return 0 if one is None else pack_unit(one) if isinstance(one, Unit) else pack_header(Header(touched=len(one)))

    def units(job: bytes, first: int, count: int) -> list[Any]:
        return [SimpleNamespace(unit=unit) for unit in jobs["0x" + job.hex()][first : first + count]]

    market = SimpleNamespace(job_words=lambda names: [word(job) for job in names], units=units)
    return SimpleNamespace(records=records, market=market)


def test_earlier_runs__settled_units_of_the_spec__alone_count(tmp_path: Path) -> None:
    fuelled = settled(8, flags=UnitFlag.FUEL, seconds=2)
    jobs = {
        "0x" + "01" * 32: settled(7, outcome=Outcome.EXIT),
        "0x" + "02" * 32: None,
        "0x" + "03" * 32: Unit(state=State.REFUNDED, started=1_000, mark=1_900),
        "0x" + "04" * 32: [fuelled, settled(5), Unit(state=State.RUNNING, started=1_000, mark=2_000)],
        "0x" + "05" * 32: settled(3, flags=UnitFlag.NOTICED),
    }
    session = session_of(tmp_path, jobs)
    assert earlier_runs(session, SPEC) == Runs((5, 7, 8), (2,))
    assert earlier_runs(session, bytes(32)) == Runs()


def test_earlier_runs__many_jobs_and_units__are_looked_at_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKED_JOBS", 2)
    monkeypatch.setattr(module, "LOOKED_UNITS", 3)
    jobs = {f"0x0{number}" + "00" * 31: [settled(number)] * 5 for number in (1, 2, 3)}
    assert earlier_runs(session_of(tmp_path, jobs), SPEC).elapsed == (2, 2, 2, 3, 3, 3)
