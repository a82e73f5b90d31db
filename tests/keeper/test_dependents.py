"""What keepers spend on ending units whose end pays nobody, for the sake of jobs that wait: no more than those pay.

The end of a touched unit of an array pays its caller nothing. A keeper ends it all the same where jobs wait for the
array, for a share of what their unlocks pay.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas, words
from hearth.protocol.gas import EXPIRE_GAS, unlocking_gas
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import MAX_PARENTS, Header, JobId, State, Terms, Unit, UnitFlag
from keeper.actions import ALL, Action, Expire, Skip, Unlock
from keeper.config import Config
from keeper.decide import decide
from keeper.dependents import HOPED_ENDS
from keeper.snapshot import JobRow, ParentWord, UnitRow
from tests.keeper.chain import Follower, LoggingEvm
from tests.keeper.markets import FAILED, WELL, case_of, job, open_unit, parent
from tests.keeper.test_decide import BLOCKED, FREE
from tests.keeper.test_index import config_of, send, snapshot_of
from tests.kit.evm import Evm
from tests.kit.world import World

OVER = formulas.expirable_from(job().terms)
PAYING = replace(FREE, max_loss=0, coin_price=10**18)
"""A keeper that loses nothing, at one base unit per wei."""
ALWAYS, SUCCESS = Condition.ALWAYS, Condition.SUCCESS


class Family:
    """Parents and children, and a keeper that does what it decides, at a gas price of 1, in the second `OVER`."""

    def __init__(self) -> None:
        self.rows: dict[JobId, JobRow] = {}
        self.words: dict[JobId, ParentWord] = {}
        self.spent, self.earned, self.unlocks = 0, 0, 0
        self._numbers = count(1)

    def array(self, touched: int = 1, *, state: State = State.OPEN, rest: bool = False, fee: int = 1_000) -> JobId:
        """Add an array of which one lease has failed; `touched` others have not ended, in `state`."""
        leases = touched + 1 + rest
        header = Header(touched=touched + 1, failed=1, leases=leases)
        row = job(number=next(self._numbers), units=leases, header=header, keeper_fee=fee)
        unit = Unit(state=state, started=1, mark=1 << 35, flags=UnitFlag.ARRAY)
        unit = replace(unit, mark=0) if state is State.OPEN else unit
        return self.add(replace(row, units=tuple(UnitRow(index, unit) for index in range(1, touched + 1))))

    def single(self, fee: int = 1_000, *, late: bool = True) -> JobId:
        """Add a job of one lease that is open; `late`: its time is over."""
        row = job(open_unit(), number=next(self._numbers), keeper_fee=fee)
        return self.add(row if late else replace(row, terms=replace(row.terms, deadline=row.terms.deadline + 1)))

    def add(self, row: JobRow) -> JobId:
        self.rows[row.id] = row
        word = words.pack_header(row.header) if row.header else words.pack_unit(row.units[0].unit)
        self.words[row.id] = ParentWord(word, 0)
        return row.id

    def known(self, word: int) -> JobId:
        """Add a job of which the keeper knows its word alone."""
        job_id = parent(next(self._numbers)).job
        self.words[job_id] = ParentWord(word, 0)
        return job_id

    def child(self, fee: int, *parents: tuple[JobId, Condition], deadline: int = OVER + 10**6) -> JobId:
        """Add a job that waits."""
        listed = tuple(Parent(*one) for one in parents)
        return self.add(job(BLOCKED, number=next(self._numbers), parents=listed, deadline=deadline, keeper_fee=fee))

    def decide(self, config: Config = PAYING, now: int = OVER) -> list[Action]:
        case = case_of((), tuple(self.rows.values()), parents=self.words)
        said = decide(replace(case.snapshot, time=now, gas_price=1), config, now)
        return [one for one in said if not isinstance(one, Skip)]

    def ends(self, config: Config = PAYING, now: int = OVER) -> list[JobId]:
        return [one.job for one in self.decide(config, now) if isinstance(one, Expire)]

    def run(self, *, cancels: bool = False) -> None:
        """Let the keeper do all that it decides; with `cancels` each child is gone just before its unlock."""
        while actions := self.decide():
            for one in actions:
                row = self.rows.pop(one.job)  # type: ignore[attr-defined]
                if isinstance(one, Expire):
                    self.spent += EXPIRE_GAS
                    self.expire(row, one.index)
                else:
                    assert isinstance(one, Unlock)
                    self.unlocks += 1
                    if not cancels:
                        self.spent += unlocking_gas(len(row.parents))
                        self.earned += formulas.unlock_fee(row.terms)

    def expire(self, row: JobRow, index: int) -> None:
        header = row.header
        if header is None or index == ALL:
            self.earned += formulas.expire_reward(row.terms, None, 0)
        if header is None:
            self.words[row.id] = ParentWord(words.pack_unit(Unit(state=State.EXPIRED)), 0)
            return
        if index == ALL:
            header = replace(header, closed=True)
        else:
            header = replace(header, failed=header.failed + 1)
            row = replace(row, units=tuple(one for one in row.units if one.index != index))
        self.add(replace(row, header=header))
        if not row.units and (header.closed or header.touched == header.leases):
            del self.rows[row.id]


def price_of(ends: int, parents: int) -> int:
    """Return what so many ends and the unlock after them cost."""
    return ends * EXPIRE_GAS + unlocking_gas(parents)


# ---- one child's fee is paid once ----

HOPED = MAX_PARENTS - 1
"""Arrays that one job waits for, beside a parent that was never posted."""


@pytest.mark.parametrize("ghost", [False, True], ids=["all parents can end", "one parent was never posted"])
@pytest.mark.parametrize("arrays", [1, 2, HOPED])
def test_expire__units_of_many_parents_of_one_job__cost_no_more_than_its_one_unlock_pays(
    arrays: int, ghost: bool
) -> None:
    """The submitter of those units gains: their ends, which he must else cancel one by one, are paid for by keepers.

    He posts one job that waits for all of his arrays (and for a job that nobody ever posts) and cancels it later, which
    gives all of its money back.
    """
    family = Family()
    listed = [(family.array(), ALWAYS) for _ in range(arrays)] + ([(family.known(0), ALWAYS)] if ghost else [])
    family.child(price_of(1, len(listed)), *listed)
    assert len(family.ends()) == (arrays == 1 and not ghost)
    family.run()
    assert family.spent <= family.earned


@pytest.mark.parametrize("short", [0, 1])
def test_expire__last_ends_of_two_parents__share_the_fee_of_their_child(short: int) -> None:
    family = Family()
    first, second = family.array(), family.array()
    family.child(price_of(2, 3) - short, (first, ALWAYS), (family.known(WELL), SUCCESS), (second, ALWAYS))
    assert family.ends() == ([] if short else [first, second])


def test_expire__more_ends_than_are_made_for_one_job__are_left_whatever_it_pays() -> None:
    family = Family()
    one = family.array(HOPED_ENDS + 1)
    family.child(10**12, (one, ALWAYS))
    assert not family.ends()
    two = Family()
    first = two.array(HOPED_ENDS)
    two.child(10**12, (first, ALWAYS))
    assert two.ends() == [first] * HOPED_ENDS
    two.child(10**12, (first, ALWAYS), (two.array(), ALWAYS))
    assert two.ends() == [first] * HOPED_ENDS, "another job that lacks more takes nothing away"


def test_expire__paid_ends_beside_one_that_pays_nobody__come_first() -> None:
    """What ends by itself lacks nobody's hope: once it is gone, the end that is left has the whole fee."""
    family = Family()
    paid = [family.single(4 * EXPIRE_GAS) for _ in range(4)]
    array = family.array()
    family.child(price_of(1, 5), *((one, ALWAYS) for one in [*paid, array]))
    assert sorted(family.ends()) == sorted(paid)
    family.run()
    assert not family.rows and family.spent == family.earned


