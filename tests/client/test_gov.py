"""Governance as a client reads it: a provider may say anything, and a council may queue any word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import ChainError, ConfigError, RefusedError, UsageError
from hearth.chain.port import refused
from hearth.cli.gov import _governor, change_lines
from hearth.client.audit.verify_creation import delay_faults
from hearth.client.audit.verify_steward import governance_faults
from hearth.client.governance import changes
from hearth.client.governance.changes import (
    BOUNDS,
    OVER,
    change_rows,
    next_policy_from,
    read_change,
    read_changes,
    state_of,
)
from hearth.client.governance.gov import MAX_SALTS, Gov
from hearth.client.governance.parameters import AMOUNTS, SHARES, SPANS
from hearth.client.views import event_facts, moment
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.market.changes import DROPPED, EXECUTED, LIFE, POLICY_GRACE, Change, ChangeOp
from hearth.market.events import MAX_TIME, decode
from hearth.market.profiles import DEVNET, PUBLIC
from hearth.market.reads import Seats
from hearth.protocol import words
from hearth.protocol.types import LOCAL_CHAIN_ID, ZERO_ADDRESS
from tests.kit import build
from tests.kit.fake_chain import Event
from tests.kit.hints import faults_in
from tests.kit.scripted import ScriptedMarket
from tests.market.test_events import make_log
from tools import schemas

COUNCIL, GUARDIAN, OTHER = ("0x" + pair * 20 for pair in ("c1", "9d", "77"))
NOW_POLICY = words.pack_policy(DEVNET.policy)
FEE = Change(ChangeOp.SET_POLICY, words.pack_policy(replace(DEVNET.policy, fee_bps=300)), 0)
STAKE = Change(ChangeOp.SET_MINIMUM_STAKE, 2 * 10**18, 0)
LATER = 10**6
DAY = 86_400
ROOT = Path(__file__).parents[2]


def _refuse(reason: str) -> bytes:
    raise refused(reason)


class Place(ScriptedMarket):
    """A scripted market whose Steward holds `states`, with a client of it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.states: dict[bytes, int] = {}
        self.said: list[str] = []
        self.asked: list[bool] = []
        self.seats = {"council": COUNCIL, "offered_council": ZERO_ADDRESS, "guardian": GUARDIAN}
        self.governors = {"Rules": self.network.steward, "NodeRegistry": self.network.steward}
        self.on("Steward", "changes", lambda call, block: encode(["uint256"], [self.states.get(call.data[4:36], 0)]))
        for name in self.seats:
            self.on("Steward", name, lambda call, block, name=name: encode(["address"], [self.seats[name]]))
        self.answer("Steward", "DELAY", ["uint256"], [5])
        self.answer("Rules", "policies", ["uint256"] * 5, [NOW_POLICY, 0, 0, 0, 0])
        self.answer("NodeRegistry", "minimum_stake", ["uint256"], [10**18])
        for contract in ("Rules", "NodeRegistry"):
            self.on(contract, "governor", lambda call, block, one=contract: encode(["address"], [self.governors[one]]))
            self.answer(contract, "offered_governor", ["address"], [ZERO_ADDRESS])
            self.answer(contract, "paused_until", ["uint256"], [0])
        self.session: Any = SimpleNamespace(
            market=self.market,
            network=self.network,
            asset=self.network.asset,
            settings=Settings(home=Path("/nonexistent"), **settings),
            dry_run=False,
            tell=self.tell,
            key=lambda: SimpleNamespace(address=COUNCIL),
            require_funds=lambda *_, **__: {},
        )
        self.gov = Gov(self.session)

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        self.said.append(facts["text"])
        if kind == "confirm":
            self.asked.append(facts["needed"])
            raise ConfigError("nobody says yes", hint="use --yes", code="NOT_CONFIRMED")

    def replaced(self, until: int) -> None:
        """Have Rules say that the policy it replaced is taken until then, 0 where it was dropped."""
        self.answer("Rules", "policies", ["uint256"] * 5, [NOW_POLICY, 0, NOW_POLICY, until, 0])

    def event(self, name: str, contract: str = "Steward", **values: Any) -> Event:
        entry = next(dict(e) for e in codec(contract).abi if e["type"] == "event" and e["name"] == name)
        log = make_log(entry, values)
        return Event(self.network.contracts[contract], log.topics, log.data)

    def queued(self, change: Change, /, due: int | None = None, *, state: int | None = None, **values: Any) -> Event:
        """Return the log of a queued change, which the Steward holds as `state`, by default as due then."""
        due = self.now + LATER if due is None else due
        self.states[change.id] = due if state is None else state
        plain = {"change": change.id, "op": int(change.op), "word": change.word, "salt": change.salt, "due": due}
        return self.event("ChangeQueued", **{**plain, **values})

    @property
    def now(self) -> int:
        return self.chain.head().timestamp

    @property
    def head(self) -> Any:
        return self.chain.head()


