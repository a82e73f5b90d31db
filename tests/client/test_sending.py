"""`hearth wallet send FILE` on a scripted chain: what it refuses, what it sends, and that it sends nothing twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import ConfigError, FundsError, HearthError, RefusedError, UsageError
from hearth.chain import keys
from hearth.chain.port import Block, Call, Transaction
from hearth.client.prepared import Prepared
from hearth.client.reports import FileSending
from hearth.client.session import Session
from hearth.client.wallet import Wallet
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.market.calls import token_call
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, NodeId, Terms
from hearth.protocol.units import NATIVE, Asset
from tests.kit import build
from tests.kit.fake_chain import Effect, FakeChain

OTHER = "0x" + "0d" * 20
COIN = 10**18


class Desk:
    """An account on a chain that mines at once, whose market holds jobs, credit and approvals."""

    def __init__(self, home: Path, asset: Asset = NATIVE) -> None:
        home.mkdir(mode=0o700)
        self.home, self.chain = home, FakeChain()
        self.network = build.network(self.chain, asset=asset)
        self.me = keys.create_key(home / "keys", "me", "correct horse").address
        self.posted: set[bytes] = set()
        self.allowed: dict[str, int] = {}
        self.tokens, self.pays, self.paused = 0, 0, False
        self.notes: list[str] = []
        self.asked: list[str] = []
        self.chain.set_balance(self.me, COIN)
        jobs = codec("JobRegistry")
        self.chain.on_call(self.network.jobs, jobs.selector("load"), self._load)
        self.chain.on_call(self.network.jobs, jobs.selector("post"), self._post)
        self.chain.on_send(self.network.jobs, jobs.selector("post"), self._posted)
        if asset.address is not None:
            for name, answer in (("balanceOf", lambda: self.tokens), ("allowance", self._allowance)):
                selector = token_call(name, *[self.me] * (2 if name == "allowance" else 1))[:4]
                self.chain.on_call(
                    asset.address, selector, lambda call, block, answer=answer: encode(["uint256"], [answer()])
                )
            self.chain.on_send(asset.address, token_call("approve", self.me, 1)[:4], self._approved)
        take = self.chain.send_raw

        def send_raw(raw: bytes) -> bytes:
            tx_hash = take(raw)
            self.chain.mine()
            # What the first transaction brings is there once it is mined.
            self.chain.set_balance(self.me, self.chain.balance(self.me) + self.pays)
            self.pays = 0
            return tx_hash

        self.chain.send_raw = send_raw  # type: ignore[method-assign]

    def _load(self, call: Call, block: Block) -> bytes:
        told = codec("JobRegistry").decode_input(call.data)
        assert told is not None
        return encode(["uint256"] * 4, [int(told[1]["job_id"] in self.posted), 0, 0, 0])

    def _post(self, call: Call, block: Block) -> bytes:
        if self.paused:
            raise RefusedError("paused", reason="rules: posts are paused")
        return b""

    def _posted(self, tx: Transaction, block: Block) -> Effect:
        told = codec("JobRegistry").decode_input(tx.data)
        assert told is not None
        self.posted.add(formulas.job_id_of_words(self.network.job_chain_id, self.network.jobs, told[1]["terms"]))
        return Effect()

    def _allowance(self) -> int:
        return self.allowed.get(self.network.jobs, 0)

    def _approved(self, tx: Transaction, block: Block) -> Effect:
        self.allowed["0x" + tx.data[16:36].hex()] = int.from_bytes(tx.data[36:68], "big")
        return Effect()

    # ---- the user ----

    def session(self, *, dry_run: bool = False, account: str | None = None, yes: bool = True) -> Session:
        def tell(kind: str, facts: Any) -> None:
            self.notes.append(f"{kind} {facts.get('text', '')}")
            if kind == "confirm" and not yes:
                raise ConfigError("no", code="NOT_CONFIRMED")

        def password(question: str) -> str:
            self.asked.append(question)
            return "correct horse"

        settings = Settings(home=self.home, account=account)
        session = Session(settings, port=self.chain, ask_password=password, dry_run=dry_run, tell=tell)
        session.__dict__["network"] = self.network
        session._checked = True
        return session

    def send(self, text: str, **how: Any) -> FileSending:
        return Wallet(self.session(**how)).send_file(text)

    def refused(self, text: str, **how: Any) -> HearthError:
        """Return the refusal of a file, of which nothing was signed."""
        before = self.nonce
        with pytest.raises(HearthError) as caught:
            self.send(text, **how)
        assert self.nonce == before
        return caught.value

    @property
    def nonce(self) -> int:
        return self.chain.nonce(self.me, pending=True)

    @property
    def calls(self) -> Any:
        return self.session().unchecked_market.calls

    # ---- files ----

    def file(self, *calls: tuple[Call, str], sender: str | None = None) -> str:
        paid = self.network.asset.address is None

        def one(call: Call, key: str) -> Any:
            told = codec("JobRegistry").decode_input(call.data) if call.to == self.network.jobs else None
            takes = 0 if paid or told is None or told[0] != "post" else formulas.escrow_at_post(self.terms())
            return Prepared(call.label, sender or self.me, call, takes, key).document(self.network)

        return json.dumps({"prepared": [one(call, key) for call, key in calls]})

    def terms(self) -> Terms:
        return build.terms(submitter=self.me, ceiling=10**22)

    @property
    def job(self) -> JobId:
        return formulas.job_id(self.network.job_chain_id, self.network.jobs, self.terms())

    def post(self, key: str | None = None) -> tuple[Call, str]:
        return self.calls.post(self.terms()), key or f"post/{self.job.hex()}"

    def withdrawal(self, amount: int = 5, key: str = "withdraw/1") -> tuple[Call, str]:
        return self.calls.withdraw(self.me, amount), key


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(keys, "SCRYPT_N", 1 << 10)
    return Desk(tmp_path / "home")


@pytest.fixture
def token_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(keys, "SCRYPT_N", 1 << 10)
    return Desk(tmp_path / "home", build.TOKEN)


def states(report: FileSending) -> list[str]:
    return [one["state"] for one in report["calls"]]


def test_send_file__a_post__is_told_asked_for_and_posted_as_its_job(desk: Desk) -> None:
    report = desk.send(desk.file(desk.post()))

    assert desk.job in desk.posted and desk.nonce == 1 and states(report) == ["sent"]
    assert report["calls"][0]["job"] == "0x" + desk.job.hex() and report["already_sent"] is False
    assert report["takes"] == str(formulas.escrow_at_post(desk.terms())) and int(report["gas_most"]) > 0
    said = "\n".join(desk.notes)
    assert "Post a job of one unit" in said and "four words" in said and "0x" + desk.job.hex() in said
    (asked,) = [note for note in desk.notes if note.startswith("confirm")]
    assert report["takes_text"] in asked and report["gas_most_text"] in asked and desk.me in asked


def test_send_file__the_same_file_again__sends_nothing(desk: Desk) -> None:
    stake = desk.file((desk.calls.add_stake(NodeId(7), desk.me, 9), "stake/7/9/0"))
    for text in (desk.file(desk.withdrawal()), stake):
        first, before = desk.send(text), desk.nonce
        again = desk.send(text)
        assert (states(first), states(again)) == (["sent"], ["sent_before"]) and desk.nonce == before
        assert again["already_sent"] is True and again["calls"][0]["tx"] == first["calls"][0]["tx"]
    # Another file of such a call is another effect, and within one file an effect is one.
    assert states(desk.send(desk.file(desk.withdrawal(key="withdraw/2")))) == ["sent"]
    twice = desk.file(desk.withdrawal(key="withdraw/3"), desk.withdrawal(key="withdraw/3"))
    assert states(desk.send(twice)) == ["sent"] and desk.nonce == 4


def test_send_file__what_its_funds_were_spent_for__is_not_refused_for_them(desk: Desk) -> None:
    text = desk.file(desk.withdrawal())
    desk.send(text)
    desk.chain.set_balance(desk.me, 0)

    assert states(desk.send(text)) == ["sent_before"]


def test_send_file__a_key_of_the_senders_own_calls__hides_none_of_them(desk: Desk) -> None:
    post = f"post/{desk.job.hex()}"
    desk.send(desk.file(desk.withdrawal(key=post)))
    assert states(desk.send(desk.file(desk.post()))) == ["sent"] and desk.job in desk.posted


def test_send_file__for_another_account__is_refused(desk: Desk) -> None:
    other = keys.create_key(desk.home / "keys", "other", "correct horse").address
    for text, account in (
        (desk.file((desk.calls.withdraw(OTHER, 5), "key"), sender=OTHER), "me"),
        (desk.file(desk.withdrawal()), "other"),
        (desk.file(desk.withdrawal()), other),
    ):
        error = desk.refused(text, account=account)
        assert error.code == "NOT_YOURS" and "--account" in error.hint and not desk.asked
    assert desk.chain.nonce(other) == 0
    # Of several keys the file's own is taken.
    assert states(desk.send(desk.file(desk.withdrawal()))) == ["sent"]


def test_send_file__a_job_that_is_posted__sends_nothing_and_asks_nothing(desk: Desk) -> None:
    desk.posted.add(desk.job)
    desk.chain.set_balance(desk.me, 0)
    report = desk.send(desk.file(desk.withdrawal(key="credit/1"), desk.post()), yes=False)

    assert states(report) == ["posted_before", "posted_before"] and report["already_sent"] is True
    assert not desk.asked and desk.nonce == 0 and report["takes"] == "0"
    # A withdrawal behind it pays for nothing of it.
    desk.chain.set_balance(desk.me, COIN)
    assert states(desk.send(desk.file(desk.post(), desk.withdrawal()))) == ["posted_before", "sent"]


@pytest.mark.parametrize("text", ["", "{}", "0x12345678", "[1]"])
def test_send_file__no_file_of_calls__is_refused(desk: Desk, text: str) -> None:
    assert desk.refused(text).code == "BAD_TX"
    assert "data alone" in desk.refused("0x" + desk.withdrawal()[0].data.hex()).message


def test_send_file__what_explain_refuses__is_refused(desk: Desk) -> None:
    document = json.loads(desk.file(desk.post()))["prepared"][0]
    for changes in ({"value": "1"}, {"from": OTHER}, {"more": 1}, {"key": 5}):
        error = desk.refused(json.dumps({**document, **changes}))
        assert isinstance(error, UsageError) and error.code == "BAD_TX"
    for changes in ({"chain_id": 1}, {"to": OTHER}):
        assert desk.refused(json.dumps({**document, **changes})).code == "WRONG_MARKET"
    assert desk.refused(desk.file((desk.calls.withdraw(OTHER, 5), "key"))).code == "BAD_TX"


def test_send_file__short_of_funds__is_refused_and_credit_that_is_withdrawn_first_counts(desk: Desk) -> None:
    escrow = formulas.escrow_at_post(desk.terms())
    desk.chain.set_balance(desk.me, escrow // 2)
    assert isinstance(desk.refused(desk.file(desk.post())), FundsError)
    desk.pays = escrow
    assert states(desk.send(desk.file(desk.withdrawal(escrow), desk.post()))) == ["sent", "sent"]
    assert desk.job in desk.posted


def test_send_file__what_the_contract_refuses__is_said_before_anything_is_sent(desk: Desk) -> None:
    desk.paused = True
    for calls in ((desk.post(),), (desk.withdrawal(), desk.post())):
        error = desk.refused(desk.file(*calls))
        assert isinstance(error, RefusedError) and "paused" in error.message


def test_send_file__refused_half_way__goes_on_from_there(desk: Desk) -> None:
    def pause(tx: Transaction, block: Block) -> Effect:
        desk.paused = True
        return Effect()

    desk.chain.on_send(desk.network.escrow, desk.withdrawal()[0].data[:4], pause)
    both = desk.file(desk.withdrawal(), desk.post())
    with pytest.raises(RefusedError) as caught:
        desk.send(both)
    assert "the same command goes on" in caught.value.message and desk.nonce == 1
    desk.paused = False
    assert states(desk.send(both)) == ["sent_before", "sent"] and desk.nonce == 2


def test_send_file__in_a_token__approves_just_what_is_taken_and_only_where_less_is(token_desk: Desk) -> None:
    desk, escrow = token_desk, formulas.escrow_at_post(token_desk.terms())
    approval = (desk.calls.approve(desk.network.jobs, escrow), "approve/1")
    assert desk.refused(desk.file(approval, desk.post())).code == "FUNDS_SHORT"
    desk.tokens = escrow
    dry = desk.send(desk.file(approval, desk.post()), dry_run=True)
    assert states(dry) == ["not_tried"] and desk.nonce == 0 and not desk.posted
    report = desk.send(desk.file(approval, desk.post()))
    assert [one["action"] for one in report["transactions"]] == ["token.approve", "jobs.post"]
    assert desk.allowed == {desk.network.jobs: escrow} and desk.nonce == 2 and states(report) == ["sent"]
    # Without the approval in the file the call's own word for it does.
    desk.posted.clear()
    assert states(desk.send(desk.file(desk.post()))) == ["sent_before"] and desk.nonce == 2


def test_send_file__in_a_token_with_approval_there__sends_the_post_alone(token_desk: Desk) -> None:
    desk = token_desk
    desk.tokens = desk.allowed[desk.network.jobs] = formulas.escrow_at_post(desk.terms())
    report = desk.send(desk.file(desk.post()))
    assert [one["action"] for one in report["transactions"]] == ["jobs.post"]


def test_send_file__not_confirmed_or_a_dry_run__signs_nothing(desk: Desk) -> None:
    text = desk.file(desk.withdrawal(), desk.post())
    assert desk.refused(text, yes=False).code == "NOT_CONFIRMED"
    report = desk.send(text, dry_run=True)
    assert states(report) == ["tried", "tried"] and report["already_sent"] is False
    assert desk.nonce == 0 and not desk.asked


def test_send_file__a_cancellation__names_its_job_and_is_sent(desk: Desk) -> None:
    packed = words.pack_terms(replace(desk.terms()))
    report = desk.send(desk.file((desk.calls.cancel(packed, 0), f"cancel/{desk.job.hex()}")))
    assert report["calls"][0]["job"] == "0x" + desk.job.hex() and states(report) == ["sent"]