@pytest.mark.parametrize("other", ["runs", "has time", "was never posted", "was not read"])
def test_expire__other_parent_cannot_be_ended__is_done_for_nobodys_sake(other: str) -> None:
    family = Family()
    array = family.array()
    beside = {
        "runs": lambda: family.array(state=State.RUNNING),
        "has time": lambda: family.single(late=False),
        "was never posted": lambda: family.known(0),
        "was not read": lambda: parent(99).job,
    }[other]()
    family.child(10**12, (array, ALWAYS), (beside, ALWAYS))
    assert not [one for one in family.ends() if one == array]


def test_expire__one_parent_that_ends_otherwise_than_asked__is_enough_for_a_refund() -> None:
    """The unlock that refunds pays the fee too, whatever becomes of the others."""
    family = Family()
    array = family.array()
    family.child(price_of(1, 2), (array, SUCCESS), (family.known(0), ALWAYS))
    assert family.ends() == [array]
    family.run()
    assert family.unlocks == 1 and family.spent == family.earned


def test_expire__job_that_can_be_refunded_as_it_is__lacks_no_end() -> None:
    family = Family()
    family.child(10**12, (family.array(), ALWAYS), (family.known(FAILED), SUCCESS))
    assert [one.kind for one in family.decide()] == ["unlock"]