@pytest.fixture
def place() -> Place:
    return Place()


# ---- what waits ----


def test_read_changes__each_state__is_the_stewards(place: Place) -> None:
    now = place.now
    made = {
        "waiting": place.queued(FEE),
        "due": place.queued(STAKE, now),
        "lapsed": place.queued(replace(STAKE, salt=1), now - LIFE),
        "dropped": place.queued(replace(STAKE, salt=2), now + LATER, state=DROPPED),
        "executed": place.queued(replace(STAKE, salt=3), now - 5, state=EXECUTED),
    }
    place.chain.mine(list(made.values()), timestamp=now + 1)
    seen, earlier = read_changes(place.market, place.head)
    assert [one.state for one in seen] == list(made) and earlier == 0
    rows = change_rows(place.market, place.head, seen)
    assert rows[0]["text"] == "policy: fee_bps 500 (5 %) -> 300 (3 %)"
    assert rows[1]["text"] == "new nodes stake at least 2 ETH"
    assert len(change_lines(rows)) == 5 and not place.market.strays
    report = place.gov.status()
    schemas.validate(report)
    assert [row["state"] for row in report["changes"]] == list(made) and report["guardian"] == GUARDIAN


@pytest.mark.parametrize(
    ("state", "past", "found"),
    [
        (DROPPED, 0, "dropped"),
        (EXECUTED, 0, "executed"),
        (100, 99, "waiting"),
        (100, 100, "due"),
        (100, 99 + LIFE, "due"),
        (100, 100 + LIFE, "lapsed"),
    ],
)
def test_state_of__edges(state: int, past: int, found: str) -> None:
    assert state_of(state, past) == found


def test_read_changes__logs_of_what_the_steward_does_not_hold__are_strays(place: Place) -> None:
    invented = place.queued(FEE)
    del place.states[FEE.id]
    beyond = place.queued(replace(STAKE, salt=9), state=2**256 - 1)
    true = place.queued(STAKE)
    place.chain.mine(
        [
            invented,
            beyond,
            true,
            true,
            place.queued(replace(STAKE, salt=1), change=b"\1" * 32),
            place.queued(replace(STAKE, salt=2), op=7),
            place.queued(replace(STAKE, salt=3), due=MAX_TIME + 1),
            Event(place.network.steward, true.topics[:2], true.data),
            Event(place.network.steward, true.topics, true.data[:40]),
        ]
    )
    seen, earlier = read_changes(place.market, place.head)
    assert [one.change for one in seen] == [STAKE] and earlier == 0
    assert len(place.market.strays) == 8
    report = place.gov.status()
    schemas.validate(report)
    assert report["strays"]["count"] == 8


@pytest.mark.parametrize(("state", "why"), [(0, "was never queued"), (2**256 - 1, "is due at a time beyond reason")])
def test_read_changes__log_of_what_the_steward_does_not_hold__says_what_it_holds(
    place: Place, state: int, why: str
) -> None:
    place.chain.mine([place.queued(FEE, state=state)])
    assert read_changes(place.market, place.head) == ([], 0)
    (told,) = place.market.strays.first
    assert told.endswith(f"change 0x{FEE.id.hex()[:12]} {why}")


