"""Governing a real market from the command line: queued in the open, executed by anybody, dropped by the guardian."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.client.views import moment
from hearth.local import devnet
from hearth.market.changes import LIFE, Change, ChangeOp
from hearth.market.profiles import DEVNET
from hearth.protocol import words
from tests.kit.town import Said, Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DAY = 86_400
OTHER = "0x" + "c1" * 20


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Town]:
    """A market of its own: its governance has one state."""
    with town(tmp_path) as made:
        yield made


def said(told: Said, code: int = 0) -> Any:
    assert told.code == code, told.err + told.out
    return told.json


def later(place: Town, seconds: int) -> None:
    place.chain.rpc("evm_increaseTime", seconds)
    place.chain.rpc("evm_mine")


def until_due(place: Town, due: int) -> None:
    end = time.monotonic() + 60
    while place.chain.head().timestamp < due:
        assert time.monotonic() < end
        time.sleep(0.2)


def row(place: Town, change: str) -> Any:
    rows = said(place.hearth("gov", "status", "--json"))["changes"]
    return next(row for row in rows if row["change"] == change)


def test_queue__wait__execute_by_another_account__new_policy_in_force(place: Town) -> None:
    market = place.session.market
    before = market.policies().word
    queued = said(place.hearth("gov", "queue", "policy", "fee_bps=300", "ack_time=9s", "--json"))
    change, due = queued["change"], queued["due"]
    assert queued["transactions"][0]["action"] == "steward.queue" and not queued["already_done"]
    assert market.change(bytes.fromhex(change[2:])) == due == market.port.head().timestamp + 5 or due > 0
    policy = replace(DEVNET.policy, fee_bps=300, ack_time=9)
    assert change == "0x" + Change(ChangeOp.SET_POLICY, words.pack_policy(policy), 0).id.hex()

    # It is due five seconds later, which a busy machine needs for the commands alone.
    with place.still():
        waits = row(place, change)
        assert waits["state"] == "waiting" and waits["until"] == due + LIFE
        assert waits["text"] == "policy: fee_bps 500 (5 %) -> 300 (3 %), ack_time 8s -> 9s"
        told = place.hearth("net", "params")
        shown = "changes that are queued" in told.out and "fee_bps 500 (5 %) -> 300 (3 %)" in told.out
        assert shown, told.out + told.err
        early = said(place.hearth("gov", "execute", change[:10], "--account", "keeper", "--json"), 5)
        assert early["error"]["code"] == "NOT_DUE" and market.policies().word == before

    again = said(place.hearth("gov", "queue", "policy", "fee_bps=300", "ack_time=9s", "--json"))
    assert again["already_done"] and again["change"] == change and again["transactions"] == []

    until_due(place, due)
    assert row(place, change)["state"] == "due"
    done = said(place.hearth("gov", "execute", change[:10], "--account", "keeper", "--json"))
    assert done["transactions"][0]["action"] == "steward.execute"
    assert (market.policy().fee_bps, market.policy().ack_time) == (300, 9) and market.policies().previous == before
    over = row(place, change)
    assert over["state"] == "executed" and over["text"] == "policy: fee_bps 500 (5 %) -> 300 (3 %), ack_time 8s -> 9s"
    twice = said(place.hearth("gov", "execute", change, "--json"))
    assert twice["already_done"] and twice["transactions"] == []
    assert "queued" not in place.hearth("net", "params").out
    # A policy within a day of the last is not refused, only told: another command executes it later.
    noted = place.hearth("gov", "queue", "policy", "fee_bps=400")
    assert noted.code == 0 and "within the last 24 hours" in noted.err, noted.err
    assert said(place.hearth("net", "verify", "--json"))["solvent"]


def test_queue__policy_within_a_day_of_the_last__every_command_names_the_second_that_rules_takes_it(
    place: Town,
) -> None:
    first = said(place.hearth("gov", "queue", "policy", "fee_bps=300", "--json"))
    until_due(place, first["due"])
    done = said(place.hearth("gov", "execute", first["change"], "--account", "keeper", "--json"))
    mined = place.chain.block(done["transactions"][0]["block"])
    free = mined.timestamp + DAY
    second = place.hearth("gov", "queue", "policy", "fee_bps=400")
    assert second.code == 0 and f"from {moment(free)}" in second.out and moment(free) in second.err, second.err
    rows = said(place.hearth("gov", "status", "--json"))["changes"]
    (change,) = (one for one in rows if one["state"] == "waiting")
    assert change["ready"] == free > change["due"]
    until_due(place, change["due"])
    assert row(place, change["change"])["state"] == "waiting"
    status = place.hearth("gov", "status").out
    assert f"from {moment(free)}: policy: fee_bps 300 (3 %) -> 400 (4 %)" in status, status
    early = said(place.hearth("gov", "execute", change["change"], "--json"), 5)
    assert early["error"]["code"] == "NOT_DUE" and early["error"]["details"]["ready"] == free
    assert moment(free) in early["error"]["message"]
    # Where the replaced policy was dropped, Rules forgets when, and its logs still say it.
    said(place.hearth("gov", "drop", "previous-policy", "--json"))
    assert place.session.market.policies().until == 0 and row(place, change["change"])["ready"] == free
    later(place, free - place.chain.head().timestamp)
    assert row(place, change["change"])["state"] == "due"
    said(place.hearth("gov", "execute", change["change"], "--json"))
    assert place.session.market.policy().fee_bps == 400


def test_drop__by_the_guardian__the_change_is_over_and_he_can_queue_none(place: Town) -> None:
    guardian = place.client.wallet.show("attester")["address"]
    seated = said(place.hearth("gov", "queue", "guardian", guardian, "--json"))
    until_due(place, seated["due"])
    said(place.hearth("gov", "execute", seated["change"], "--json"))
    status = said(place.hearth("gov", "status", "--json"))
    council = devnet.account(devnet.DEPLOYER).address.lower()
    assert (status["council"], status["guardian"]) == (council, guardian)

    raised = said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"))
    refused = said(place.hearth("gov", "queue", "minimum-stake", "3", "--account", "attester", "--json"), 3)
    assert refused["error"]["code"] == "NOT_SEATED" and council in refused["error"]["message"]
    stranger = said(place.hearth("gov", "drop", raised["change"], "--account", "dev", "--json"), 3)
    assert stranger["error"]["code"] == "NOT_SEATED" and guardian in stranger["error"]["message"]
    dropped = said(place.hearth("gov", "drop", raised["change"], "--account", "attester", "--json"))
    assert dropped["transactions"][0]["action"] == "steward.drop"
    assert said(place.hearth("gov", "drop", raised["change"], "--account", "attester", "--json"))["already_done"]
    until_due(place, raised["due"])
    over = said(place.hearth("gov", "execute", raised["change"], "--json"), 5)
    assert over["error"]["code"] == "CHANGE_OVER" and "dropped" in over["error"]["message"]
    assert place.session.market.immutable("NodeRegistry", "minimum_stake") == 10**18
    # The same once more takes another salt.
    anew = said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"))
    assert anew["change"] != raised["change"] and row(place, anew["change"])["salt"] == "1"

    both = ("gov", "pause", "posts", "registrations", "--account", "attester", "--json")
    assert said(place.hearth(*both), 3)["error"]["code"] == "NOT_CONFIRMED"
    assert place.session.market.policies().paused_until == 0
    paused = said(place.hearth(*both, "--yes"))
    assert paused["what"] == ["posts", "registrations"]
    status = said(place.hearth("gov", "status", "--json"))
    now = place.chain.head().timestamp
    assert min(status[name]["paused_until"] for name in ("posts", "registrations")) > now + 6 * DAY
    assert "posts are governed by the Steward, paused now until" in place.hearth("gov", "status").out
    again = said(place.hearth("gov", "pause", "posts", "--yes", "--json"), 5)
    free = status["posts"]["pausable_from"]
    assert free == status["posts"]["paused_until"] + 23 * DAY
    assert again["error"]["details"] == {"reason": "rules: paused lately", "pausable_from": free}
    assert again["error"]["code"] == "PAUSED_LATELY" and moment(free) in again["error"]["message"]
    assert said(place.hearth("net", "verify", "--json"))["solvent"]
    # From that second on, and no earlier.
    later(place, free - 60 - place.chain.head().timestamp)
    assert said(place.hearth("gov", "pause", "posts", "--yes", "--json"), 5)["error"]["code"] == "PAUSED_LATELY"
    later(place, free - place.chain.head().timestamp)
    said(place.hearth("gov", "pause", "posts", "--yes", "--json"))


def test_governor__offered_by_the_steward__is_taken_and_given_back(place: Town) -> None:
    market, dev = place.session.market, place.client.wallet.show("dev")["address"]
    offered = said(place.hearth("gov", "queue", "governor", "posts", dev, "--json"))
    until_due(place, offered["due"])
    said(place.hearth("gov", "execute", offered["change"], "--json"))
    steward = place.session.network.steward
    assert said(place.hearth("gov", "status", "--json"))["posts"]["offered"] == dev
    with place.client.session.sender(of=dev) as sender:
        sender.send(market.calls.accept_governor("Rules"), key="take")
    status = place.hearth("gov", "status")
    assert f"posts are governed by {dev}, and not the Steward" in status.out, status.out
    # Handed over in the open: the books hold. What the Steward does not govern, it cannot change.
    assert said(place.hearth("net", "verify", "--json"))["solvent"]
    refused = said(place.hearth("gov", "queue", "policy", "fee_bps=300", "--json"), 5)
    assert refused["error"]["code"] == "OUT_OF_BOUNDS" and "not the governor" in refused["error"]["message"]
    with place.client.session.sender(of=dev) as sender:
        sender.send(market.calls.offer_governor("Rules", steward), key="back")
    said(place.hearth("gov", "accept", "posts", "--json"))
    assert market.governor("Rules") == steward


def test_council__handed_over__in_two_steps(place: Town) -> None:
    market, dev = place.session.market, place.client.wallet.show("dev")["address"]
    nobody = said(place.hearth("gov", "accept", "council", "--json"), 3)
    assert nobody["error"]["code"] == "NOT_SEATED"
    offered = said(place.hearth("gov", "queue", "council", dev, "--json"))
    until_due(place, offered["due"])
    said(place.hearth("gov", "execute", offered["change"], "--json"))
    other = said(place.hearth("gov", "accept", "council", "--account", "keeper", "--json"), 3)
    assert other["error"]["code"] == "NOT_SEATED" and dev in other["error"]["message"]
    said(place.hearth("gov", "accept", "council", "--json"))
    assert market.seats().council == dev and market.seats().offered_council == "0x" + "00" * 20
    former = said(place.hearth("gov", "queue", "minimum-stake", "2", "--account", "council", "--json"), 3)
    assert former["error"]["code"] == "NOT_SEATED"
    said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"))
    assert said(place.hearth("net", "verify", "--json"))["solvent"]


def test_queue__nobody_executes__lapses_and_can_be_queued_anew(place: Town) -> None:
    first = said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"))
    later(place, LIFE + 5)
    assert row(place, first["change"])["state"] == "lapsed"
    late = said(place.hearth("gov", "execute", first["change"], "--json"), 5)
    assert late["error"]["code"] == "CHANGE_OVER"
    second = said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"))
    assert second["change"] != first["change"] and second["due"] > first["due"]


def test_print_tx__of_a_safe__what_it_sends_is_the_change(place: Town) -> None:
    council = devnet.account(devnet.DEPLOYER).address.lower()
    chain, market = place.chain, place.session.market
    nonce = chain.nonce(council)
    # A machine without the council's key.
    (place.home / "keys" / "council.json").unlink()
    told = place.hearth("gov", "queue", "minimum-stake", "2", "--print-tx")
    assert told.code == 0, told.err
    prepared = json.loads(told.out)
    assert (prepared["schema"], prepared["from"], prepared["value"]) == ("hearth.tx/1", council, "0")
    assert prepared["to"] == place.session.network.steward and chain.nonce(council) == nonce
    without = said(place.hearth("gov", "queue", "minimum-stake", "2", "--json"), 3)
    assert without["error"]["code"] == "NOT_SEATED" and "--print-tx" in without["error"]["hint"]
    dry = said(place.hearth("gov", "accept", "registrations", "--dry-run", "--json"), 5)
    assert dry["error"]["details"]["reason"] == "nodes: not offered to you"
    chain.rpc("eth_sendTransaction", {name: prepared[name] for name in ("from", "to", "data")})
    change = Change(ChangeOp.SET_MINIMUM_STAKE, 2 * 10**18, 0)
    end = time.monotonic() + 20
    while market.change(change.id) == 0:
        assert time.monotonic() < end
        time.sleep(0.2)
    drop = json.loads(place.hearth("gov", "drop", change.id.hex(), "--print-tx").out)
    assert drop["from"] == council and drop["data"].endswith(change.id.hex())


def test_queue__dry_run__sends_nothing(place: Town) -> None:
    council = devnet.account(devnet.DEPLOYER).address
    nonce = place.chain.nonce(council, pending=True)
    dry = said(place.hearth("gov", "queue", "guardian", OTHER, "--dry-run", "--json"))
    assert dry["dry_run"] and dry["transactions"][0]["tx"] is None
    assert place.chain.nonce(council, pending=True) == nonce
    assert said(place.hearth("gov", "status", "--json"))["changes"] == []
