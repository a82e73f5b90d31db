"""Governing a market and proving its books, over the real contracts: who may, what changes when, and what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from hearth.base.errors import ChainError, ConfigError, HearthError, NotFoundError, RefusedError, UsageError
from hearth.chain.follow import DEPTH
from hearth.client import Client
from hearth.client.audit.verify import Verifier
from hearth.market.changes import LIFE, POLICY_GRACE
from hearth.protocol.types import Outcome
from hearth.storage.cid import Cid
from hearth.storage.stores import BLOCK_TIMEOUT_SECONDS, FolderStore
from tests.kit.evm_chain import IN_TOKEN, RealMarket, Shop
from tests.kit.steward import DELAY
from tests.kit.world import DAY, ETHER, MINIMUM_STAKE, POLICY
from tools import schemas

OTHER = "0x" + "b2" * 20


def refused(call: Any, code: str, kind: type[HearthError] = RefusedError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


@pytest.fixture
def seated(market: RealMarket) -> RealMarket:
    """The market whose council is the home's "dev" and whose guardian its "provider"."""
    steward, world = market.stewarded, market.world
    steward.change(5, int(market.dev, 16))
    steward.contract.send.accept_council(sender=to_checksum_address(market.dev))
    steward.council = to_checksum_address(market.dev)
    steward.change(6, int(market.provider, 16))
    assert world.rules.call.governor() == steward.contract.address
    market.pass_time(1)
    return market


def acting(market: RealMarket, name: str, **how: Any) -> Client:
    settings = replace(market.settings, account=name, origins={"account": "--account"})
    return market.open(settings=settings, **how)


def actions(report: Any) -> list[str]:
    schemas.validate(report)
    return [one["action"] for one in report["transactions"]]


# ---- looking ----


def test_status__of_a_new_market__names_seats_governors_and_pauses(seated: RealMarket) -> None:
    report = seated.client.gov.status()
    schemas.validate(report)
    assert (report["council"], report["guardian"], report["offered_council"]) == (seated.dev, seated.provider, None)
    assert (report["steward"], report["delay"], report["network"]) == (seated.network.steward, DELAY, "test")
    assert (report["block"], report["time"]) == (seated.chain.head().number, seated.evm.now)
    governed = {
        "governor": seated.network.steward,
        "steward": True,
        "offered": None,
        "paused_until": 0,
        "pausable_from": report["posts"]["pausable_from"],
    }
    assert report["posts"] == governed and report["registrations"] == governed
    assert [row["state"] for row in report["changes"]] == ["executed"] * 2
    seated.client.gov.queue("council", [OTHER])
    acting(seated, "provider").gov.pause(["posts"])
    report = seated.client.gov.status()
    assert report["posts"]["paused_until"] == seated.evm.now + 7 * DAY and report["registrations"]["paused_until"] == 0
    (row,) = (row for row in report["changes"] if row["state"] == "waiting")
    assert row["due"] == row["ready"] and OTHER in row["text"]


# ---- council ----


def test_queue_and_execute__stake__counts_after_the_delay_and_once(seated: RealMarket) -> None:
    gov, world = seated.client.gov, seated.world
    report = gov.queue("minimum-stake", ["2"])
    assert actions(report) == ["steward.queue"] and not report["already_done"] and not report["dry_run"]
    due = seated.evm.now + DELAY
    assert (report["due"], report["ready"]) == (due, due)
    assert report["text"].startswith(f"queued as {report['change'][:14]}: ") and "2 ETH" in report["text"]
    again = gov.queue("minimum-stake", ["2"])
    assert again["already_done"] and actions(again) == [] and again["change"] == report["change"]
    assert (again["due"], again["ready"]) == (due, due) and again["text"].startswith("queued already as ")
    error = refused(lambda: gov.execute(report["change"]), "NOT_DUE")
    assert error.details["due"] == error.details["ready"] == due
    seated.evm.at(due - 2)
    seated.chain.mine()
    refused(lambda: gov.execute(report["change"]), "NOT_DUE")
    seated.evm.at(due)
    seated.chain.mine()
    assert world.nodes.call.minimum_stake() == MINIMUM_STAKE
    # Anybody carries it out.
    done = acting(seated, "provider").gov.execute(report["change"][:8])
    assert actions(done) == ["steward.execute"] and (done["change"], done["due"]) == (report["change"], due)
    assert world.nodes.call.minimum_stake() == 2 * ETHER
    same = gov.execute(report["change"])
    assert same["already_done"] and same["text"].endswith("was executed already") and actions(same) == []
    assert [one["due"] for one in gov.status()["changes"] if one["change"] == report["change"]] == [due]
    refused(lambda: gov.drop(report["change"]), "CHANGE_OVER")
    refused(lambda: gov.queue("minimum-stake", ["2"]), "BAD_CHANGE", UsageError)
    # The same again, after another one, is another change.
    back = gov.queue("minimum-stake", ["1"])
    assert back["change"] != report["change"] and not back["already_done"]
    assert not gov.queue("minimum-stake", ["2"])["already_done"]