def test_read_changes__log_with_another_due_time__is_believed_as_it_is_held(place: Place) -> None:
    event = place.queued(STAKE, place.now + 50)
    place.states[STAKE.id] = place.now + 70
    place.chain.mine([event])
    (seen,), _ = read_changes(place.market, place.head)
    assert seen.due == place.states[STAKE.id] and seen.state == "waiting"
    (why,) = place.market.strays.first
    assert "is due at" in why


def test_read_changes__any_number_of_logs__are_looked_up_in_part_and_counted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 20
    monkeypatch.setattr(changes, "MAX_LOOKED", most)
    waiting = [place.queued(replace(STAKE, salt=salt)) for salt in range(most + 30)]
    lapsed = place.now + 1 - LIFE  # in this very second
    over = [place.queued(replace(STAKE, salt=1_000 + salt), lapsed) for salt in range(OVER + 7)]
    place.chain.mine([*over, *waiting], timestamp=lapsed + LIFE)
    before = place.chain.counts["call"]
    seen, earlier = read_changes(place.market, place.head)
    assert place.chain.counts["call"] - before <= most + OVER
    assert len(seen) == most + OVER and earlier == 30 + 7
    assert [one.change.salt for one in seen if one.open] == list(range(most)) and seen[0].change.salt == 1_007


@pytest.mark.parametrize("word", [0, 1, 2**256 - 1, NOW_POLICY | 1 << 255])
def test_status__policy_out_of_every_bound__is_shown(place: Place, word: int) -> None:
    place.chain.mine([place.queued(Change(ChangeOp.SET_POLICY, word, 0))])
    report = place.gov.status()
    schemas.validate(report)
    (row,) = report["changes"]
    assert row["state"] == "waiting" and row["text"].startswith("policy")
    assert change_lines(report["changes"])


def test_status__executed_policy__is_shown_against_the_one_that_it_replaced(place: Place) -> None:
    older = words.pack_policy(replace(DEVNET.policy, fee_bps=900))
    place.chain.mine(
        [
            place.queued(FEE, 5, state=EXECUTED),
            place.event("PolicyChanged", "Rules", policy=FEE.word, previous=older, until=9),
        ]
    )
    assert place.gov.status()["changes"][0]["text"] == "policy: fee_bps 900 (9 %) -> 300 (3 %)"


def test_event_facts__of_the_steward__are_words_for_people() -> None:
    place = Place()
    told = {}
    for event in (
        place.queued(STAKE, 7),
        place.event("ChangeDropped", change=STAKE.id),
        place.event("ChangeExecuted", change=STAKE.id, op=2, word=STAKE.word),
        place.event("CouncilOffered", council=OTHER),
        place.event("CouncilChanged", council=OTHER),
        place.event("GuardianChanged", guardian=ZERO_ADDRESS),
    ):
        place.chain.mine([event])
        (log,) = place.chain.logs([place.network.steward], (), from_block=place.head.number, to_block=place.head.number)
        found = decode(log)
        assert found is not None
        facts = event_facts(found, place.network.asset)
        schemas.validate(facts)
        told[facts["event"]] = facts["text"]
    assert "new nodes stake at least 2 ETH" in told["ChangeQueued"] and "1970-01-01" in told["ChangeQueued"]
    assert told["GuardianChanged"] == "nobody is the guardian" and OTHER in told["CouncilOffered"]


# ---- what is refused before anything is signed ----


def test_read_change__none__takes_an_offer_back(place: Place) -> None:
    for kind, values, op in (
        ("guardian", ["none"], ChangeOp.SEAT_GUARDIAN),
        ("council", ["none"], ChangeOp.OFFER_COUNCIL),
        ("governor", ["registrations", "none"], ChangeOp.OFFER_REGISTRATIONS),
    ):
        assert read_change(kind, values, DEVNET.policy, place.network) == (op, 0)
    for kind in ("fees", "", "policy "):
        with pytest.raises(UsageError) as caught:
            read_change(kind, ["1"], DEVNET.policy, place.network)
        assert caught.value.code == "BAD_CHANGE"


