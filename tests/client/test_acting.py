"""What a submitter does with a posted job, over the real contracts: more time, an end, another one, and its money."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from hearth.base.errors import (
    ConfigError,
    FundsError,
    HearthError,
    NotFoundError,
    RefusedError,
    UsageError,
    WaitTimeout,
)
from hearth.client.job import cancelling, topping_up
from hearth.protocol import formulas
from hearth.protocol.gas import TOP_UP_GAS
from hearth.protocol.types import Outcome, State
from tests.kit.evm_chain import IN_BOTH, IN_TOKEN, RealMarket, Shop
from tools import schemas

METERED: dict[str, Any] = {"price": {"max_rate": "0.036/h", "keeper_fee": "0.000008", "billing": "metered"}}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelling, "POLL_SECONDS", 0.0)


def refused(call: Any, code: str, kind: type[HearthError] = RefusedError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def unit_of(shop: Shop, job: str, index: int = 0) -> Any:
    return shop.world.unit(shop.terms(job), index)


def stranger(shop: Shop) -> Any:
    """Return a client of the same home that acts as the provider."""
    settings = replace(shop.market.settings, account="provider", origins={"account": "--account"})
    return shop.market.open(settings=settings)


# ---- more time ----


@IN_BOTH
def test_top_up__unit_that_runs__has_the_time_and_its_price_and_is_paid_once(market: RealMarket, shop: Shop) -> None:
    token = market.world.token is not None
    job = shop.post(**METERED)
    shop.start(job)
    before, locked = unit_of(shop, job), shop.world.locked(to_checksum_address(market.dev))
    report = shop.client.jobs.top_up(job, "30m")
    schemas.validate(report)
    unit, terms = unit_of(shop, job), shop.terms(job)
    amount = formulas.top_up_amount(terms, before, 1_800)
    assert unit.seconds == 1_800 and unit.mark == before.mark + 1_800
    assert shop.world.locked(to_checksum_address(market.dev)) == locked + amount
    price = formulas.unit_price(formulas.topped(terms, unit))
    assert {name: value for name, value in report.items() if name not in ("transactions", "deadline_text")} == {
        "schema": "hearth.action/1",
        "action": "top-up",
        "job": job,
        "unit": 0,
        "topped_up": 1_800,
        "price": str(price),
        "price_text": market.client.session.amount(price),
        "deadline_at": unit.deadline_at,
        "seconds": 1_800,
        "amount": str(amount),
        "amount_text": market.client.session.amount(amount),
        "already_sent": False,
        "dry_run": False,
    }
    assert [one["action"] for one in report["transactions"]] == [*["token.approve"] * token, "jobs.top_up"]
    assert market.said("confirm")[-1].startswith(f"top unit 0 of job {job[:14]} up by 30m for ")
    same = shop.client.jobs.top_up(job, "30m")
    assert same["already_sent"] and unit_of(shop, job).seconds == 1_800 and same["amount"] == str(amount)
    assert (same["topped_up"], same["deadline_at"]) == (1_800, unit.deadline_at)
    more = shop.client.jobs.open(job).top_up("30m", again=True)
    assert not more["already_sent"] and more["topped_up"] == 3_600 and unit_of(shop, job).seconds == 3_600
    receipt = shop.client.jobs.receipt(job)
    assert receipt["topped_up"] == str(amount + int(more["amount"]))


def test_top_up__dry_run__says_what_it_would_cost_and_sends_nothing(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    asked, sent = len(shop.market.said("confirm")), len(shop.market.chain.sent)
    report = shop.market.open(dry_run=True).jobs.top_up(job, "30m")
    assert report["dry_run"] and report["topped_up"] == 1_800 and unit_of(shop, job).seconds == 0
    assert (len(shop.market.said("confirm")), len(shop.market.chain.sent)) == (asked, sent)


def test_top_up__more_than_the_account_has__is_refused_and_none_is_asked(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    shop.market.chain.give(shop.market.dev, 10**15)
    error = refused(lambda: shop.client.jobs.top_up(job, "10h"), "FUNDS_SHORT", FundsError)
    assert "topping up" in error.message and unit_of(shop, job).seconds == 0


@pytest.mark.parametrize("time", ["0s", "0m"])
def test_top_up__no_time__is_no_time(shop: Shop, time: str) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    refused(lambda: shop.client.jobs.top_up(job, time), "BAD_DURATION", UsageError)


def test_top_up__array__names_the_units_that_run_where_several_do(shop: Shop) -> None:
    job = shop.post(**METERED, array={"units": 9})
    error = refused(lambda: shop.client.jobs.top_up(job, "5m"), "UNIT_NOT_RUNNING")
    assert error.message.startswith(f"no unit of job {job[:14]} runs: its state is ")
    error = refused(lambda: shop.client.jobs.top_up(job, "5m", unit=3), "UNIT_NOT_RUNNING")
    assert error.message.startswith(f"unit 3 of job {job[:14]} waits for a machine")
    refused(lambda: shop.client.jobs.top_up(job, "5m", unit=9), "NOT_FOUND", NotFoundError)
    shop.start(job, 0)
    assert shop.client.jobs.top_up(job, "5m")["unit"] == 0
    shop.start(job, 1)
    error = refused(lambda: shop.client.jobs.top_up(job, "5m"), "WHICH_UNIT", UsageError)
    assert error.message == f"2 units of job {job[:14]} run: 0, 1"
    assert f"hearth job top-up {job[:14]} --unit 0 --time" in error.hint
    assert shop.client.jobs.top_up(job, "6m", unit=1)["unit"] == 1
    assert (unit_of(shop, job, 0).seconds, unit_of(shop, job, 1).seconds) == (300, 360)
    second = shop.world.register(ask=10**12, slots=4)
    for index in range(2, 7):
        shop.world.claim(shop.terms(job), second if index < 6 else shop.world.register(ask=10**12), index)
        if index in (4, 6):  # as many as are shown, and more
            error = refused(lambda: shop.client.jobs.top_up(job, "5m"), "WHICH_UNIT", UsageError)
            more = " and 2 more" if index == 6 else ""
            assert error.message == f"{index + 1} units of job {job[:14]} run: 0, 1, 2, 3, 4{more}"


def test_top_up__that_the_contract_would_refuse__is_refused_with_what_can_be_done(shop: Shop) -> None:
    jobs = shop.client.jobs
    fixed = shop.post(price={"max_rate": "0.036/h", "billing": "fixed"})
    shop.start(fixed)
    error = refused(lambda: jobs.top_up(fixed, "5m"), "NOT_METERED")
    assert error.message.startswith(f"job {fixed[:14]} bills fixed, and only a metered one")
    job = shop.post(**METERED, limits={"runtime": "60s", "deadline": "2h"})
    error = refused(lambda: jobs.top_up(job, "5m"), "UNIT_NOT_RUNNING")
    assert error.message.startswith(f"unit 0 of job {job[:14]} does not run: its state is ")
    shop.start(job)
    terms, unit = shop.terms(job), unit_of(shop, job)
    room = terms.deadline - unit.deadline_at
    error = refused(lambda: jobs.top_up(job, f"{room + 1}s"), "DEADLINE_NEAR")
    assert (
        error.hint.startswith(f"hearth job top-up {job[:14]} --unit 0 --time ") and "there is room for" in error.message
    )
    assert jobs.top_up(job, f"{room}s")["deadline_at"] == terms.deadline
    error = refused(lambda: jobs.top_up(job, "1s"), "DEADLINE_NEAR")
    assert error.hint.endswith("more time needs a new job with a longer limits.runtime")
    shop.market.evm.at(terms.deadline - 1)
    shop.market.chain.mine()
    refused(lambda: jobs.top_up(job, "1s"), "DEADLINE_NEAR")
    shop.market.pass_time(1)
    error = refused(lambda: jobs.top_up(job, "1s"), "TOO_LATE")
    assert "it is too late for more time" in error.message


def test_top_up__longest_that_a_unit_may_have__is_the_bound(shop: Shop) -> None:
    job = shop.post(**METERED, limits={"runtime": "60s", "deadline": "60d"})
    shop.start(job)
    room = formulas.MAX_SECONDS - 60
    error = refused(lambda: shop.client.jobs.top_up(job, f"{room + 1}s"), "TOO_LONG")
    assert error.message.startswith(f"unit 0 of job {job[:14]} has 1m, and no unit has more than ")
    assert shop.client.jobs.top_up(job, f"{room}s")["topped_up"] == room


def test_top_up__of_a_strangers_job__is_refused(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    for act in ("cancel", "accept"):
        refused(lambda: getattr(stranger(shop).jobs, act)(job), "NOT_YOURS")  # noqa: B023
    error = refused(lambda: stranger(shop).jobs.top_up(job, "5m"), "NOT_YOURS")
    assert error.message == (f"job {job[:14]} was posted by {shop.market.dev}, not by {shop.market.provider}")


# ---- an end ----


def test_cancel__array__refunds_what_is_open_and_gives_notice_to_what_runs(shop: Shop) -> None:
    job = shop.post(array={"units": 3})
    shop.start(job, 0)
    shop.start(job, 1)
    one = shop.client.jobs.cancel(job, unit=1)
    schemas.validate(one)
    assert [sent["action"] for sent in one["transactions"]] == ["jobs.cancel"] and one["action"] == "cancel"
    assert (unit_of(shop, job, 0).state, unit_of(shop, job, 1).state) == (State.RUNNING, State.CLOSING)
    (record,) = shop.client.session.records.of_spec(shop.terms(job).spec, 8)
    assert [seen["job"] for seen in shop.client.session.records.unseen(record["fingerprint"])] == [job]
    rest = shop.client.jobs.open(job).cancel()
    assert len(rest["transactions"]) == 2 and rest["counts"] == {"closing": 2, "cancelled": 1}
    assert rest["counts_text"] and not rest["dry_run"] and rest["job"] == job
    # Its end is seen: the same file posts a new one.
    assert list(shop.client.session.records.unseen(record["fingerprint"])) == []
    error = refused(lambda: shop.client.jobs.cancel(job), "NOTHING_TO_CANCEL")
    assert error.message.startswith(f"nothing in job {job[:14]} can be cancelled: its state is ")
    refused(lambda: shop.client.jobs.cancel(job, unit=3), "NOT_FOUND", NotFoundError)


def test_cancel__dry_run__tries_it_and_leaves_it(shop: Shop) -> None:
    job = shop.post()
    report = shop.market.open(dry_run=True).jobs.cancel(job)
    assert report["dry_run"] and report["transactions"][0]["tx"] is None
    assert unit_of(shop, job).state is State.OPEN


def test_cancel__unit_that_a_proposal_holds__waits_and_then_names_what_is_left(shop: Shop) -> None:
    shop.market.settings = replace(shop.market.settings, timeout=0)
    job = shop.post(match={"newcomers": True, "window": "60s"})
    shop.world.propose(shop.terms(job), shop.node)
    client = shop.market.open()
    with pytest.raises(WaitTimeout, match=r"0 cancelled; unit 0 of job .* could not be cancelled within 0 s"):
        client.jobs.cancel(job)
    assert shop.market.said("note")[-1].startswith("unit 0 held by a proposal: cancelled once it runs")
    shop.market.pass_time(400)
    assert client.jobs.cancel(job)["counts"] == {"cancelled": 1}


def test_accept__result_that_is_in__is_paid_at_once(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    refused(lambda: shop.client.jobs.accept(job), "NOTHING_TO_ACCEPT")
    for index in range(2):
        shop.start(job, index)
        shop.hand_in(job, index)
    first = shop.client.jobs.accept(job, unit=1)
    schemas.validate(first)
    assert (first["action"], len(first["transactions"])) == ("accept", 1)
    assert (unit_of(shop, job, 0).state, unit_of(shop, job, 1).state) == (State.SUBMITTED, State.SETTLED)
    assert len(shop.client.jobs.open(job).accept()["transactions"]) == 1
    error = refused(lambda: shop.client.jobs.accept(job), "NOTHING_TO_ACCEPT")
    assert f"job {job[:14]} has no submitted result to accept: its state is " in error.message


def test_end__of_a_job__is_waited_for_and_seen(shop: Shop) -> None:
    job = shop.post()
    (record,) = shop.client.session.records.of_spec(shop.terms(job).spec, 8)
    with pytest.raises(WaitTimeout):
        shop.client.jobs.end(job, timeout=0.01)
    assert list(shop.client.session.records.unseen(record["fingerprint"])) == [record]
    shop.done(job)
    assert shop.client.jobs.end(job)["verdict"] == "ok"
    assert list(shop.client.session.records.unseen(record["fingerprint"])) == []
    assert shop.client.jobs.wait(job)["state"] == "settled"
    kinds = [event["event"] for event in shop.client.jobs.follow(job)]
    assert kinds[0] == "JobPosted" and kinds[-1] == "Settled"
    events = shop.client.jobs.events(job)
    schemas.validate(events)
    assert [one["event"] for one in events["events"]] == kinds and events["job"] == job


# ---- another one ----


def test_rerun__same_terms__under_a_new_salt_with_as_much_time(shop: Shop) -> None:
    job = shop.post()
    shop.market.pass_time(600)
    again = shop.client.jobs.open(job).rerun()
    old, new = shop.terms(job), shop.terms(again.id)
    posted = shop.client.jobs.open(again.id)
    assert again.id != job and posted.state == "open"
    assert replace(new, salt=old.salt, deadline=old.deadline) == old and new.salt != old.salt
    assert 5_000 > new.deadline - old.deadline >= 600
    plan = shop.market.open(dry_run=True).jobs.posting.rerun(job)
    schemas.validate(plan)
    assert plan["schema"] == "hearth.plan/1" and plan["rerun_of"] == job
    assert plan["escrow"] == str(formulas.escrow_at_post(old))
    # What a stranger's job asked for may be asked for too, and is paid by whoever asks.
    mine = stranger(shop).jobs.rerun(job)
    assert shop.terms(mine.id).submitter == shop.market.provider


def test_rerun__that_nobody_can_take__is_refused_unless_anyway(shop: Shop) -> None:
    job = shop.post()
    shop.market.pass_time(5_000)
    refused(lambda: shop.client.jobs.rerun(job), "NO_WORKER", HearthError)
    assert shop.client.jobs.rerun(job, anyway=True).state == "open"


# ---- its money ----


def test_receipt__of_a_job_that_ended__adds_up_to_what_was_locked(shop: Shop) -> None:
    job = shop.post(**METERED)
    escrow = formulas.escrow_at_post(shop.terms(job))
    open_one = shop.client.jobs.receipt(job)
    assert (open_one["still_locked"], open_one["workers"], open_one["refunded"]) == (str(escrow), "0", "0")
    shop.done(job, seconds=30)
    receipt = shop.client.jobs.receipt(job)
    schemas.validate(receipt)
    owner = shop.world.credit(shop.world.owner)
    fee, keepers = shop.world.credit(shop.world.treasury), shop.world.credit(shop.world.keeper)
    refund = shop.world.credit(to_checksum_address(shop.market.dev))
    assert (receipt["workers"], receipt["market_fee"], receipt["keepers"], receipt["refunded"]) == tuple(
        map(str, (owner, fee, keepers, refund))
    )
    assert owner > 0 and fee > 0 and keepers > 0 and owner + fee + keepers + refund == escrow == int(receipt["escrow"])
    assert (receipt["still_locked"], receipt["topped_up"], receipt["state"], receipt["asset"]) == (
        "0",
        "0",
        "settled",
        "ETH",
    )
    assert receipt["text"]["workers"] == shop.client.session.amount(owner) and "of it topped up" not in receipt["text"]
    assert [line["event"] for line in receipt["transactions"]] == ["JobPosted", "Started", "Submitted", "Settled"]
    assert receipt["transactions"][0]["from"] == shop.market.dev
    assert receipt["transactions"][3]["from"] == shop.world.keeper.lower()
    assert all(line["gas"] > 0 and int(line["fee"]) > 0 for line in receipt["transactions"])


def test_history__of_both_sides__is_what_the_receipts_say(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.done(job, seconds=30)
    shop.client.jobs.cancel(shop.post())
    report = shop.client.wallet.history("dev")
    schemas.validate(report)
    receipt = shop.client.jobs.receipt(job)
    assert {row["job"] for row in report["jobs"]} >= {job}
    spent = int(receipt["escrow"]) - int(receipt["refunded"])
    assert any(str(spent) in map(str, row.values()) for row in report["jobs"])
    assert shop.client.wallet.history(shop.market.dev)["jobs"] == report["jobs"]
    none = shop.client.wallet.history("provider")
    assert none["jobs"] == []


def test_list__by_state_and_account__is_newest_first(shop: Shop) -> None:
    first, second = shop.post(), shop.post(name="other")
    shop.done(first, outcome=Outcome.TRAP)
    assert [row["job"] for row in shop.client.jobs.list()["jobs"]] == [second, first]
    assert [row["job"] for row in shop.client.jobs.list(state="ended")["jobs"]] == [first]
    assert [row["job"] for row in shop.client.jobs.list(state="open")["jobs"]] == [second]
    assert [row["job"] for row in shop.client.jobs.list(state="settled")["jobs"]] == [first]
    assert [row["job"] for row in shop.client.jobs.list(name="OTH")["jobs"]] == [second]
    assert [row["job"] for row in shop.client.jobs.list(last=1)["jobs"]] == [second]
    assert stranger(shop).jobs.list()["jobs"] == []
    assert len(stranger(shop).jobs.list(everyone=True)["jobs"]) == 2
    with pytest.raises(UsageError, match='"sleeping" is no state'):
        shop.client.jobs.list(state="sleeping")
    (shop.market.home / "keys" / "dev.json").unlink()
    (shop.market.home / "keys" / "provider.json").unlink()
    nobody = shop.market.open()
    assert len(nobody.jobs.list(everyone=True)["jobs"]) == 2
    with pytest.raises(ConfigError):
        nobody.jobs.list()


def test_open__beginning_of_an_id__is_the_job_and_an_ambiguous_one_is_none(shop: Shop) -> None:
    ids = sorted("0x" + shop.world.id_of(shop.world.post()).hex() for _ in range(17))
    assert shop.client.jobs.open(ids[3][:14]).id == ids[3]
    assert shop.client.jobs.open(ids[4][2:14].upper()).id == ids[4]
    # Of 17 ids two begin with the same digit.
    digit = next(one[:3] for one, other in pairwise(ids) if one[:3] == other[:3])
    same = [one for one in ids if one.startswith(digit)]
    error = refused(lambda: shop.client.jobs.open(digit), "AMBIGUOUS", NotFoundError)
    assert error.message.startswith(f"{digit} is the start of {len(same)} jobs: ")
    assert all(one[:9] in error.message for one in same[:8])
    error = refused(lambda: shop.client.jobs.open("0x" + "f" * 13), "NOT_FOUND", NotFoundError)
    assert error.message == "no job of test starts with 0x" + "f" * 13
    error = refused(lambda: shop.client.jobs.open("my job"), "BAD_ID", UsageError)
    assert error.hint.startswith("hearth jobs --name 'my job' finds a job of that name")
    assert "finds a job" not in refused(lambda: shop.client.jobs.open("0xyz"), "BAD_ID", UsageError).hint


def test_receipt__of_an_array_in_few_transactions__counts_each_transaction_once(shop: Shop) -> None:
    job = shop.post(**METERED, array={"units": 2})
    for index in range(2):
        shop.done(job, index, seconds=20)
    topped = shop.post(**METERED)
    shop.start(topped)
    more = shop.client.jobs.top_up(topped, "10m")
    shop.market.pass_time(20)
    shop.hand_in(topped)
    shop.client.jobs.accept(topped)
    for one in (job, topped):
        receipt = shop.client.jobs.receipt(one)
        ids = [line["tx"] for line in receipt["transactions"]]
        assert len(ids) == len(set(ids))
        parts = sum(int(receipt[name]) for name in ("workers", "market_fee", "keepers", "refunded", "still_locked"))  # type: ignore[literal-required]
        assert parts == int(receipt["escrow"])
    receipt = shop.client.jobs.receipt(topped)
    assert receipt["text"]["of it topped up"] == shop.client.session.amount(int(more["amount"]))
    assert receipt["escrow"] == str(formulas.escrow_at_post(shop.terms(topped)) + int(more["amount"]))
    assert "of it for checkpoints" not in receipt["text"] and receipt["checkpoints"] == []


def test_receipt__of_a_result_that_its_node_settled_itself__is_the_nodes(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    shop.market.pass_time(20)
    shop.hand_in(job)
    shop.market.pass_time(60)
    shop.world.settle(shop.terms(job), sender=shop.world.operator)
    receipt = shop.client.jobs.receipt(job)
    parts = sum(int(receipt[name]) for name in ("workers", "market_fee", "keepers", "refunded"))  # type: ignore[literal-required]
    assert parts == int(receipt["escrow"]) and receipt["transactions"][-1]["from"] == shop.world.operator.lower()


def test_receipt__of_a_result_made_of_a_checkpoint__holds_what_both_nodes_earned(shop: Shop) -> None:
    world, other = shop.world, shop.world.evm.account("other")
    first = world.register(owner=other, operator=other, ask=10**12)
    limits = {"runtime": "10m", "deadline": "24h"}
    job = shop.post(**METERED, limits=limits, checkpoint={"every": "1m", "path": "/out/state"})
    terms = shop.terms(job)
    world.claim(terms, first, sender=other)
    shop.market.pass_time(100)
    world.checkpoint(terms, sender=other)
    world.give_up(terms, sender=other)
    world.nodes.send.beat(shop.node, sender=world.operator)
    world.claim(terms, shop.node, resume_from=1)
    shop.market.pass_time(20)
    shop.hand_in(job)
    shop.settle(job)
    receipt = shop.client.jobs.receipt(job)
    kept, settled = world.credit(other), world.credit(world.owner)
    assert kept > 0 and settled > 0 and receipt["workers"] == str(kept + settled)
    assert receipt["market_fee"] == str(world.credit(world.treasury))


def test_job__as_an_object__asks_once_and_looks_again_after_it_acted(shop: Shop) -> None:
    job = shop.client.jobs.open(shop.post(**METERED))
    assert job == shop.client.jobs.open(job.id) and job != job.id and hash(job) == hash(shop.client.jobs.open(job.id))
    assert job.facts is job.facts and repr(shop.client.jobs.open(job.id)) == f"<Job {job.id[:14]}>"
    assert job.id[:14] in shop.client.jobs.open(job.id)._repr_html_()
    assert (int(job.escrow), job.cost) == (624 * 10**12, 0) and str(job.escrow) == "0.000624 ETH"
    shop.start(job.id)
    assert job.state == "open" and job.refresh().state == "running"
    before = int(job.escrow)
    more = job.top_up("10m")
    assert int(job.escrow) == before + int(more["amount"]) and job.facts["state"] == "running"
    job.cancel()
    assert job.state == "closing"
    found = shop.client.jobs.find()
    assert list(found) == [job] and "closing" not in repr(found[:0]) and repr(found[:0]) == "<no jobs>"


@IN_TOKEN
def test_top_up__allowance_that_is_there__is_used_and_coin_for_gas_is_needed(shop: Shop) -> None:
    job = shop.post(**METERED)
    shop.start(job)
    amount = formulas.top_up_amount(shop.terms(job), unit_of(shop, job), 600)
    assert shop.world.token is not None
    dev = to_checksum_address(shop.market.dev)
    shop.market.chain.gas_estimate = 50_000
    dry = shop.market.open(dry_run=True).jobs.top_up(job, "10m")
    assert [one["action"] for one in dry["transactions"]] == ["token.approve"]
    fees = shop.client.session.market.port.fees().most
    shop.market.chain.give(shop.market.dev, (TOP_UP_GAS + topping_up.APPROVE_GAS) * fees - 1)
    refused(lambda: shop.client.jobs.top_up(job, "10m"), "FUNDS_SHORT", FundsError)
    shop.world.token.send.approve(shop.world.jobs, amount, sender=dev)
    shop.market.chain.give(shop.market.dev, TOP_UP_GAS * fees)
    report = shop.client.jobs.top_up(job, "10m")
    assert [one["action"] for one in report["transactions"]] == ["jobs.top_up"]


def test_cancel__many_that_are_held__names_five_and_counts_the_rest(shop: Shop) -> None:
    assert cancelling._units([3]) == "unit 3" and cancelling._units([0, 1, 2, 3, 4]) == "units 0, 1, 2, 3, 4"
    assert cancelling._units([0, 1, 2, 3, 4, 5]) == "units 0, 1, 2, 3, 4 and 1 more"