def test_execute__too_late__is_over(seated: RealMarket) -> None:
    gov = seated.client.gov
    report = gov.queue("minimum-stake", ["2"])
    seated.evm.at(report["due"] + LIFE + 1)
    seated.chain.mine()
    error = refused(lambda: gov.execute(report["change"]), "CHANGE_OVER")
    assert "could be executed until" in error.message
    # It is announced anew, as another one.
    assert gov.queue("minimum-stake", ["2"])["change"] != report["change"]


def test_queue__policy__waits_for_the_last_one_and_warns_of_others(seated: RealMarket) -> None:
    gov = seated.client.gov
    first = gov.queue("policy", ["fee_bps=400"])
    seated.told.clear()
    second = gov.queue("policy", ["fee_bps=300"])
    (warning,) = seated.said("warning")
    assert warning.startswith(f"a policy is set whole: executed after {first['change'][:14]} (")
    seated.pass_time(DELAY)
    gov.execute(first["change"])
    assert seated.world.rules.call.policies()[0] != seated.network.policy
    set_at = seated.evm.now
    error = refused(lambda: gov.execute(second["change"]), "NOT_DUE")
    assert error.details["ready"] == set_at + POLICY_GRACE and "24 hours after the last policy was set" in error.message
    assert seated.client.net.params()["policy"]["fee_bps"] == 400
    dropped = gov.drop("previous-policy")
    assert actions(dropped) == ["steward.drop_previous_policy"] and dropped["what"] == ["previous-policy"]
    seated.evm.at(set_at + POLICY_GRACE)
    seated.chain.mine()
    gov.execute(second["change"])
    assert seated.client.net.params()["policy"]["fee_bps"] == 300


@pytest.mark.parametrize(("kind", "values"), [("minimum-stake", ["0"]), ("minimum-stake", ["1208926"])])
def test_queue__what_no_contract_takes__is_refused_before_it_is_signed(
    seated: RealMarket, kind: str, values: list[str]
) -> None:
    sent = len(seated.chain.sent)
    error = refused(lambda: seated.client.gov.queue(kind, values), "OUT_OF_BOUNDS")
    assert error.message.startswith("nobody could execute that: ") and len(seated.chain.sent) == sent


def test_queue__what_is_so_already__changes_nothing(seated: RealMarket) -> None:
    gov = seated.client.gov
    for kind, values in (
        ("minimum-stake", ["1"]),
        ("policy", [f"fee_bps={POLICY.fee_bps}"]),
        ("council", [seated.dev]),
        ("guardian", [seated.provider]),
    ):
        error = refused(lambda: gov.queue(kind, values), "BAD_CHANGE", UsageError)  # noqa: B023
        assert "it would change nothing" in error.message
    # Not where something that waits makes a difference.
    gov.queue("minimum-stake", ["2"])
    assert not gov.queue("minimum-stake", ["1"])["already_done"]