def test_read_change__policy__keeps_what_is_not_named(place: Place) -> None:
    policy = replace(DEVNET.policy, ack_time=77)
    op, word = read_change("policy", ["fee_bps=300", "min_price=0.000002 ETH", "key_timeout=1h"], policy, place.network)
    wanted = replace(policy, fee_bps=300, min_price=2 * 10**12, key_timeout=3_600)
    assert op is ChangeOp.SET_POLICY and words.unpack_policy(word) == wanted


def test_queue__what_the_governed_contract_refuses__is_refused_as_its_steward(place: Place) -> None:
    asked = []

    def set_policy(call: Any, block: Any) -> bytes:
        asked.append(call)
        raise refused("rules: policy out of range")

    place.on("Rules", "set_policy", set_policy)
    with pytest.raises(RefusedError) as caught:
        place.gov.queue("policy", ["fee_bps=1001"])
    assert caught.value.code == "OUT_OF_BOUNDS" and "rules: policy out of range" in caught.value.message
    assert len(asked) == 1


def test_queue__policy_was_set_lately__is_told_and_goes_on(place: Place) -> None:
    def lately(call: Any, block: Any) -> bytes:
        raise refused("rules: changed lately")

    place.on("Rules", "set_policy", lately)
    place.on("Steward", "queue", lambda call, block: bytes(32))
    place.replaced(free := place.now + 77)
    report = place.gov.queue("policy", ["fee_bps=300"], print_tx=True)
    assert report["prepared"]["from"] == COUNCIL
    (told,) = (text for text in place.said if "24 hours" in text)
    assert moment(free) in told and moment(free) in report["text"]
    assert (report["due"], report["ready"]) == (place.now + 5, free)
    schemas.validate(report)
    # Nothing tells when it was set: a day from now on is the latest.
    place.replaced(0)
    place.gov.queue("policy", ["fee_bps=300"], print_tx=True)
    assert moment(place.now + POLICY_GRACE) in place.said[-1]


@pytest.mark.parametrize("ahead", [-1, 0, 1, 7_000])
def test_ready__of_a_policy__is_the_later_of_its_due_time_and_a_day_after_the_last(place: Place, ahead: int) -> None:
    due = place.now - 50
    place.chain.mine([place.queued(FEE, due), place.queued(STAKE, due)])
    free = place.now + ahead
    place.replaced(free)
    report = place.gov.status()
    schemas.validate(report)
    policy, stake = report["changes"]
    assert policy["due"] == stake["due"] == stake["ready"] == due and stake["state"] == "due"
    assert policy["ready"] == free and policy["state"] == ("due" if ahead <= 0 else "waiting")
    line, _ = change_lines(report["changes"])
    assert (f"from {moment(free)}:" if ahead > 0 else "now, until") in line


def test_ready__policy_that_lapses_first__is_never(place: Place) -> None:
    place.chain.mine([place.queued(FEE, place.now - LIFE + 60)])
    place.replaced(place.now + 70)
    (line,) = change_lines(place.gov.status()["changes"])
    assert "not before it lapses" in line
    place.on("Steward", "execute", lambda call, block: _refuse("rules: changed lately"))
    with pytest.raises(RefusedError) as caught:
        place.gov.execute(FEE.id.hex(), print_tx=True)
    assert caught.value.code == "CHANGE_OVER"


