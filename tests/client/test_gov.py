"""Governance as a client reads it: a provider may say anything, and a council may queue any word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import ChainError, ConfigError, RefusedError, UsageError
from hearth.chain.port import refused
from hearth.cli.gov import change_lines
from hearth.client import changes
from hearth.client.changes import OVER, change_rows, read_change, read_changes, state_of
from hearth.client.gov import MAX_SALTS, Gov
from hearth.client.verify_steward import governance_faults
from hearth.client.views import event_facts
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.market.changes import DROPPED, EXECUTED, LIFE, Change, ChangeOp
from hearth.market.events import MAX_TIME, decode
from hearth.market.profiles import DEVNET
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS
from tests.kit import build
from tests.kit.fake_chain import Event
from tests.kit.scripted import ScriptedMarket
from tests.market.test_events import make_log
from tools import schemas

COUNCIL, GUARDIAN, OTHER = ("0x" + pair * 20 for pair in ("c1", "9d", "77"))
NOW_POLICY = words.pack_policy(DEVNET.policy)
FEE = Change(ChangeOp.SET_POLICY, words.pack_policy(replace(DEVNET.policy, fee_bps=300)), 0)
STAKE = Change(ChangeOp.SET_MINIMUM_STAKE, 2 * 10**18, 0)
LATER = 10**6


class Place(ScriptedMarket):
    """A scripted market whose Steward holds `states`, with a client of it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.states: dict[bytes, int] = {}
        self.said: list[str] = []
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
            tell=lambda kind, facts: self.said.append(facts["text"]),
        )
        self.gov = Gov(self.session)

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
    assert rows[0]["text"] == "policy: fee_bps 500 -> 300"
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
    over = [place.queued(replace(STAKE, salt=1_000 + salt), 5, state=EXECUTED) for salt in range(OVER + 7)]
    place.chain.mine([*over, *waiting])
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
    assert place.gov.status()["changes"][0]["text"] == "policy: fee_bps 900 -> 300"


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
    report = place.gov.queue("policy", ["fee_bps=300"], print_tx=True)
    assert report["prepared"]["from"] == COUNCIL and any("24 hours" in text for text in place.said)
    schemas.validate(report)


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
    assert any("fee_bps 500 -> 300" in text and "undoes" in text for text in place.said)


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


def test_network__has_a_steward_of_its_own() -> None:
    assert build.network(Place().chain).steward == build.ADDRESSES["Steward"]