def test_queue__for_whoever_is_not_the_council__is_refused_with_who_is(seated: RealMarket) -> None:
    error = refused(lambda: acting(seated, "provider").gov.queue("minimum-stake", ["2"]), "NOT_SEATED", ConfigError)
    assert error.message == f"{seated.dev} is the council, and this account is {seated.provider}"
    prepared = acting(seated, "dev").gov.queue("minimum-stake", ["2"], print_tx=True)
    assert prepared["prepared"]["from"] == seated.dev and prepared["transactions"] == []
    (seated.home / "keys" / "dev.json").unlink()
    error = refused(lambda: seated.open().gov.queue("minimum-stake", ["2"]), "NOT_SEATED", ConfigError)
    assert error.message == f"{seated.dev} is the council, and no key here is"
    # What another machine signs is prepared for the seat.
    report = seated.open().gov.queue("minimum-stake", ["2"], print_tx=True)
    assert report["prepared"]["from"] == seated.dev
    bare = replace(seated.settings, account=OTHER)
    refused(
        lambda: seated.open(settings=bare).gov.queue("minimum-stake", ["2"], print_tx=True), "NOT_SEATED", ConfigError
    )
    seat = replace(seated.settings, account=to_checksum_address(seated.dev))
    assert seated.open(settings=seat).gov.queue("minimum-stake", ["2"], print_tx=True)["prepared"]["from"] == seated.dev


def test_queue__dry_run__is_tried_and_not_asked(seated: RealMarket) -> None:
    report = seated.open(dry_run=True).gov.queue("minimum-stake", ["2"])
    assert report["dry_run"] and seated.said("confirm") == [] and len(seated.client.gov.status()["changes"]) == 2


# ---- council and guardian ----


def test_drop__by_the_guardian__is_for_good(seated: RealMarket) -> None:
    gov, guardian = seated.client.gov, acting(seated, "provider").gov
    report = gov.queue("minimum-stake", ["2"])
    dropped = guardian.drop(report["change"])
    assert actions(dropped) == ["steward.drop"] and dropped["change"] == report["change"]
    assert dropped["text"].startswith(f"drop {report['change'][:14]}: ") and "2 ETH" in dropped["text"]
    same = guardian.drop(report["change"])
    assert same["already_done"] and same["text"].endswith("was dropped already")
    refused(lambda: gov.execute(report["change"]), "CHANGE_OVER")
    for text, code, kind in (
        ("0x123", "BAD_ID", UsageError),
        ("xyz", "BAD_ID", UsageError),
        ("", "BAD_ID", UsageError),
        ("0x" + "1" * 65, "BAD_ID", UsageError),
        ("0x1234", "NOT_FOUND", NotFoundError),
        ("0x" + "12" * 32, "NOT_FOUND", NotFoundError),
    ):
        refused(lambda: gov.drop(text), code, kind)  # noqa: B023
        refused(lambda: gov.execute(text), code, kind)  # noqa: B023


def test_pause__both__lasts_seven_days_and_comes_once_in_thirty(seated: RealMarket) -> None:
    guardian = acting(seated, "provider").gov
    report = guardian.pause(["posts", "registrations", "posts"])
    assert actions(report) == ["steward.pause"] and report["what"] == ["posts", "registrations"]
    assert report["text"] == "stop new posts and registrations for 7 days"
    assert [facts["needed"] for kind, facts in seated.told if kind == "confirm"] == [True]
    until = seated.evm.now + 7 * DAY
    assert (seated.world.rules.call.paused_until(), seated.world.nodes.call.paused_until()) == (until, until)
    seated.pass_time(8 * DAY)
    error = refused(lambda: guardian.pause(["posts"]), "PAUSED_LATELY")
    status = seated.client.gov.status()
    assert error.details["pausable_from"] == status["posts"]["pausable_from"]
    assert error.hint == "after that: hearth gov pause posts"
    for what in ([], ["jobs"], ["posts", "jobs"]):
        with pytest.raises(UsageError, match="neither posts nor registrations"):
            guardian.pause(what)
    seated.evm.at(status["posts"]["pausable_from"])
    seated.chain.mine()
    assert actions(guardian.pause(["registrations"])) == ["steward.pause"]
    error = refused(lambda: guardian.pause(["posts", "registrations"]), "PAUSED_LATELY")
    assert error.hint == "hearth gov pause posts" and "posts were" not in error.message
    assert actions(guardian.pause(["posts"])) == ["steward.pause"]