def test_next_policy_from__previous_one_was_dropped__is_what_the_log_says_and_within_a_day(place: Place) -> None:
    assert next_policy_from(place.market, place.head) == 0
    for until in (place.now + 500, place.now + 40):
        place.chain.mine([place.event("PolicyChanged", "Rules", policy=FEE.word, previous=NOW_POLICY, until=until)])
    # The one at deployment, and the drop itself, have no end.
    place.chain.mine(
        [
            place.event("PolicyChanged", "Rules", policy=FEE.word, previous=0, until=place.now + 900),
            place.event("PolicyChanged", "Rules", policy=FEE.word, previous=NOW_POLICY, until=0),
        ]
    )
    assert next_policy_from(place.market, place.head) == until + 460
    place.replaced(2**256 - 1)
    assert next_policy_from(place.market, place.head) == place.now + POLICY_GRACE


def test_execute__policy_within_a_day_of_the_last__names_the_second_that_it_waits_for(place: Place) -> None:
    place.chain.mine([place.queued(FEE, place.now)])
    place.on("Steward", "execute", lambda call, block: _refuse("rules: changed lately"))
    place.replaced(free := place.now + 4_000)
    with pytest.raises(RefusedError) as caught:
        place.gov.execute(FEE.id.hex()[:4], print_tx=True)
    error = caught.value
    assert error.code == "NOT_DUE" and moment(free) in error.message and error.details["ready"] == free
    assert "24 hours after the last policy" in error.message and faults_in(error.hint) == []


def test_execute__other_refusals__are_as_the_contract_says_them(place: Place) -> None:
    place.chain.mine([place.queued(STAKE, place.now)])
    place.on("Steward", "execute", lambda call, block: _refuse("nodes: minimum out of range"))
    with pytest.raises(RefusedError) as caught:
        place.gov.execute(STAKE.id.hex(), print_tx=True)
    assert caught.value.code == "REFUSED"


def test_execute__not_due_within_a_day_of_the_last__names_the_later_second(place: Place) -> None:
    place.chain.mine([place.queued(FEE, due := place.now + 10)])
    for free, ready in ((due + 4_000, due + 4_000), (due - 1, due)):
        place.replaced(free)
        with pytest.raises(RefusedError) as caught:
            place.gov.execute(FEE.id.hex(), print_tx=True)
        assert caught.value.code == "NOT_DUE" and moment(ready) in caught.value.message
        # The change is named as everywhere else, so that it can be found in what `status` shows.
        assert f"change 0x{FEE.id.hex()[:12]} can" in caught.value.message
        assert caught.value.hint.endswith(f"hearth gov execute 0x{FEE.id.hex()[:12]}")


@pytest.mark.parametrize("verb", ["execute", "drop"])
def test_find__fewer_than_four_digits__is_no_id(place: Place, verb: str) -> None:
    place.chain.mine([place.queued(FEE, place.now)])
    place.on("Steward", "execute", lambda call, block: b"")
    place.on("Steward", "drop", lambda call, block: b"")
    digits = FEE.id.hex()
    for text in (digits[:1], digits[:3], "0x" + digits[:3]):
        with pytest.raises(UsageError) as caught:
            getattr(place.gov, verb)(text, print_tx=True)
        assert caught.value.code == "BAD_ID" and "too short" in caught.value.message
    assert getattr(place.gov, verb)(digits[:4], print_tx=True)["change"] == "0x" + digits


# ---- what a policy is shown as ----


