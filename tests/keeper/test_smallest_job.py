"""The smallest job that a keeper touches: what the command prints is what `decide` does, to a base unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import smallest_job
from bench.sections import part, write_part
from hearth.base.errors import ConfigError
from hearth.protocol import formulas
from hearth.protocol.parents import Condition
from hearth.protocol.types import NodeId, State
from hearth.protocol.units import Asset
from keeper.actions import Action, Close, Expire, Propose, Reclaim, Settle, Unlock
from keeper.decide import decide
from keeper.snapshot import JobRow, ParentWord, UnitRow
from tests.keeper.markets import NOW, WELL, case_of, job, node, open_unit, parent

NATIVE = (Asset("COIN", 18), Fraction(1), Fraction(1))
DOLLARS = (Asset("USD", 6, "0x" + "11" * 20), Fraction(2_500), Fraction(1))
CHEAP_COIN = (Asset("COIN", 18), Fraction(5_000), Fraction(5_000))
MARKETS = {"native": NATIVE, "dollars": DOLLARS, "a coin of fifty cents": CHEAP_COIN}
LATE = smallest_job.RAMPED


def leased(state: State, since: int) -> UnitRow:
    return open_unit(state=state, node=NodeId(1), mark=NOW - since, started=NOW - 5_000)


Make = Callable[[smallest_job.Market, int], list[JobRow]]


def with_unit(unit: UnitRow, count: int = 1) -> Make:
    """Return jobs of one such unit each, the smallest that have a keeper fee."""
    return lambda market, fee: [smallest(market, fee, number, unit) for number in range(1, count + 1)]


def smallest(market: smallest_job.Market, fee: int, number: int, unit: UnitRow, deadline: int = 0) -> JobRow:
    terms = replace(market.terms(fee), match_window=12, deadline=deadline or NOW + 86_400, max_attempts=8)
    row = job(unit, number=number)
    return replace(row, terms=terms)


def expired(market: smallest_job.Market, fee: int) -> list[JobRow]:
    row = smallest(market, fee, 1, open_unit())
    late = NOW - LATE - formulas.expirable_from(row.terms)
    return [replace(row, terms=replace(row.terms, deadline=row.terms.deadline + late))]


def blocked(market: smallest_job.Market, fee: int) -> list[JobRow]:
    return [replace(smallest(market, fee, 1, open_unit(state=State.BLOCKED)), parents=(parent(1, Condition.ALWAYS),))]


CASES: dict[str, tuple[type[Action], Make]] = {
    "propose a node": (Propose, with_unit(open_unit())),
    "settle, alone, at once": (Settle, with_unit(leased(State.SUBMITTED, 0))),
    "settle, alone, after ten minutes": (Settle, with_unit(leased(State.SUBMITTED, LATE))),
    "settle, 64 in a batch, after ten minutes": (Settle, with_unit(leased(State.SUBMITTED, LATE), 64)),
    "reclaim, at once": (Reclaim, with_unit(leased(State.RUNNING, 0))),
    "reclaim, after ten minutes": (Reclaim, with_unit(leased(State.RUNNING, LATE))),
    "close, after ten minutes": (Close, with_unit(leased(State.CLOSING, LATE))),
    "expire, after ten minutes": (Expire, expired),
    "unlock, one parent": (Unlock, blocked),
}


def acts(market: smallest_job.Market, kind: type[Action], rows: list[JobRow]) -> bool:
    """Say whether the keeper does this to all of the jobs, of a fleet that any of them fits."""
    fleet = (node(1, ask=1, stake=10**22, beat=NOW), node(2, ask=1, stake=10**22, beat=NOW))
    ended = ParentWord(WELL, 0) if any(row.parents for row in rows) else None
    words = {one.job: ended for row in rows for one in row.parents} if ended else {}
    case = case_of(fleet, tuple(rows), gas_price=market.gas_price, parents=words)
    said = decide(case.snapshot, replace(market.config, jitter=0, latency=0), NOW)
    found = [one for one in said if isinstance(one, kind)]
    if kind is Settle:
        return sum(len(one.items) for one in found if isinstance(one, Settle)) == len(rows)
    return len(found) == len(rows)


def test_works__each__has_a_case_here() -> None:
    assert [work.name for work in smallest_job.works()] == list(CASES)


@pytest.mark.parametrize("gwei", ["0.01", "3"])
@pytest.mark.parametrize("name", MARKETS)
@pytest.mark.parametrize("work", smallest_job.works(), ids=lambda work: work.name)
def test_smallest_fee__any_market__decide_acts_at_it_and_not_below(
    work: smallest_job.Work, name: str, gwei: str
) -> None:
    asset, per_ether, coins = MARKETS[name]
    # A coin that is worth less buys less gas.
    market = smallest_job.market_of(asset, Fraction(gwei) * coins, per_ether=per_ether, coins=coins)
    kind, make = CASES[work.name]
    fee = smallest_job.smallest_fee(market, work)
    assert fee is not None and fee > market.policy.min_keeper_fee
    assert acts(market, kind, make(market, fee))
    assert not acts(market, kind, make(market, fee - 1))


def test_smallest_fee__gas_for_nothing__is_the_policys_minimum() -> None:
    market = smallest_job.market_of(NATIVE[0], Fraction(1, 10**9), per_ether=NATIVE[1], coins=NATIVE[2])
    assert {smallest_job.smallest_fee(market, work) for work in smallest_job.works()} == {market.policy.min_keeper_fee}
    fee = smallest_job.whole_fee(market)
    assert fee == market.policy.min_keeper_fee
    assert smallest_job.named_price(market, fee) == smallest_job.automatic_price(market, fee) == market.policy.min_price


def test_smallest_fee__gas_dearer_than_any_job__is_none() -> None:
    market = smallest_job.market_of(NATIVE[0], Fraction(10**13), per_ether=NATIVE[1], coins=NATIVE[2])
    assert smallest_job.whole_fee(market) is None
    assert "| none |" in smallest_job.table([market])


def test_terms__any_fee__have_the_price_that_the_table_names() -> None:
    for asset, per_ether, coins in MARKETS.values():
        market = smallest_job.market_of(asset, Fraction(1), per_ether=per_ether, coins=coins)
        least = market.policy.min_keeper_fee
        for fee in (least, least + 1, 7 * least + 3, smallest_job.MOST_FEE):
            terms = market.terms(fee)
            assert formulas.price(terms) == max(market.policy.min_price, fee) and terms.ceiling < 1 << 80


def test_page__its_tables__are_those_that_the_command_writes() -> None:
    assert part(smallest_job.PAGE, "smallest-job") == smallest_job.page_part(), "run make bench-smallest-job"


def test_command__figures__are_printed_or_refused() -> None:
    said = CliRunner().invoke(smallest_job.main, ["--gwei", "0.01", "--gwei", "2"])
    assert said.exit_code == 0 and said.output.count("| 0.01 gwei | 2 gwei |") == 2
    for bad in (["--gwei", "x"], ["--gwei", "0"], ["--per-ether", "-1"], ["--coins", "1/0"], ["--decimals", "0"]):
        refused = CliRunner().invoke(smallest_job.main, bad)
        assert refused.exit_code == 2 and "Error: " in refused.output, bad
    with pytest.raises(ConfigError):
        smallest_job.said_of(["nan"], per_ether="1", decimals=6, coins="1")


def test_write_part__only_what_lies_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: written by `make bench-x` -->\nold\n<!-- end of x -->\nb\n")
    write_part(page, "x", "new\n")
    assert part(page, "x") == "new\n"
    assert page.read_text() == "a\n<!-- x: written by `make bench-x` -->\nnew\n<!-- end of x -->\nb\n"
    with pytest.raises(ValueError, match="has no part y"):
        write_part(page, "y", "new\n")