def test_accept__councils_seat__by_whom_it_was_offered_to(seated: RealMarket) -> None:
    gov, other = seated.client.gov, acting(seated, "provider").gov
    error = refused(lambda: other.accept(["council"]), "NOT_SEATED", ConfigError)
    assert "offered to nobody" in error.message
    report = gov.queue("council", [seated.provider])
    seated.pass_time(DELAY)
    gov.execute(report["change"])
    assert gov.status()["offered_council"] == seated.provider
    refused(lambda: acting(seated, "dev").gov.accept(["council"]), "NOT_SEATED", ConfigError)
    taken = other.accept(["council"])
    assert actions(taken) == ["steward.accept_council"] and taken["what"] == ["council"]
    assert taken["text"] == f"{seated.provider} becomes the council"
    assert gov.status()["council"] == seated.provider


def test_accept__rights_of_a_contract__go_away_and_come_back(seated: RealMarket) -> None:
    gov, world = seated.client.gov, seated.world
    report = gov.queue("governor", ["posts", world.stranger])
    seated.pass_time(DELAY)
    gov.execute(report["change"])
    assert gov.status()["posts"]["offered"] == world.stranger.lower()
    world.rules.send.accept_governor(sender=world.stranger)
    status = gov.status()
    assert (status["posts"]["governor"], status["posts"]["steward"]) == (world.stranger.lower(), False)
    # The Steward offered it: no fault.
    assert "faults" not in seated.client.net.verify()
    world.rules.send.offer_governor(seated.stewarded.contract, sender=world.stranger)
    back = gov.accept(["posts"])
    assert actions(back) == ["steward.accept_governor"] and back["text"] == "the Steward governs posts"
    assert gov.status()["posts"]["steward"]


# ---- the proof of the books ----


def verify(client: Client) -> Any:
    report = client.net.verify()
    schemas.validate(report)
    return report


def busy(shop: Shop) -> dict[str, str]:
    """Let a market have jobs of every end; return them by what became of them."""
    jobs = {"ok": shop.post(array={"units": 2}), "failed": shop.post(), "late": shop.post(), "cancelled": shop.post()}
    shop.done(jobs["ok"], 0, files={"a": "1"})
    shop.done(jobs["failed"], outcome=Outcome.TRAP)
    shop.start(jobs["late"])
    shop.market.pass_time(2_000)
    shop.world.reclaim(shop.terms(jobs["late"]))
    shop.client.jobs.cancel(jobs["cancelled"])
    return jobs


def test_verify__market_with_jobs_of_every_end__counts_them_and_is_solvent(shop: Shop) -> None:
    empty = verify(shop.client)
    assert (empty["jobs"], empty["units"], empty["seconds"], empty["solvent"]) == (0, 0, 0, True)
    jobs = busy(shop)
    report = verify(shop.client)
    assert {name: value for name, value in report.items() if name not in ("seconds", "unproven", "council")} == {
        "schema": "hearth.verify/1",
        "jobs": 4,
        "units": 5,
        "settled": 2,
        "failed": 1,
        "reclaimed": 1,
        "results_checked": 2,
        "solvent": True,
        "guardian": shop.market.stewarded.guardian.lower(),
        "delay": DELAY,
    }
    first = shop.client.session.market.terms_of(shop.client.session.job_id(jobs["ok"]))
    block = shop.market.chain.block(first.log.block_hash)
    assert block is not None and report["seconds"] == shop.market.chain.head().timestamp - block.timestamp > 2_000
    assert report["council"] == shop.market.stewarded.council.lower() and "unverified" not in report
    # Of these contracts no network file says by which transactions they were created.
    assert set(report["unproven"]) == set(shop.market.network.contracts)