def test_status__policy_as_it_is_today__says_so(place: Place) -> None:
    same = Change(ChangeOp.SET_POLICY, NOW_POLICY, 0)
    place.chain.mine([place.queued(FEE), place.queued(same)])
    rows = place.gov.status()["changes"]
    assert [row["text"] for row in rows] == ["policy: fee_bps 500 (5 %) -> 300 (3 %)", "policy: as it is today"]
    place.on("Rules", "set_policy", lambda call, block: b"")
    place.on("Steward", "queue", lambda call, block: bytes(32))
    assert "policy: as it is today" in place.gov.queue("policy", ["fee_bps=500"], print_tx=True)["text"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("fee_bps=99999", "fee_bps is from 0 (0 %) to 1000 (10 %), not 99999 (999.99 %)"),
        ("fee_bps=1000000", "fee_bps is from 0 (0 %) to 1000 (10 %), not 1000000 (10000 %)"),
        ("min_bond_bps=65536", "min_bond_bps is from 1 (0.01 %) to 65535 (655.35 %)"),
        ("ack_time=1024s", "ack_time is from 2s to 10m, not 17m4s"),
        ("fresh_delay=9d", "fresh_delay is from 0s to min_challenge_window, not 9d"),
        ("min_price=0.0000012345", "three digits"),
        ("fee_bps=3%", "fee_bps is a whole number of 1/10,000, not '3%'"),
        ("fee_bps=\u0663", "fee_bps is a whole number of 1/10,000"),
    ],
)
def test_read_change__value_that_no_policy_holds__names_the_bounds(place: Place, change: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_change("policy", [change], DEVNET.policy, place.network)
    assert caught.value.code == "BAD_CHANGE" and words in caught.value.message and "bits" not in caught.value.message


def test_bounds__are_those_of_the_spec() -> None:
    table = (ROOT / "docs" / "protocol.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| policy \|.*\| ([^|]+) \|$", table, re.MULTILINE))
    assert set(rows) >= {*AMOUNTS, *SHARES, *SPANS} and set(BOUNDS) == {*SHARES, *SPANS}
    for name, (least, most) in BOUNDS.items():
        shown = most if isinstance(most, str) else f"{most:,}"
        assert rows[name] == f"{least}..{shown}", name


# ---- the brake ----


def test_pause__asks_and_needs_an_answer(place: Place) -> None:
    place.on("Steward", "pause", lambda call, block: b"")
    place.session.settings = replace(place.session.settings, account="council")
    with pytest.raises(ConfigError) as caught:
        place.gov.pause(["posts"])
    assert caught.value.code == "NOT_CONFIRMED" and place.asked == [True]


@pytest.mark.parametrize(
    ("posts", "registrations", "says", "hint"),
    [
        (1, 0, "posts", "hearth gov pause registrations"),
        (0, 1, "registrations", "hearth gov pause posts"),
        (1, 1, "posts", "after that: hearth gov pause posts registrations"),
    ],
)
def test_pause__lately__says_from_when_it_works_again(
    place: Place, posts: int, registrations: int, says: str, hint: str
) -> None:
    begun = place.now - 29 * DAY
    place.answer("Rules", "paused_until", ["uint256"], [posts * (begun + 7 * DAY)])
    place.answer("NodeRegistry", "paused_until", ["uint256"], [registrations * (begun + 7 * DAY)])
    reason = "rules: paused lately" if posts else "nodes: paused lately"
    place.on("Steward", "pause", lambda call, block: _refuse(reason))
    with pytest.raises(RefusedError) as caught:
        place.gov.pause(["posts", "registrations"], print_tx=True)
    error = caught.value
    assert error.code == "PAUSED_LATELY" and error.hint == hint and faults_in(error.hint) == []
    assert error.message.startswith(says) and error.message.count(moment(begun + 30 * DAY)) == posts + registrations
    assert error.details == {"reason": reason, "pausable_from": begun + 30 * DAY}


def test_pause__refusal_that_nothing_explains__stays_as_it_is(place: Place) -> None:
    for reason in ("rules: paused lately", "rules: not the governor"):
        place.on("Steward", "pause", lambda call, block, reason=reason: _refuse(reason))
        with pytest.raises(RefusedError) as caught:
            place.gov.pause(["posts"], print_tx=True)
        assert caught.value.code == "REFUSED" and reason in caught.value.message


def test_status__pause__now_and_when_again(place: Place) -> None:
    until = place.now + 1
    for ahead, says in ((0, "paused now until"), (1, "last paused until"), (23 * DAY, "last paused until")):
        place.answer("Rules", "paused_until", ["uint256"], [until])
        report = place.gov.status()
        schemas.validate(report)
        assert report["posts"]["pausable_from"] == until + 23 * DAY and not report["registrations"]["pausable_from"]
        line = _governor("posts", report["posts"], place.now + ahead)
        assert says in line and moment(until) in line and moment(until + 23 * DAY) in line
    assert "again" not in _governor("posts", report["posts"], until + 23 * DAY)
    assert "paused" not in _governor("registrations", report["registrations"], place.now)