def test_expire__end_that_is_not_worth_its_gas__brings_down_the_others_of_its_child() -> None:
    """The first parent has two children, the second one: of a fee too small for its end nothing is spent at the other.

    What the first one's own child pays still counts.
    """
    family = Family()
    first, second = family.array(), family.array()
    family.child(unlocking_gas(2) + EXPIRE_GAS, (first, ALWAYS), (second, ALWAYS))
    family.child(unlocking_gas(1) + EXPIRE_GAS // 2, (first, ALWAYS))
    assert not family.ends()
    family.child(unlocking_gas(1) + EXPIRE_GAS // 2, (first, ALWAYS))
    assert family.ends() == [first]


@pytest.mark.parametrize(("spare", "ends"), [(2 * (12 + 3) - 1, 0), (2 * (12 + 3), 1)])
def test_expire__child_that_will_have_no_time_for_its_unlock__counts_for_nothing(spare: int, ends: int) -> None:
    """Its submitter need not even cancel it."""
    config, now = replace(PAYING, jitter=12, latency=3), OVER + 12  # every delay is over by then
    lasts = job().terms.deadline - OVER + 1
    family = Family()
    family.child(10**12, (family.array(), ALWAYS), deadline=now + spare + lasts)
    assert len(family.ends(config, now)) == ends


def test_expire__child_whose_unlock_costs_more_than_it_pays__makes_no_paid_end_dearer() -> None:
    family = Family()
    one = family.single(4 * EXPIRE_GAS)
    family.child(1, (one, ALWAYS))
    assert family.ends() == [one]


# ---- the profit test ----


@st.composite
def families(draw: st.DrawFn) -> Family:
    """Return parents of every kind, and children of some of them, whose fees are about what their ends cost."""
    family, found = Family(), []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([*["array"] * 6, "runs", "rest", "single", "early", "word"]))
        fee = draw(st.sampled_from([1_000, EXPIRE_GAS, 4 * EXPIRE_GAS]))
        if kind == "word":
            found.append(family.known(draw(st.sampled_from([0, WELL, FAILED]))))
        elif kind in ("single", "early"):
            found.append(family.single(fee, late=kind == "single"))
        else:
            state = State.RUNNING if kind == "runs" else State.OPEN
            found.append(
                family.array(draw(st.sampled_from([1, 1, 1, 2, 3])), state=state, rest=kind == "rest", fee=fee)
            )
    asked = st.sampled_from([ALWAYS, ALWAYS, *Condition])
    for _ in range(draw(st.integers(1, 5))):
        listed = draw(st.lists(st.sampled_from(found), min_size=1, max_size=4, unique=True))
        fee = price_of(1, len(listed)) + draw(st.integers(-1, 6)) * EXPIRE_GAS // 2 + draw(st.sampled_from([-1, 0]))
        found.append(family.child(fee, *((one, draw(asked)) for one in listed)))
    return family


@given(families())
def test_profit__any_parents_and_children__what_is_spent_on_hope_the_childrens_fees_pay(family: Family) -> None:
    family.run()
    assert family.spent <= family.earned


@given(families())
def test_profit__children_cancelled_just_before_their_unlock__cost_two_ends_each(family: Family) -> None:
    family.run(cancels=True)
    assert family.spent - family.earned <= 2 * EXPIRE_GAS * family.unlocks


def test_profit__submitter_who_cancels_the_child_for_it__spends_more_gas_than_keepers_do() -> None:
    world = World(Evm(exact_gas=True))
    node = world.register()
    world.cancel(world.post())  # what an account's first credit costs besides is no part of it
    array = world.post(units=HOPED_ENDS, match_window=30, deadline=world.evm.now + 10_000)
    for index in range(HOPED_ENDS):
        world.propose(array, node, index)
    packed = pack_parents([Parent(world.id_of(array), ALWAYS)])
    child = world.terms(parents_hash=parents_hash(packed))
    his = world.post_receipt(child, parents=packed).gas_used
    world.evm.at(formulas.expirable_from(array))
    theirs = sum(world.expire(array, index).gas_used for index in range(HOPED_ENDS))
    his += world.cancel(child).gas_used
    assert theirs <= HOPED_ENDS * EXPIRE_GAS <= his


@pytest.mark.parametrize("ghost", [False, True], ids=["he cancels it in time", "it waits for a ghost too"])
def test_submitter__who_has_many_units_to_cancel__is_not_spared_it_by_keepers(ghost: bool) -> None:
    """On the contracts: open units of as many arrays, and one job that waits for all of them, posted and cancelled."""
    price = 10**10  # wei per gas; a coin is the market's asset
    world = World(LoggingEvm())
    node = world.register()
    deadline = world.evm.now + 10_000
    arrays: list[Terms] = []
    for _ in range(HOPED):
        terms = world.post(units=2, match_window=30, deadline=deadline)
        world.propose(terms, node, 0)
        world.propose(terms, node, 1)
        arrays.append(terms)
    world.evm.warp(30 + world.policy.ack_time)
    for terms in arrays:
        world.cancel(terms, 0)
    nobody = [(world.terms(), ALWAYS)] if ghost else []
    waits = [(one, ALWAYS) for one in arrays]
    fee = price_of(1, MAX_PARENTS) * price
    dependent = world.post_after(*waits, *nobody, keeper_fee=fee, max_attempts=1)
    world.evm.at(formulas.expirable_from(arrays[0]))
    follower = Follower(world, world.keeper)
    follower.follow()
    config = replace(config_of(world), max_loss=0)
    snapshot = replace(snapshot_of(follower), gas_price=price)
    sent = [one for one in decide(snapshot, config, world.evm.now) if not isinstance(one, Skip)]
    for one in sent:
        send(world, follower.index, one)
    world.cancel(dependent)
    assert world.credit(world.keeper) >= sum(one.gas for one in sent) * price
