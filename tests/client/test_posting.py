"""From a job file to a posted job, over the real contracts: what it costs, who can take it, and what is sent once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from hearth.base.errors import (
    ConfigError,
    FundsError,
    HearthError,
    NoWorkerError,
    RefusedError,
    SpecError,
    UsageError,
)
from hearth.client.posting.quick import spec_of_run
from hearth.protocol import formulas
from hearth.protocol.types import Billing, State, TermsFlag
from tests.kit.attesters import address
from tests.kit.evm_chain import IN_BOTH, IN_TOKEN, MODULE, RealMarket, Shop
from tests.kit.world import ETHER
from tools import schemas


def refused(call: Any, code: str, kind: type[HearthError] = SpecError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def check(shop: Shop, **fields: Any) -> Any:
    report = shop.client.jobs.check({**Shop.JOB, **fields})
    schemas.validate(report)
    return report


def line(report: Any, beginning: str) -> str:
    (found,) = (text for text in report["text"] if text.startswith(beginning))
    return str(found)


RATE = {"max_rate": "0.036/h", "keeper_fee": "0.000008"}


# ---- what it costs ----


def test_check__plain_job__each_figure_is_what_the_terms_will_lock(shop: Shop) -> None:
    report = check(shop)
    escrow = 600_000_000_000_000 + 3 * 8_000_000_000_000
    assert {name: value for name, value in report.items() if name not in ("text", "spec", "costs", "deadline")} == {
        "schema": "hearth.plan/1",
        "network": "test",
        "name": "digits",
        "runtime": "wasm",
        "units": 1,
        "asset": "ETH",
        "escrow": str(escrow),
        "ceiling": str(10 * ETHER),
        "keeper_fee": "8000000000000",
        "billing": "fuel",
        "cost_basis": {"rate": str(10**12), "asks": 1, "units": 0},
        "max_seconds": 60,
        "download_bytes": len(MODULE),
        "output_bytes": 1 << 20,
        "workers": {"fits": 1},
        "can_take": 1,
        "enough": None,
        "auto_price": False,
        "parents": [],
        "judge": None,
        "dry_run": False,
    }
    assert report["deadline"] == shop.market.evm.now + 86_400
    assert line(report, "costs at most") == (
        "costs at most 0.000624 ETH: 0.0006 ETH of work each, and 3 attempts' keeper fees of 0.000008 ETH; "
        "what is not used comes back"
    )
    assert line(report, "pays at most") == (
        "pays at most 0.036 ETH/h per unit, by the instructions executed (by the word of its worker), for at most 1m"
    )
    assert f"brings {len(MODULE)} bytes, may leave 1024 KiB; everything uploaded is public; deadline " in line(
        report, "brings"
    )
    assert report["text"][-1] == "1 worker -> 1 can take it"
    job = shop.client.jobs.submit(dict(Shop.JOB))
    terms = shop.terms(job.id)
    assert (formulas.escrow_at_post(terms), terms.spec.hex(), terms.billing) == (escrow, report["spec"], Billing.FUEL)
    assert shop.world.locked(to_checksum_address(shop.market.dev)) == escrow


def test_check__costs__go_by_the_middle_ask_and_by_what_ran_before(shop: Shop) -> None:
    for ask in (2 * 10**12, 3 * 10**12, 20 * 10**18):
        shop.world.register(ask=ask)
    metered = {**RATE, "billing": "metered"}
    report = check(shop, price=metered)
    assert report["cost_basis"] == {"rate": str(2 * 10**12), "asks": 3, "units": 0}
    assert [(cost["billing"], cost["expected"], cost["unit_seconds"]) for cost in report["costs"]] == [
        ("metered", None, None),
        ("fuel", None, None),
        ("fixed", report["costs"][2]["expected"], 60),
    ]
    for seconds in (10, 20):
        shop.done(shop.post(price=metered), seconds=seconds)
    # One that was cancelled while it ran says nothing of how long a unit takes.
    cut = shop.post(price=metered)
    shop.start(cut)
    shop.client.jobs.open(cut).cancel()
    shop.hand_in(cut)
    shop.market.pass_time(300)
    shop.world.settle(shop.terms(cut))
    assert shop.world.state(shop.terms(cut)) is State.SETTLED
    report = check(shop, price=metered)
    assert report["cost_basis"]["units"] == 2
    cost = report["costs"][0]
    assert cost["unit_seconds"] in (20, 21, 22) and int(cost["expected"]) <= int(cost["at_most"])
    assert "the middle of 2 of this spec that ran before" in line(report, "  by")
    fuel = shop.post()
    shop.done(fuel, used=7)
    spec = check(shop)
    assert {one["billing"]: one["unit_seconds"] for one in spec["costs"]}["fuel"] == 7


def test_check__array_checkpoints_and_kept_digests__are_each_told(shop: Shop) -> None:
    report = check(
        shop,
        array={"units": 5},
        retry={"attempts": 2},
        verify={"keep": True},
        checkpoint={"every": "2m", "path": "/out/state"},
        limits={"runtime": "10m", "deadline": "24h"},
    )
    assert report["units"] == 5 and "5 units, 0.006 ETH of work each, and 2 attempts'" in line(report, "costs at most")
    assert report["escrow"] == str(5 * (6_000_000_000_000_000 + 2 * 8_000_000_000_000))
    assert "checkpoints every 2m; another node can resume it" in report["text"]
    assert "the chain itself keeps the digests of its results" in report["text"]
    plain = check(shop)["text"]
    assert not any("checkpoints" in text or "the chain itself" in text or " units, " in text for text in plain)
    fixed = check(shop, price={**RATE, "billing": "fixed"})
    assert "the full time whatever it takes" in line(fixed, "pays at most")
    metered = check(shop, price={**RATE, "billing": "metered"})
    assert "by the time from start to result on the chain's clock" in line(metered, "pays at most")


@pytest.mark.parametrize(
    ("size", "said"), [(10_239, "10239 bytes"), (10_240, "10 KiB"), (10_241, "11 KiB"), (11 << 20, "11 MiB")]
)
def test_check__what_it_brings__is_told_in_whole_units_above(shop: Shop, size: int, said: str) -> None:
    (shop.folder / "data").write_bytes(bytes(size - len(MODULE)))
    report = check(shop, inputs=[{"src": "data", "dst": "/in/data"}])
    assert line(report, "brings").startswith("brings ") and report["download_bytes"] >= size
    if report["download_bytes"] == size:
        assert line(report, "brings").startswith(f"brings {said}, ")


def test_check__attested_job__says_who_decides_until_when_and_what_it_costs_the_worker(shop: Shop) -> None:
    members = shop.market.attested.set
    (shop.folder / "set.json").write_text(json.dumps({"keys": list(members.keys), "quorum": members.quorum}))
    assert address(shop.market.attested.members[0]) == members.keys[0]
    report = check(shop, verify={"mode": "attested", "attesters": "set.json", "window": "3h"})
    judge = report["judge"]
    assert (judge["contract"], judge["keys"], judge["quorum"]) == (
        shop.market.network.attesters,
        list(members.keys),
        members.quorum,
    )
    assert (judge["digest"], judge["window"]) == (f"{members.judge_data:#066x}", 3 * 3_600)
    assert judge["unproven_from"] == report["deadline"] + 3 * 3_600
    said = line(report, "paid for once")
    assert said.startswith(
        f"paid for once {members.quorum} of the {len(members.keys)} attesters have signed its result"
    )
    assert shop.client.session.amount(int(judge["slash"])) in said and int(judge["slash"]) > 0
    assert "by the instructions executed (which attesters sign)" in line(report, "pays at most")
    job = shop.post(verify={"mode": "attested", "attesters": "set.json", "window": "3h"})
    terms = shop.terms(job)
    assert (terms.judge, terms.judge_data, terms.challenge_window) == (
        shop.market.network.attesters,
        members.judge_data,
        3 * 3_600,
    )
    assert terms.flags & TermsFlag.PROVEN


# ---- who can take it ----


def test_check__price_that_nobody_takes__says_at_which_somebody_would(shop: Shop) -> None:
    dear = shop.world.register(ask=20 * ETHER)
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    report = check(shop)
    assert (report["can_take"], report["workers"]) == (0, {"exiting": 1, "price": 1})
    assert report["enough"].startswith("write max_total: ") and 'max_rate: "0.072 ETH/h"' in report["enough"]
    assert report["text"][-1] == f"for a worker to take it: {report['enough']}"
    error = refused(lambda: shop.client.jobs.submit(dict(Shop.JOB)), "NO_WORKER", NoWorkerError)
    assert error.hint == report["enough"]
    named = report["enough"].partition('"')[2].partition('"')[0]
    assert check(shop, price={"max_total": named, "keeper_fee": "0.000008"})["can_take"] == 1
    shop.world.nodes.send.exit_start(dear, sender=shop.world.owner)
    other = shop.world.register(ask=20 * ETHER)
    assert check(shop, price={"max_rate": "0.07/h"})["can_take"] == 0 and other
    assert shop.client.jobs.submit(dict(Shop.JOB), anyway=True).state == "open"


def test_check__only_price_is_too_low__is_a_refusal_of_its_own(
    tmp_path: Path, market: RealMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(market, tmp_path, ask=20 * ETHER)
    error = refused(lambda: shop.client.jobs.submit(dict(Shop.JOB)), "PRICE_TOO_LOW", NoWorkerError)
    assert error.details["ceiling"] == str(10 * ETHER) and error.details["workers"] == {"price": 1}


def test_check__newcomers_above_what_they_may__says_what_lets_them(shop: Shop) -> None:
    report = check(shop, match={"newcomers": False, "window": "0s"}, limits={"runtime": "2h", "deadline": "24h"})
    assert report["workers"] == {"probation": 1}
    assert (
        report["enough"].startswith('lower the price to max_rate: "')
        and "workers on probation take no dearer" in (report["enough"])
    )
    lower = report["enough"].partition('"')[2].partition('"')[0]
    fits = check(
        shop,
        match={"newcomers": False, "window": "0s"},
        limits={"runtime": "2h", "deadline": "24h"},
        price={"max_rate": lower},
    )
    assert fits["can_take"] == 1


def test_check__market_that_is_paused_or_whose_id_changed__takes_no_post(shop: Shop) -> None:
    shop.market.stewarded.contract.send.pause(True, False, sender=shop.market.stewarded.guardian)
    for call in (lambda: shop.client.jobs.check(dict(Shop.JOB)), lambda: shop.client.jobs.submit(dict(Shop.JOB))):
        error = refused(call, "PAUSED", RefusedError)
        assert error.details["paused_until"] > shop.market.evm.now and error.retryable


def test_check__writes_and_sends_nothing(shop: Shop) -> None:
    check(shop)
    assert shop.market.chain.sent == [] and not shop.client.session.state.exists()
    assert {path.name for path in shop.folder.iterdir()} == {"module.wasm", "home"}


# ---- posted once ----


def test_submit__same_file_again__is_the_same_job_until_its_end_is_seen(shop: Shop) -> None:
    first = shop.client.jobs.submit(dict(Shop.JOB))
    same = shop.client.jobs.submit(dict(Shop.JOB))
    assert same.id == first.id and same.submission and first.submission
    schemas.validate(first.submission)
    assert (first.submission["already_posted"], same.submission["already_posted"]) == (False, True)
    assert [one["action"] for one in first.submission["transactions"]] == ["jobs.post"]
    assert shop.market.said("note")[-1] == f"this job was posted already: {first.id[:14]}; --again posts a new one"
    other = shop.client.jobs.submit(dict(Shop.JOB), again=True)
    assert other.id != first.id
    for job in (first, other):
        shop.done(job.id)
        job.wait()
    assert shop.client.jobs.submit(dict(Shop.JOB)).id not in (first.id, other.id)


def test_submit__dry_run__is_a_plan_and_posts_nothing(shop: Shop) -> None:
    client = shop.market.open(dry_run=True)
    refused(lambda: client.jobs.submit(dict(Shop.JOB)), "DRY_RUN", UsageError)
    refused(lambda: client.jobs.prepare(dict(Shop.JOB)), "DRY_RUN", UsageError)
    plan = client.jobs.posting.submit(dict(Shop.JOB))
    schemas.validate(plan)
    assert plan["pending"] is None and plan["dry_run"] and shop.market.chain.sent == []
    job = shop.client.jobs.submit(dict(Shop.JOB)).id
    assert client.jobs.posting.submit(dict(Shop.JOB))["pending"] == job
    assert client.jobs.posting.submit(dict(Shop.JOB), print_tx=True)["pending"] == job


@IN_BOTH
def test_submit__account_that_cannot_pay__is_refused_before_it_is_signed(market: RealMarket, shop: Shop) -> None:
    token = market.world.token is not None
    if token:
        shop.world.token.send.transfer(  # type: ignore[union-attr]
            shop.world.stranger, 10**24 - 5, sender=to_checksum_address(market.dev)
        )
    else:
        market.chain.give(market.dev, 5)
    error = refused(lambda: shop.client.jobs.submit(dict(Shop.JOB)), "FUNDS_SHORT", FundsError)
    assert error.details["have"] == "5" and market.chain.sent == []


@IN_TOKEN
def test_submit__token_market__approves_what_it_locks_first(shop: Shop) -> None:
    job = shop.client.jobs.submit(dict(Shop.JOB))
    assert job.submission
    assert [one["action"] for one in job.submission["transactions"]] == ["token.approve", "jobs.post"]
    assert shop.world.locked(to_checksum_address(shop.market.dev)) == formulas.escrow_at_post(shop.terms(job.id))


def credit(shop: Shop) -> int:
    """Let the submitter have some credit in Escrow; return it."""
    shop.client.jobs.cancel(shop.post())
    return int(shop.world.credit(to_checksum_address(shop.market.dev)))


@pytest.mark.parametrize("units", [1, 3])
def test_submit__from_credit__takes_that_first_and_no_more_than_it_needs(shop: Shop, units: int) -> None:
    had = credit(shop)
    job = shop.client.jobs.submit({**Shop.JOB, "array": {"units": units}}, use_credit=True)
    escrow = formulas.escrow_at_post(shop.terms(job.id))
    assert shop.world.credit(to_checksum_address(shop.market.dev)) == had - min(had, escrow)
    assert job.submission
    assert [one["action"] for one in job.submission["transactions"]] == ["escrow.withdraw", "jobs.post"]


def test_submit__and_wait__is_its_end_with_its_results(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = type(shop.client.jobs.posting)._finish

    def finish(self: Any, job: str, *given: Any, **named: Any) -> Any:
        shop.done(job, files={"a": "1"})
        return plain(self, job, *given, **named)

    monkeypatch.setattr(type(shop.client.jobs.posting), "_finish", finish)
    job = shop.client.jobs.submit(dict(Shop.JOB), wait=True, results="out")
    assert job.submission
    schemas.validate(job.submission)
    assert job.submission["waited"] and job.submission["end"]["verdict"] == "ok"
    assert (shop.folder / "out" / "a").read_text() == "1"
    refused(lambda: shop.client.jobs.submit(dict(Shop.JOB), results="two"), "USAGE", UsageError)


# ---- prepared here, signed there ----


def test_prepare__is_what_another_machine_sends_and_the_same_file_is_the_same_job(shop: Shop) -> None:
    report = shop.client.jobs.prepare(dict(Shop.JOB))
    schemas.validate(report)
    (call,) = report["prepared"]
    assert (report["from"], report["already_posted"], report["network"]) == (shop.market.dev, False, "test")
    assert report["escrow"] == call["value"] == "624000000000000" and report["escrow_text"] == "0.000624 ETH"
    assert [one["src"] for one in report["stored"]] == ["module.wasm", "spec"]
    assert report["store"].startswith("folder://") and report["send_before"] > shop.market.evm.now
    assert shop.client.jobs.prepare(dict(Shop.JOB))["job"] == report["job"] and shop.market.chain.sent == []
    sent = shop.client.wallet.send_file(json.dumps(report["prepared"]))
    assert [one["state"] for one in sent["calls"]] == ["sent"]
    assert shop.client.jobs.open(report["job"]).state == "open"
    after = shop.client.jobs.prepare(dict(Shop.JOB))
    assert after["already_posted"] and after["prepared"] == [] and after["job"] == report["job"]
    # What the other machine sent is known here.
    assert shop.client.jobs.submit(dict(Shop.JOB)).id == report["job"]
    refused(lambda: shop.client.jobs.posting.submit(dict(Shop.JOB), print_tx=True, wait=True), "USAGE", UsageError)


def test_prepare__for_an_address_without_a_key__warns_of_what_it_is_short_of(shop: Shop) -> None:
    who = "0x" + "ab" * 20
    client = shop.market.open(settings=replace(shop.market.settings, account=who))
    report = client.jobs.prepare(dict(Shop.JOB))
    assert report["from"] == who
    refused(
        lambda: client.jobs.prepare({name: value for name, value in Shop.JOB.items() if name != "price"}), "NO_PRICE"
    )
    assert shop.market.said("warning")[-1].startswith(f"{who} is short of 0.000624 ETH to post this")
    client = shop.market.open(settings=replace(shop.market.settings, account="0x" + "00" * 20))
    refused(lambda: client.jobs.prepare(dict(Shop.JOB)), "BAD_ADDRESS", UsageError)


@IN_TOKEN
def test_prepare__from_credit_of_a_token_market__withdraws_approves_and_posts(shop: Shop) -> None:
    had = credit(shop)
    report = shop.client.jobs.prepare({**Shop.JOB, "array": {"units": 2}}, use_credit=True)
    assert [call["action"] for call in report["prepared"]] == ["escrow.withdraw", "token.approve", "jobs.post"]
    assert report["prepared"][2]["approve"] == report["escrow"] and had > 0


# ---- one line ----


def test_run__price_of_the_market__is_half_above_the_cheapest_ask_and_taken_on_purpose(shop: Shop) -> None:
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    ask = 10**18
    for rate in (5 * ask, ask):
        shop.world.register(ask=rate)
    options: Any = {"cpus": 1, "memory": "64MiB", "runtime": "60s", "outputs": ("/out/a",)}
    error = refused(lambda: shop.client.jobs.run("module.wasm", **options), "NO_PRICE")
    assert error.details["rate"] == str(3 * ask // 2)
    job = shop.client.jobs.run("module.wasm", auto_price=True, **options)
    assert shop.terms(job.id).ceiling == 3 * ask // 2
    assert shop.market.said("note") and any(
        "(at most half above the cheapest fitting ask)" in text for text in shop.market.said("note")
    )
    assert [facts["needed"] for kind, facts in shop.market.told if kind == "confirm"][-1] is True
    named = shop.client.jobs.run("module.wasm", max_rate="0.036/h", **options)
    assert named.id != job.id and shop.terms(named.id).ceiling == 10 * ETHER
    assert [facts["needed"] for kind, facts in shop.market.told if kind == "confirm"][-1] is False


def test_check__file_without_price__is_told_one_that_a_worker_takes(shop: Shop) -> None:
    unpriced = {name: value for name, value in Shop.JOB.items() if name != "price"}
    # The shop's worker asks less than the contract takes.
    assert "the smallest that the contract takes" in refused(lambda: shop.client.jobs.check(unpriced), "NO_PRICE").hint
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    for rate in (3 * 10**18, 10**18):
        shop.world.register(ask=rate)
    error = refused(lambda: shop.client.jobs.check(unpriced), "NO_PRICE")
    found = re.search(r'max_rate: "(.+)"', error.hint)
    assert found and check(shop, price={"max_rate": found[1]})["can_take"] == 1
    alone = refused(lambda: shop.client.jobs.check({**unpriced, "resources": {"cpus": 64}}), "NO_PRICE")
    assert "the smallest that the contract takes" in alone.hint


def test_run__nobody_fits_at_any_price__names_who_there_is(shop: Shop) -> None:
    error = refused(lambda: shop.client.jobs.run("module.wasm", cpus=64, auto_price=True), "NO_WORKER", NoWorkerError)
    assert error.details["workers"] == {"cores": 1} and "no worker can take this job at its own ask" in error.message
    assert "runtime" not in error.hint
    shop.world.register(ask=20 * ETHER, stake=ETHER, cores=64)
    error = refused(
        lambda: shop.client.jobs.run("module.wasm", cpus=64, runtime="200h", auto_price=True),
        "NO_WORKER",
        NoWorkerError,
    )
    assert error.hint.startswith("use a shorter runtime, whose bond is smaller; ")


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({"memory": "plenty"}, "resources.memory", '--memory "plenty"'),
        ({"runtime": "soon"}, "limits.runtime", '--runtime "soon"'),
        ({"max_total": "much"}, "price.max_total", '--max-total "much"'),
        ({"max_rate": "fast"}, "price.max_rate", '--max-rate "fast"'),
        ({"cpus": 0}, "resources.cpus", "--cpus 0"),
        ({"gpu": -1}, "resources.gpu.count", "--gpu -1"),
        ({"inputs": ("a:/in/a", "b:/elsewhere")}, "inputs[1].dst", '-i "b:/elsewhere"'),
        ({"outputs": ("/out/a", "/etc")}, "outputs[1].path", '-o "/etc"'),
        ({"env": {"bad name": "x"}}, "env.bad name", "-e bad name"),
    ],
)
def test_spec_of_run__field_that_cannot_be__is_refused_as_its_option(options: Any, field: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of_run("x.wasm", **options)
    assert said in caught.value.message and field


def test_account__that_is_not_here__is_named_after_the_network_is_checked(shop: Shop) -> None:
    for key in (shop.market.home / "keys").glob("*.json"):
        key.unlink()
    with pytest.raises(ConfigError) as caught:
        shop.market.open().jobs.check(dict(Shop.JOB))
    assert caught.value.hint


# ---- what pays ----


def test_submit__credit_that_is_not_used__is_told_and_named_where_the_account_is_short(shop: Shop) -> None:
    had = credit(shop)
    shop.client.jobs.submit(dict(Shop.JOB))
    more = f"{shop.client.session.amount(had)} more is your credit in Escrow"
    assert sum(text.startswith(more) for text in shop.market.said("note")) == 1
    shop.market.chain.give(shop.market.dev, 10**12)
    error = refused(lambda: shop.client.jobs.submit(dict(Shop.JOB), again=True), "FUNDS_SHORT", FundsError)
    assert error.details["credit"] == str(had) and error.hint.startswith(
        "add use_credit=True, which pays from it first"
    )
    assert error.message.endswith(f"; {shop.client.session.amount(had)} more is its credit in Escrow")
    assert "this job and its gas take" in error.message
    large: Any = {**Shop.JOB, "array": {"units": 9}}
    error = refused(lambda: shop.client.jobs.submit(large, use_credit=True), "FUNDS_SHORT", FundsError)
    assert f"this job, after {shop.client.session.amount(had)} of credit, and its gas take" in error.message
    assert "credit" not in error.details


@pytest.mark.parametrize("use_credit", [False, True])
def test_submit__coin_for_exactly_what_it_takes__is_enough_and_a_wei_less_is_not(shop: Shop, use_credit: bool) -> None:
    had = credit(shop)
    shop.client.jobs.submit(dict(Shop.JOB))
    escrow, fees = 624 * 10**12, shop.client.session.market.port.fees().most
    most = {False: escrow + 160_000 * fees, True: (160_000 + 100_000) * fees}[use_credit]
    assert had == escrow
    shop.market.chain.give(shop.market.dev, most - 1)
    refused(
        lambda: shop.client.jobs.submit(dict(Shop.JOB), again=True, use_credit=use_credit), "FUNDS_SHORT", FundsError
    )
    shop.market.chain.give(shop.market.dev, most)
    assert shop.client.jobs.submit(dict(Shop.JOB), again=True, use_credit=use_credit).state == "open"
    assert shop.world.credit(to_checksum_address(shop.market.dev)) == (0 if use_credit else had)


@IN_TOKEN
def test_submit__token_market__takes_coin_for_an_approval_too_and_sends_none_that_is_there(shop: Shop) -> None:
    fees = shop.client.session.market.port.fees().most
    shop.market.chain.give(shop.market.dev, (160_000 + 70_000) * fees - 1)
    refused(lambda: shop.client.jobs.submit(dict(Shop.JOB)), "FUNDS_SHORT", FundsError)
    shop.market.chain.give(shop.market.dev, (160_000 + 70_000) * fees)
    assert shop.world.token is not None
    shop.world.token.send.approve(shop.world.jobs, 624 * 10**12, sender=to_checksum_address(shop.market.dev))
    job = shop.client.jobs.submit(dict(Shop.JOB))
    assert job.submission and [one["action"] for one in job.submission["transactions"]] == ["jobs.post"]


# ---- what is told, and refused, on the way ----


def test_submit__step_by_step__is_told_as_it_happens(shop: Shop) -> None:
    shop.market.told.clear()
    job = shop.client.jobs.submit(dict(Shop.JOB))
    assert shop.market.said("step")[0] == "reading module.wasm"
    assert shop.market.said("posting") == [f"posting job {job.id}"]
    assert [facts["once"] for kind, facts in shop.market.told if kind == "posting"] == ["the same command finds it"]
    (moved,) = (facts for kind, facts in shop.market.told if kind == "progress")
    assert moved == {"what": "upload module.wasm", "done": len(MODULE), "total": len(MODULE)}
    shop.client.jobs.submit(dict(Shop.JOB), again=True)
    once = [facts["once"] for kind, facts in shop.market.told if kind == "posting"][-1]
    assert once == "the same command without --again finds it"


def test_prepare__without_a_worker__is_refused_unless_anyway_and_tells_the_plan(shop: Shop) -> None:
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    refused(lambda: shop.client.jobs.prepare(dict(Shop.JOB)), "NO_WORKER", NoWorkerError)
    shop.market.told.clear()
    report = shop.client.jobs.prepare(dict(Shop.JOB), anyway=True)
    assert any(text.startswith("costs at most 0.000624 ETH") for text in shop.market.said("note"))
    assert shop.market.said("warning") == []
    # What is prepared already is asked for no worker again.
    assert shop.client.jobs.prepare(dict(Shop.JOB))["job"] == report["job"]
    other = shop.client.jobs.prepare(dict(Shop.JOB), anyway=True, again=True)
    assert other["job"] != report["job"]


def test_prepare__from_more_credit_than_it_takes__withdraws_what_it_takes(shop: Shop) -> None:
    for _ in range(2):
        had = credit(shop)
    report = shop.client.jobs.prepare(dict(Shop.JOB), use_credit=True)
    shop.client.wallet.send_file(json.dumps(report))
    assert shop.world.credit(to_checksum_address(shop.market.dev)) == had - int(report["escrow"])
    plain = shop.client.jobs.prepare(dict(Shop.JOB), again=True)
    assert [call["action"] for call in plain["prepared"]] == ["jobs.post"]


def test_prepared__then_submitted__is_posted_under_its_own_terms(shop: Shop) -> None:
    report = shop.client.jobs.prepare(dict(Shop.JOB))
    job = shop.client.jobs.submit(dict(Shop.JOB))
    assert job.id == report["job"] and job.submission and not job.submission["already_posted"]
    told = [text for text in shop.market.said("note") if text.startswith("this job was")]
    assert told == [f"this job was prepared before, and is posted now: {job.id[:14]}; --again posts a new one"]


def test_rerun__whose_bond_no_stake_covers__says_which_price_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(RealMarket(tmp_path / "home"), tmp_path, stake=ETHER)
    job = shop.client.jobs.submit({**Shop.JOB, "limits": {"runtime": "100h", "deadline": "200h"}}, anyway=True)
    error = refused(job.rerun, "NO_WORKER", NoWorkerError)
    assert error.hint.startswith('lower the price: hearth submit FILE, with max_rate: "')
    silent = shop.client.jobs.submit(dict(Shop.JOB), anyway=True)
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    assert "lower the price" not in refused(silent.rerun, "NO_WORKER", NoWorkerError).hint


def test_attach__job_that_was_posted_elsewhere__waits_for_it_and_says_that_it_was(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    report = shop.client.jobs.posting.attach(job[:14])
    assert report["already_posted"] and report["job"] == job and report["waited"] and report["transactions"] == []
    assert shop.market.said("posted")[-1] == f"job {job}"


def test_run__each_flag__is_the_one_that_it_names(shop: Shop) -> None:
    options: Any = {"cpus": 1, "memory": "64MiB", "runtime": "60s", "max_rate": "0.036/h", "outputs": ("/out/a",)}
    first = shop.client.jobs.run("module.wasm", **options)
    assert shop.client.jobs.run("module.wasm", **options).id == first.id
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    refused(lambda: shop.client.jobs.run("module.wasm", again=True, **options), "NO_WORKER", NoWorkerError)
    assert shop.client.jobs.run("module.wasm", again=True, anyway=True, **options).id != first.id
    (shop.folder / "inner").mkdir()
    (shop.folder / "inner" / "link.wasm").symlink_to(shop.folder / "module.wasm")
    refused(lambda: shop.client.jobs.run("inner/link.wasm", anyway=True, allow_private=True, **options), "OUTSIDE")
    assert shop.client.jobs.run("inner/link.wasm", anyway=True, allow_outside=True, **options).state == "open"


def test_check__parent_that_failed__is_refused_as_submitting_it_would_be(shop: Shop) -> None:
    parent = shop.post()
    waits = {"after": [{"job": parent, "if": "failure"}]}
    report = check(shop, **waits)
    assert report["parents"][0]["job"] == parent and any(
        text.startswith(f"waits for job {parent[:14]}") for text in report["text"]
    )
    assert ", and one more for whoever starts it" in line(report, "costs at most")
    assert "whoever starts it" not in line(check(shop), "costs at most")
    shop.done(parent)
    refused(lambda: shop.client.jobs.check({**Shop.JOB, **waits}), "PARENT_ENDED")


def test_run__price_that_nobody_takes__hears_which_flags_would_do(shop: Shop) -> None:
    options: Any = {"cpus": 1, "memory": "64MiB", "max_rate": "0.036/h"}
    run = partial(shop.client.jobs.run, "module.wasm", **options)
    error = refused(partial(run, runtime="2h"), "NO_WORKER", NoWorkerError)
    assert error.hint.startswith('lower the price to max_rate="')
    shop.world.register(ask=20 * ETHER)
    shop.world.nodes.send.exit_start(shop.node, sender=shop.world.owner)
    error = refused(partial(run, runtime="60s"), "NO_WORKER", NoWorkerError)
    assert error.hint.startswith('use max_total="') and 'or max_rate="0.072 ETH/h"' in error.hint


@pytest.mark.parametrize(
    ("text", "src"), [("a:b:/in/x", "a:b"), ("./data:/in/data", "./data"), ("https://h:1/p:/in/p", "https://h:1/p")]
)
def test_spec_of_run__input__is_split_at_its_last_colon(text: str, src: str) -> None:
    assert spec_of_run("x.wasm", inputs=(text,)).spec.inputs[0].src == src
    for wrong in ("data", "data:", "data:in/x", "/in/data"):
        with pytest.raises(UsageError, match="is not SRC:DST"):
            spec_of_run("x.wasm", inputs=(wrong,))


def test_spec_of_run__price_that_is_wrong__is_refused_as_the_option_that_was_given() -> None:
    for options, said in (({"max_rate": "1/h", "max_total": "x"}, "--max-total"), ({"max_rate": "x"}, "--max-rate")):
        with pytest.raises(SpecError, match=said):
            spec_of_run("x.wasm", **options)  # type: ignore[arg-type]