def test_queue__rpc_that_takes_no_sender__is_warned_of(place: Place) -> None:
    def unsupported(call: Any, block: Any) -> bytes:
        raise ChainError("eth_call takes no from", code="RPC_UNSUPPORTED")

    place.on("NodeRegistry", "set_minimum_stake", unsupported)
    place.on("Steward", "queue", lambda call, block: bytes(32))
    assert "prepared" in place.gov.queue("minimum-stake", ["2"], print_tx=True)
    assert any("bounds are not checked" in text for text in place.said)


def test_queue__beside_another_policy_that_waits__warns_that_it_undoes_it(place: Place) -> None:
    place.on("Rules", "set_policy", lambda call, block: b"")
    place.on("Steward", "queue", lambda call, block: bytes(32))
    place.chain.mine([place.queued(FEE)])
    place.gov.queue("policy", ["ack_time=9s"], print_tx=True)
    assert any("fee_bps 500 (5 %) -> 300 (3 %)" in text and "undoes" in text for text in place.said)


def test_queue__salts__first_free_one_and_what_waits_is_not_queued_again(place: Place) -> None:
    place.on("NodeRegistry", "set_minimum_stake", lambda call, block: b"")
    sent = []
    place.on("Steward", "queue", lambda call, block: sent.append(call.data) or bytes(32))  # type: ignore[func-returns-value]
    over = (DROPPED, EXECUTED, place.now - LIFE)
    place.states |= {replace(STAKE, salt=salt).id: state for salt, state in enumerate(over)}
    report = place.gov.queue("minimum-stake", ["2"], print_tx=True)
    told = codec("Steward").decode_input(sent[-1])
    assert told is not None and told[1]["salt"] == 3 and report["change"] == "0x" + replace(STAKE, salt=3).id.hex()
    place.states[replace(STAKE, salt=3).id] = place.now + 5
    report = place.gov.queue("minimum-stake", ["2"], print_tx=True)
    assert report["already_done"] and len(sent) == 1 and report["due"] == place.now + 5
    place.states |= {replace(STAKE, salt=salt).id: DROPPED for salt in range(MAX_SALTS)}
    with pytest.raises(ChainError) as caught:
        place.gov.queue("minimum-stake", ["2"], print_tx=True)
    assert caught.value.code == "RPC_LIES"


def test_queue__what_is_so_already__is_refused_unless_something_waits(place: Place) -> None:
    place.on("Rules", "set_policy", lambda call, block: b"")
    place.on("Steward", "queue", lambda call, block: bytes(32))
    for kind, values in (("policy", ["fee_bps=500"]), ("minimum-stake", ["1"]), ("guardian", [GUARDIAN])):
        with pytest.raises(UsageError) as caught:
            place.gov.queue(kind, values, print_tx=True)
        assert caught.value.code == "BAD_CHANGE"
    place.chain.mine([place.queued(FEE)])
    assert "prepared" in place.gov.queue("policy", ["fee_bps=500"], print_tx=True)


def test_print_tx__account_that_holds_no_seat__is_refused() -> None:
    place = Place(account=OTHER)
    place.on("Steward", "pause", lambda call, block: b"")
    with pytest.raises(ConfigError) as caught:
        place.gov.pause(["posts"], print_tx=True)
    assert caught.value.code == "NOT_SEATED"
    place = Place(account=GUARDIAN)
    place.on("Steward", "pause", lambda call, block: b"")
    report = place.gov.pause(["posts", "posts"], print_tx=True)
    assert report["prepared"]["from"] == GUARDIAN and report["what"] == ["posts"]
    place.seats["guardian"] = ZERO_ADDRESS
    with pytest.raises(ConfigError):
        place.gov.pause(["posts"], print_tx=True)


