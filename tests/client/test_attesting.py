"""hearth.client.judges.attesting: an attester signs what the chain has, and only what has its quorum is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_account import Account

from hearth.base.errors import HearthError, NotFoundError, RefusedError, UsageError
from hearth.client.judges.attesting import Attesting
from hearth.market.calls import Calls
from hearth.market.reads import UnitView
from hearth.protocol import words
from hearth.protocol.attest import AttesterSet
from hearth.protocol.types import Accused, JobId, Outcome, State, TermsFlag, Unit, UnitFlag
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tests.kit.world import POLICY

JOB = JobId(b"\x07" * 32)
NAME = "0x" + JOB.hex()
ACCOUNTS = sorted((Account.from_key(bytes([number]) * 32) for number in (1, 2, 3)), key=lambda one: one.address.lower())
KEYS = tuple(one.address.lower() for one in ACCOUNTS)
SET = AttesterSet(KEYS, 2)
DONE = Unit(state=State.SUBMITTED, outcome=Outcome.OK, seconds=9, node=3, attempts=1)
OPEN, ENDED = Unit(state=State.OPEN), Unit(state=State.SETTLED, outcome=Outcome.OK)


class Place:
    """A job on a chain that does nothing, and the session of whoever attests or confirms it."""

    def __init__(self, folder: Path, units: tuple[Unit, ...], **terms: Any) -> None:
        network = build.network(FakeChain())
        plain = {"judge": network.contracts["Attesters"], "judge_data": SET.judge_data, "flags": TermsFlag.PROVEN}
        self.folder, self.account = folder, ACCOUNTS[0]
        self.told: list[str] = []
        self.sent: list[tuple[Any, str]] = []
        self.sent_at = 0
        self.refuses: set[str] = set()
        self.holds_key = False
        self.view = self.viewed(units, build.terms(units=max(1, len(units)), **{**plain, **terms}))
        self.set_file = folder / "set.json"
        self.set_file.write_text(json.dumps({"keys": KEYS, "quorum": 2}))
        self.session: Any = SimpleNamespace(
            network=network,
            market=SimpleNamespace(calls=Calls(network), port=SimpleNamespace(head=self._head)),
            settings=SimpleNamespace(timeout=60),
            dry_run=False,
            tell=lambda kind, facts: self.told.append(facts["text"]),
            key=lambda: SimpleNamespace(address=self.account.address.lower(), name="me"),
            unlocked=lambda key: self.account,
            require_funds=lambda *args, **options: None,
            sender=self._sender,
            send=self._send,
        )
        self.attesting = Attesting(SimpleNamespace(session=self.session, look=lambda job: self.view))  # type: ignore[arg-type]

    def viewed(self, units: tuple[Unit, ...], terms: Any) -> Any:
        return SimpleNamespace(
            posted=SimpleNamespace(job_id=JOB, packed=words.pack_terms(terms)),
            terms=terms,
            units=units,
            best=tuple(UnitView(unit, 100 + at, Accused()) for at, unit in enumerate(units)),
            finished=all(unit.state.terminal for unit in units),
            labels=("running", "running"),
            now=1_000,
        )

    def _head(self) -> Any:
        """Mine a block ten seconds after the last."""
        self.view.now += 10
        return SimpleNamespace(timestamp=self.view.now)

    @contextmanager
    def _sender(self) -> Iterator[None]:
        self.holds_key = True
        yield None
        self.holds_key = False

    def _send(self, sender: object, call: Any, key: str) -> dict[str, str]:
        if key in self.refuses:
            raise RefusedError("jobs: not submitted", hint="look", code="TX_REFUSED")
        self.sent.append((call, key))
        self.sent_at = self.view.now
        return {"tx": key}

    def attest(self, number: int, *units: int, **options: Any) -> Path:
        """Let an attester sign into a file."""
        self.account = ACCOUNTS[number]
        out = self.folder / f"{number}-{len(list(self.folder.iterdir()))}.json"
        self.attesting.attest(NAME, units, out=out, **options)
        return out

    def confirm(self, *files: Path, units: tuple[int, ...] = (), **options: Any) -> Any:
        return self.attesting.confirm(NAME, units, files, **{"attesters": self.set_file, **options})


def refused(call: Any, code: str, kind: type[HearthError] = RefusedError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def test_confirm__two_of_three_signed__one_call_a_unit_with_ascending_places(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE, replace(DONE, outcome=Outcome.EXIT, seconds=0), OPEN))
    report = place.confirm(place.attest(2), place.attest(0, attesters=place.set_file))
    assert report["units"] == [0, 1] and len(report["transactions"]) == 2
    assert [key for _, key in place.sent] == [f"confirm/{JOB.hex()}/0/1", f"confirm/{JOB.hex()}/1/1"]
    call, _ = place.sent[0]
    assert (call.label, call.to) == ("attesters.confirm", place.session.network.contracts["Attesters"])
    told = "".join(place.told)
    assert "unit 0: ok, 9 fuel seconds, result bafkrei" in told and "probation" not in told


def test_attest__what_is_signed__is_shown_and_written_as_it_is_on_chain(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    found = json.loads(place.attest(1).read_text())
    (row,) = found["results"]
    assert (row["outcome"], row["fuel_seconds"], row["result"]) == ("ok", 9, f"{100:064x}")
    assert (found["job"], found["signer"], found["dry_run"]) == (NAME, KEYS[1], False)
    assert any("--attesters FILE checks" in text for text in place.told)


def test_attest__dry_run__shows_and_signs_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    place.session.dry_run = True
    place.session.unlocked = None
    report = place.attesting.attest(NAME, out=tmp_path / "out")
    assert report["results"] == [] and report["dry_run"] and not (tmp_path / "out").exists()
    assert place.told[0].startswith("unit 0: ok")


def test_attest__key_that_is_no_attester__is_refused_before_its_password(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    place.account, place.session.unlocked = Account.from_key(b"\x09" * 32), None
    error = refused(lambda: place.attesting.attest(NAME, attesters=place.set_file), "NOT_AN_ATTESTER")
    assert place.account.address.lower() in error.message


@pytest.mark.parametrize("change", [{"keys": KEYS, "quorum": 1}, {"keys": KEYS[:2], "quorum": 2}])
def test_set__of_another_job__is_refused_by_both(tmp_path: Path, change: dict[str, Any]) -> None:
    place = Place(tmp_path, (DONE,))
    file = place.attest(0)
    place.set_file.write_text(json.dumps(change))
    refused(lambda: place.attesting.attest(NAME, attesters=place.set_file), "WRONG_ATTESTERS", UsageError)
    refused(lambda: place.confirm(file), "WRONG_ATTESTERS", UsageError)
    assert place.sent == []


@pytest.mark.parametrize("judge", ["0x" + "00" * 20, "0x" + "ab" * 20])
def test_job__that_attesters_do_not_judge__is_refused_by_both(tmp_path: Path, judge: str) -> None:
    place = Place(tmp_path, (DONE,), judge=judge)
    refused(lambda: place.attesting.attest(NAME), "NOT_ATTESTED")
    refused(lambda: place.confirm(tmp_path / "gone"), "NOT_ATTESTED")


@pytest.mark.parametrize(
    ("units", "named", "code"),
    [
        ((OPEN,), (), "NOT_SUBMITTED"),
        ((OPEN,), (0,), "NOT_SUBMITTED"),
        ((DONE, OPEN), (1,), "NOT_SUBMITTED"),
        ((ENDED,), (), "ALREADY_ENDED"),
        ((DONE, ENDED), (0, 1), "ALREADY_ENDED"),
    ],
)
def test_attest__unit_without_a_result__is_refused(
    tmp_path: Path, units: tuple[Unit, ...], named: tuple[int, ...], code: str
) -> None:
    place = Place(tmp_path, units)
    error = refused(lambda: place.attesting.attest(NAME, named), code)
    assert error.retryable is (code == "NOT_SUBMITTED")


def test_attest__unit_that_the_job_has_not__is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no unit 7: 0 to 0"):
        Place(tmp_path, (DONE,)).attesting.attest(NAME, (7,))


def test_confirm__quorum_short__names_who_is_missing_and_sends_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE, DONE))
    both, first = place.attest(0), place.attest(1, 0)
    error = refused(lambda: place.confirm(both, first), "TOO_FEW_SIGNATURES")
    assert "unit 1 has 1 of 2 signatures; not of " + ", ".join(KEYS[1:]) in error.message
    assert place.sent == []
    assert place.confirm(both, first, units=(0,))["units"] == [0]


def test_confirm__one_attester_twice__counts_once(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    refused(lambda: place.confirm(place.attest(0), place.attest(0)), "TOO_FEW_SIGNATURES")


def test_confirm__result_that_changed_since__says_what_differs(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    files = place.attest(0), place.attest(1)
    place.view = place.viewed((replace(DONE, seconds=8),), place.view.terms)
    error = refused(lambda: place.confirm(*files), "TOO_FEW_SIGNATURES")
    assert "signs another fuel_seconds of unit 0 than the chain has" in error.message


def test_confirm__signature_for_another_network__says_so(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    files = place.attest(0), place.attest(1)
    place.session.network = replace(place.session.network, chain_id=place.session.network.chain_id + 1)
    error = refused(lambda: place.confirm(*files), "TOO_FEW_SIGNATURES")
    assert "or one for another network" in error.message


def test_confirm__strangers_file_beside_enough__is_told_and_left_out(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    good = place.attest(0), place.attest(2)
    place.account = Account.from_key(b"\x09" * 32)
    odd = tmp_path / "odd.json"
    place.attesting.attest(NAME, out=odd)
    assert place.confirm(odd, *good)["units"] == [0]
    assert any("none of the attesters" in text for text in place.told)


def test_confirm__payee_that_loses_money__is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE,))
    files = place.attest(0), place.attest(1)
    for payee in ("0x12", "0x" + "00" * 20, place.session.network.contracts["Attesters"]):
        refused(lambda payee=payee: place.confirm(*files, payee=payee), "BAD_ADDRESS", UsageError)
    assert place.sent == []


def test_attest__what_was_seen_is_named__nothing_else_is_signed(tmp_path: Path) -> None:
    """A unit is submitted between look and signature; or a reorganisation changes the result that was seen."""
    place = Place(tmp_path, (DONE, DONE))
    seen = [f"{100:064x}"]
    error = refused(lambda: place.attesting.attest(NAME, seen=seen), "NOT_SEEN")
    assert error.details["unit"] == 1
    report = place.attesting.attest(NAME, (0,), seen=seen)
    assert [row["unit"] for row in report["results"]] == [0]
    place.view.best = (UnitView(DONE, 0xBAD, Accused()), place.view.best[1])
    refused(lambda: place.attesting.attest(NAME, (0,), seen=seen), "NOT_SEEN")


FRESH = replace(DONE, flags=UnitFlag.FRESH, mark=1_000)


def test_confirm__newcomers_result__waits_for_its_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hearth.client.judges.attesting.time.sleep", lambda seconds: None)
    policy = words.pack_policy(replace(POLICY, fresh_delay=45))
    place = Place(tmp_path, (DONE, FRESH), policy=policy)
    report = place.confirm(place.attest(0), place.attest(1))
    assert report["units"] == [0, 1] and place.sent_at == 1_050
    assert any("unit 1 ran on a node on probation" in text and text.endswith("waiting") for text in place.told)


def test_confirm__newcomers_result_far_too_early__is_refused_with_its_second(tmp_path: Path) -> None:
    place = Place(tmp_path, (FRESH,), policy=words.pack_policy(replace(POLICY, fresh_delay=3_600)))
    error = refused(lambda: place.confirm(place.attest(0), place.attest(1)), "CONFIRM_EARLY")
    assert error.retryable and "1970-01-01 01:16:40 UTC" in error.message and "--timeout 3600s" in error.hint
    assert place.sent == []


def test_confirm__one_newcomers_result_far_too_early__the_others_are_sent(tmp_path: Path) -> None:
    """A newcomer that submits once an hour would keep every other node of an array from its pay."""
    place = Place(tmp_path, (DONE, FRESH, DONE), policy=words.pack_policy(replace(POLICY, fresh_delay=3_600)))
    error = refused(lambda: place.confirm(place.attest(0), place.attest(1)), "CONFIRM_EARLY")
    assert error.message.startswith("unit 1 ran on a node on probation")
    assert [key for _, key in place.sent] == [f"confirm/{JOB.hex()}/{unit}/1" for unit in (0, 2)]


def test_confirm__newcomers_results_near_and_far__each_is_sent_at_its_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    monkeypatch.setattr("hearth.client.judges.attesting.time.sleep", lambda seconds: held.append(place.holds_key))
    units = (replace(FRESH, mark=1_900), replace(FRESH, mark=1_010), replace(FRESH, mark=1_800), FRESH, DONE)
    place = Place(tmp_path, units, policy=words.pack_policy(replace(POLICY, fresh_delay=45)))
    error = refused(lambda: place.confirm(place.attest(0), place.attest(1)), "CONFIRM_EARLY")
    assert [key for _, key in place.sent] == [f"confirm/{JOB.hex()}/{unit}/1" for unit in (4, 3, 1)]
    # The last second of all, by which one more command confirms the rest.
    assert error.details["unit"] == 0
    # Whoever waits would keep every other command of the same key waiting.
    assert held and not any(held)


def test_confirm__one_that_the_chain_refuses__newcomers_are_waited_for_and_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hearth.client.judges.attesting.time.sleep", lambda seconds: None)
    place = Place(tmp_path, (DONE, FRESH), policy=words.pack_policy(replace(POLICY, fresh_delay=45)))
    place.refuses.add(f"confirm/{JOB.hex()}/0/1")
    refused(lambda: place.confirm(place.attest(0), place.attest(1)), "TX_REFUSED")
    assert [key for _, key in place.sent] == [f"confirm/{JOB.hex()}/1/1"] and place.sent_at == 1_050


def test_confirm__one_that_the_chain_refuses__the_others_are_sent(tmp_path: Path) -> None:
    place = Place(tmp_path, (DONE, DONE, DONE))
    files = place.attest(0), place.attest(1)
    place.refuses.add(f"confirm/{JOB.hex()}/0/1")
    refused(lambda: place.confirm(*files), "TX_REFUSED")
    assert [key for _, key in place.sent] == [f"confirm/{JOB.hex()}/{unit}/1" for unit in (1, 2)]
    assert "unit 0 is not confirmed: jobs: not submitted" in place.told


def test_confirm__units_that_are_not_submitted_any_more__are_left_out_and_named(tmp_path: Path) -> None:
    """Anybody may confirm one unit first, and one attester may name another that has no result."""
    place = Place(tmp_path, (DONE, DONE, DONE))
    files = place.attest(0), place.attest(1)
    place.view = place.viewed((ENDED, DONE, DONE), place.view.terms)
    assert place.confirm(*files)["units"] == [1, 2] and len(place.sent) == 2
    assert "unit 0 is left out: its state is done" in place.told
    place.view = place.viewed((ENDED, ENDED, ENDED), place.view.terms)
    refused(lambda: place.confirm(*files), "ALREADY_ENDED")
