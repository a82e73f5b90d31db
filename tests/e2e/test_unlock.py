"""Jobs that wait for others, with a keeper and a worker as processes: what is opened runs, what is not is refunded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hearth.local import devnet
from hearth.market.events import Unlocked, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import Header, JobId, Outcome, State, Terms, TermsFlag, Unit
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market without anybody who works or keeps, yet."""
    with town(tmp_path_factory.mktemp("unlock")) as made:
        yield made


def submit(place: Town, name: str) -> JobId:
    """Submit an example that nobody takes yet, and return its job."""
    told = place.hearth("submit", str(EXAMPLES / name / "job.yaml"), "--anyway", "--json")
    assert told.code == 0, told.err + told.out
    return JobId(bytes.fromhex(told.json["job"][2:]))


def post(place: Town, like: Terms, parents: Sequence[Parent], **changes: object) -> Terms:
    """Post a job that waits for others, with another's spec, as its submitter."""
    packed = pack_parents(parents)
    terms = replace(like, parents_hash=parents_hash(packed), **changes)  # type: ignore[arg-type]
    (number,) = (i for i in range(10) if devnet.account(i).address.lower() == like.submitter)
    done = place.sender(number).send(place.market.calls.post(terms, packed), key=f"post/{terms.salt}")
    assert done.logs
    return terms


def unit(place: Town, terms: Terms) -> Unit:
    return place.market.unit(place.market.job_id(terms)).unit


def header(place: Town, terms: Terms) -> Header:
    found = place.market.header(place.market.job_id(terms))
    assert found is not None
    return found


def unlocked(place: Town, terms: Terms) -> Unlocked:
    """Return the one event that unlocked a job."""
    topics = (topic_of(Unlocked), place.market.job_id(terms))
    logs = place.chain.logs([place.session.network.jobs], topics, from_block=0, to_block=place.chain.head().number)
    (event,) = place.market.events_in(logs)
    assert isinstance(event, Unlocked)
    return event


def test_unlock__parents_that_settle_and_fail__a_keeper_opens_what_then_runs_and_refunds_the_rest(
    place: Town,
) -> None:
    digits, failing, counts = (submit(place, name) for name in ("digits", "failing", "wordcount-array"))
    like = place.market.terms_of(failing).terms
    good, bad = Parent(digits, Condition.SUCCESS), Parent(failing, Condition.SUCCESS)
    asked = [good, Parent(failing, Condition.FAILURE), Parent(counts, Condition.SUCCESS)]
    opens = post(place, like, asked, salt=1, flags=like.flags | TermsFlag.KEEP)
    array = post(place, place.market.terms_of(counts).terms, [good], salt=2)
    refunded = post(place, like, [good, bad], salt=3)
    grandchild = post(place, like, [Parent(place.market.job_id(refunded), Condition.SUCCESS)], salt=4)
    for terms in (opens, refunded, grandchild):
        assert unit(place, terms).state is State.BLOCKED
    assert header(place, array).waiting

    place.add_worker()
    place.add_keeper()
    # Refunded before or after its other parent ended, which takes longer; then so is the job that waits for it.
    for terms in (refunded, grandchild):
        wait(lambda terms=terms: unit(place, terms).state is State.CANCELLED, "the keeper refunds it")
        escrow, fee = formulas.escrow_at_post(terms), formulas.unlock_fee(terms)
        assert unlocked(place, terms).refund == escrow - fee
    wait(lambda: unit(place, opens).state is State.SETTLED, "the keeper opens it, and a worker runs it")
    assert unlocked(place, opens).refund == 0
    view = place.market.unit(place.market.job_id(opens))
    since = words.unpack_unit(unlocked(place, opens).word).started
    assert view.unit.outcome is Outcome.EXIT and view.unit.started >= since > 0
    assert view.kept is not None and any(view.kept), "its digest was kept"
    wait(lambda: header(place, array).done == array.leases, "every unit of the array runs")
    opened = words.unpack_header(unlocked(place, array).word)
    assert (opened.waiting, opened.opened) == (False, header(place, array).opened)

    def mined() -> int:
        told = place.hearth("keeper", "status", "--json").json
        return int(told["profit_and_loss"]["mined"]["unlock"])

    wait(lambda: mined() == 4, "the keeper's books have them all")