def test_execute__change_of_which_no_log_tells__is_not_found_and_can_be_dropped(place: Place) -> None:
    place.states[STAKE.id] = place.now
    place.on("Steward", "drop", lambda call, block: b"")
    with pytest.raises(Exception, match="no log"):
        place.gov.execute(STAKE.id.hex())
    assert place.gov.drop(STAKE.id.hex(), print_tx=True)["change"] == "0x" + STAKE.id.hex()


# ---- the proof ----


def faults(place: Place) -> list[str]:
    return list(governance_faults(place.market, place.head, lambda what: None))


@pytest.fixture
def proven(place: Place) -> Place:
    """A market in which everything adds up: two changes over, one waiting, seats as the events say."""
    place.chain.mine(
        [
            place.event("CouncilChanged", council=OTHER),
            place.event("GuardianChanged", guardian=GUARDIAN),
            *(place.event("GovernorChanged", one, governor=place.network.steward) for one in place.governors),
            place.queued(FEE),
            place.queued(STAKE, state=DROPPED),
            place.event("ChangeDropped", change=STAKE.id),
            place.event("CouncilOffered", council=COUNCIL),
            place.event("CouncilChanged", council=COUNCIL),
        ]
    )
    assert faults(place) == []
    return place


@pytest.mark.parametrize("name", ["council", "offered_council", "guardian"])
def test_governance_faults__seat_that_no_event_gave__is_named(proven: Place, name: str) -> None:
    proven.seats[name] = OTHER
    (fault,) = faults(proven)
    assert name in fault and OTHER in fault


@pytest.mark.parametrize(("change", "state"), [(FEE, EXECUTED), (FEE, 7), (FEE, 0), (STAKE, EXECUTED)])
def test_governance_faults__change_in_another_state__is_named(proven: Place, change: Change, state: int) -> None:
    proven.states[change.id] = state
    (fault,) = faults(proven)
    assert change.id.hex()[:12] in fault


@pytest.mark.parametrize("contract", ["Rules", "NodeRegistry"])
def test_governance_faults__governor__is_the_steward_or_was_offered_by_it(proven: Place, contract: str) -> None:
    proven.governors[contract] = OTHER
    assert len(faults(proven)) == 2
    proven.chain.mine([proven.event("GovernorChanged", contract, governor=OTHER)])
    (fault,) = faults(proven)
    assert contract in fault and "has offered nothing" in fault
    op = ChangeOp.OFFER_POSTS if contract == "Rules" else ChangeOp.OFFER_REGISTRATIONS
    offer = Change(op, int(OTHER, 16), 0)
    queued = proven.queued(offer, state=EXECUTED)
    proven.chain.mine([queued, proven.event("ChangeExecuted", change=offer.id, op=int(op), word=offer.word)])
    assert faults(proven) == []


def test_governance_faults__hidden_log__is_a_fault(place: Place) -> None:
    place.states[STAKE.id] = EXECUTED
    place.chain.mine([place.queued(STAKE, state=EXECUTED)])
    assert len(faults(place)) == 1 + 2 + 2  # the change, both seats, both governors


@pytest.mark.parametrize(
    ("chain_id", "delay", "least"),
    [
        (LOCAL_CHAIN_ID, DEVNET.delay, None),
        (LOCAL_CHAIN_ID, DEVNET.delay - 1, "5s"),
        (1, PUBLIC.delay, None),
        (1, PUBLIC.delay - 1, "2d"),
        (1, DEVNET.delay, "2d"),
    ],
)
def test_delay_faults__shorter_than_people_need_on_that_chain__is_named(
    chain_id: int, delay: int, least: str | None
) -> None:
    market: Any = SimpleNamespace(network=SimpleNamespace(job_chain_id=chain_id))
    faults = delay_faults(market, Seats(COUNCIL, ZERO_ADDRESS, GUARDIAN, delay))
    assert [fault.rpartition(" ")[2] for fault in faults] == ([] if least is None else [least])


def test_network__has_a_steward_of_its_own() -> None:
    assert build.network(Place().chain).steward == build.ADDRESSES["Steward"]