def test_verify__result_that_cannot_be_read__is_named_and_no_fault_of_the_books(shop: Shop) -> None:
    job = shop.post()
    gone = {"cid": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", "size": 4}
    shop.done(job, outputs=gone)
    report = verify(shop.client)
    assert report["solvent"] and report["results_checked"] == 0
    assert len(report["unread"]) == 1 and job[2:14] in report["unread"][0]


def test_verify__time_ends_among_the_results__counts_those_left_and_blames_nobody(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = shop.post(array={"units": 2})
    for job, unit in ((array, 0), (array, 1), (shop.post(), 0)):
        shop.done(job, unit)
    read = Verifier._verify_result

    def last(self: Verifier, *given: Any) -> None:
        read(self, *given)
        self._end = 0.0

    monkeypatch.setattr(Verifier, "_verify_result", last)
    report = verify(shop.client)
    assert (report["results_checked"], report["unverified"]) == (1, 2)
    assert report["solvent"] and "unread" not in report


def test_verify__store_that_gives_results__is_asked_for_no_longer_than_there_is_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    asked: dict[bytes, float] = {}
    read = FolderStore.get_block

    def noted(self: FolderStore, cid: Cid, timeout: float = BLOCK_TIMEOUT_SECONDS) -> bytes:
        asked[cid.digest] = timeout
        return read(self, cid, timeout)

    monkeypatch.setattr(FolderStore, "get_block", noted)
    report = verify(shop.market.open(settings=replace(shop.market.settings, timeout=30)))
    # The result's document, the job's spec, the folder that the result names, and the file in there.
    assert report["results_checked"] == 1 and len(asked) == 4 and max(asked.values()) <= 30


def test_verify__escrow_that_is_short__is_named_with_how_much(shop: Shop) -> None:
    busy(shop)
    held = shop.market.evm.balance(shop.world.escrow)
    shop.market.evm.set_balance(shop.world.escrow, held - 7)
    report = verify(shop.client)
    assert not report["solvent"] and report["faults"] == [f"Escrow holds {held - 7} and owes {held}: short by 7"]


@IN_TOKEN
def test_verify__storage_that_no_event_tells_of__is_named(shop: Shop) -> None:
    busy(shop)
    owner, escrow = shop.world.owner, to_checksum_address(shop.market.network.escrow)
    said, owed = shop.world.credit(owner), shop.world.escrow.call.tracked()
    # A word of the books has a mark beside the amount, that it was used.
    for amount, mark in ((said, 1 << 160), (owed, 1 << 256)):
        words = shop.market.evm.state()[escrow][3]
        ((slot, word),) = ((slot, word) for slot, word in words.items() if word % mark == amount)
        shop.market.evm.put_storage(escrow, slot, word + 5)
    report = verify(shop.client)
    assert report["faults"] == [
        f"credit of {owner.lower()}: events say {said}, storage {said + 5}",
        f"Escrow tracks {owed + 5} and owes {owed}",
    ]


# ---- a snapshot ----


def test_snapshot__of_final_blocks__has_each_log_once_and_names_its_last_block(shop: Shop) -> None:
    error = refused(lambda: shop.client.net.snapshot("early.jsonl"), "NOT_FINAL", ChainError)
    assert str(DEPTH) in error.message and not Path("early.jsonl").exists()
    busy(shop)
    logs = shop.market.chain.logs(list(shop.market.network.contracts.values()), from_block=0, to_block=10**6)
    shop.market.chain.mine(count=DEPTH)
    report = shop.client.net.snapshot("history.jsonl")
    schemas.validate(report)
    last = shop.market.chain.block(report["block"])
    assert last is not None and report["block"] == shop.market.chain.head().number - DEPTH
    head, *parts = [json.loads(line) for line in Path("history.jsonl").read_text().splitlines()]
    assert (head["block"], head["block_hash"], report["block_hash"]) == (
        report["block"],
        "0x" + last.hash.hex(),
        "0x" + last.hash.hex(),
    )
    found = [one for part in parts for block in part["blocks"] for one in block[2]]
    assert len(found) == report["logs"] == len(logs) and report["parts"] == len(parts)
    assert report["bytes"] == Path("history.jsonl").stat().st_size and report["file"] == "history.jsonl"
    named = shop.client.net.snapshot()
    assert named["file"] == f"hearth-31337-{named['block']}.jsonl" and Path(named["file"]).is_file()
    dry = shop.market.open(dry_run=True).net.snapshot("dry.jsonl")
    assert dry["dry_run"] and not Path("dry.jsonl").exists()
    with pytest.raises(HearthError):
        shop.client.net.snapshot("history.jsonl")
