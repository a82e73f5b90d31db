"""Keys, money and files of prepared calls, over the real contracts: what an account has, pays and is asked to sign."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from hearth.base.errors import ConfigError, FundsError, HearthError, RefusedError, UsageError
from hearth.chain import keys
from hearth.client import Client, doctor
from hearth.client.explain.explaining import explain, lines_of, rows_of
from hearth.client.sending import send_file
from hearth.config.settings import Settings
from tests.kit import build
from tests.kit.evm_chain import IN_BOTH, IN_TOKEN, RealMarket, Shop
from tests.kit.world import ETHER
from tools import schemas

FRIEND = "0x" + "fe" * 20


def refused(call: Any, code: str, kind: type[HearthError]) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def credit(shop: Shop) -> int:
    """Let the submitter have some credit in Escrow; return it."""
    shop.client.jobs.cancel(shop.post())
    return int(shop.world.credit(to_checksum_address(shop.market.dev)))


# ---- keys ----


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(keys, "SCRYPT_N", 1 << 10)
    (tmp_path / "password").write_text("correct horse battery")
    (tmp_path / "password").chmod(0o600)
    return tmp_path


def test_new__key__is_a_private_file_that_the_list_and_show_know(home: Path) -> None:
    client = Client(Settings(home=home / "home", password_file=home / "password"))
    made = client.wallet.new("mine")
    schemas.validate(made)
    assert made["schema"] == "hearth.wallet/1" and made["name"] == "mine"
    file = home / "home" / "keys" / "mine.json"
    assert made["file"] == str(file) and stat.S_IMODE(file.stat().st_mode) == 0o600  # type: ignore[typeddict-item]
    assert client.wallet.show() == client.wallet.show("mine") == made
    other = client.wallet.new("other")
    listed = client.wallet.list()
    assert [one["name"] for one in listed["keys"]] == ["mine", "other"]
    assert listed["folder"] == str(home / "home" / "keys")
    assert [one["address"] for one in listed["keys"]] == [made["address"], other["address"]]  # type: ignore[typeddict-item]
    chosen = Client(Settings(home=home / "home", account="other"))
    assert chosen.wallet.show() == other
    refused(lambda: client.wallet.show("none"), "NO_ACCOUNT", ConfigError)
    with pytest.raises(ConfigError):
        client.wallet.show()


def test_new__password_that_is_asked_for__is_asked_twice(home: Path) -> None:
    said: list[str] = []

    def asking(*answers: str) -> Client:
        given = iter(answers)
        return Client(Settings(home=home / "home"), ask_password=lambda question: said.append(question) or next(given))  # type: ignore[func-returns-value]

    refused(lambda: asking("correct horse", "correct house").wallet.new("a"), "WRONG_PASSWORD", ConfigError)
    assert not (home / "home").exists()
    asking("correct horse", "correct horse").wallet.new("a")
    assert said[-2:] == ["new password of a", "new password of a, once more"]
    assert keys.unlock(keys.find_key(home / "home" / "keys", "a"), "correct horse").address
    refused(lambda: Client(Settings(home=home / "home")).wallet.new("b"), "NO_PASSWORD", ConfigError)


def test_new__dry_run__writes_nothing(home: Path) -> None:
    client = Client(Settings(home=home / "home", password_file=home / "password"), dry_run=True)
    assert client.wallet.new("mine") == {"schema": "hearth.wallet/1", "name": "mine", "dry_run": True}
    assert not (home / "home").exists()


def test_import_key__keystore_or_secret__is_the_same_account(home: Path) -> None:
    client = Client(Settings(home=home / "home", password_file=home / "password"))
    made: Any = client.wallet.new("mine")
    elsewhere = Client(Settings(home=home / "home2", password_file=home / "password"))
    (home / "old").write_text("correct horse battery")
    (home / "old").chmod(0o600)
    same: Any = elsewhere.wallet.import_key("again", made["file"], old_password_file=home / "old")
    assert (same["address"], same["name"]) == (made["address"], "again")
    third = Client(Settings(home=home / "home3", password_file=home / "password"))
    error = refused(lambda: third.wallet.import_key("b", made["file"]), "NO_PASSWORD", ConfigError)
    assert "old_password_file" in error.hint
    asked = Client(
        Settings(home=home / "home4", password_file=home / "password"), ask_password=lambda _: "correct horse battery"
    )
    third_one: Any = asked.wallet.import_key("c", made["file"])
    assert third_one["address"] == made["address"]
    phrase = home / "phrase"
    phrase.write_text("test test test test test test test test test test test junk")
    phrase.chmod(0o600)
    first: Any = third.wallet.import_key("zero", phrase)
    second: Any = third.wallet.import_key("one", phrase, index=1)
    assert first["address"] == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    assert second["address"] == "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"


# ---- money ----


@IN_BOTH
def test_balance__of_coin_asset_and_credit__each_by_its_name(market: RealMarket, shop: Shop) -> None:
    token = market.world.token is not None
    owed = credit(shop)
    coin = 5 * ETHER
    shop.market.chain.give(shop.market.dev, coin)
    report = shop.client.wallet.balance("dev")
    schemas.validate(report)
    asset = shop.client.session.market.asset_balance(shop.market.dev)
    assert report == {
        "schema": "hearth.balance/1",
        "network": "test",
        "address": shop.market.dev,
        "native": str(coin),
        "asset_symbol": "TEST" if token else "ETH",
        "asset": str(asset),
        "credit": str(owed),
        "text": {
            "native": "5 ETH",
            "asset": shop.client.session.amount(asset),
            "credit": shop.client.session.amount(owed),
        },
    }
    assert (asset == coin) is not token
    assert shop.client.wallet.balance(to_checksum_address(shop.market.dev)) == report
    assert shop.client.wallet.balance("provider")["address"] == shop.market.provider


def test_withdraw__credit__to_oneself_or_to_another(shop: Shop) -> None:
    owed, wallet = credit(shop), shop.client.wallet
    report = wallet.withdraw(amount="0.000000000000000005")
    schemas.validate(report)
    assert (report["amount"], report["to"], report["already_sent"]) == ("5", shop.market.dev, False)
    assert [one["action"] for one in report["transactions"]] == ["escrow.withdraw"]
    assert report["amount_text"] == shop.client.session.amount(5) and not report["dry_run"]
    assert shop.market.said("confirm")[-1].endswith(f" to {shop.market.dev}?")
    # To oneself it is no payment: the same again is another one.
    assert wallet.withdraw(amount="0.000000000000000005")["already_sent"] is False
    assert wallet.withdraw(to=to_checksum_address(FRIEND), amount="0.000000000000000007")["to"] == FRIEND
    assert shop.market.evm.balance(to_checksum_address(FRIEND)) == 7
    assert wallet.withdraw(to=FRIEND, amount="0.000000000000000007")["already_sent"] is True
    assert shop.market.evm.balance(to_checksum_address(FRIEND)) == 7
    error = refused(lambda: wallet.withdraw(amount="1"), "NO_CREDIT", FundsError)
    assert error.details["credit"] == str(owed - 17)
    refused(lambda: wallet.withdraw(to=FRIEND, amount="0"), "NO_CREDIT", FundsError)
    rest = wallet.withdraw(to=FRIEND)
    assert rest["amount"] == str(owed - 17) and not rest["already_sent"]
    assert shop.world.credit(to_checksum_address(shop.market.dev)) == 0
    error = refused(wallet.withdraw, "NO_CREDIT", FundsError)
    assert "there is nothing to withdraw" in error.message


def test_withdraw__one_base_unit_more_than_the_credit__is_refused_and_nothing_is_sent(shop: Shop) -> None:
    owed, sent = credit(shop), len(shop.market.chain.sent)
    amount = f"{Decimal(owed + 1).scaleb(-18):f}"
    error = refused(lambda: shop.client.wallet.withdraw(amount=amount), "NO_CREDIT", FundsError)
    assert error.details["credit"] == str(owed) and len(shop.market.chain.sent) == sent


def test_withdraw__without_coin_for_gas__is_refused(shop: Shop) -> None:
    credit(shop)
    shop.market.chain.give(shop.market.dev, 5)
    for how in ({}, {"to": FRIEND, "amount": "0.000000000000000007"}):
        error = refused(lambda: shop.client.wallet.withdraw(**how), "FUNDS_SHORT", FundsError)  # noqa: B023
        assert "withdrawing" in error.message


@pytest.mark.parametrize(
    ("market", "amount", "symbol"),
    [(False, "1.5", "ETH"), (True, "1.5", "TEST"), (True, "1.5 ETH", "ETH")],
    indirect=["market"],
)
def test_send__coin_or_token__arrives_and_is_reported(market: RealMarket, amount: str, symbol: str) -> None:
    report = market.client.wallet.send(FRIEND, amount)
    schemas.validate(report)
    assert (report["asset"], report["amount"], report["amount_text"]) == (symbol, str(3 * ETHER // 2), f"1.5 {symbol}")
    assert (report["from"], report["to"], report["already_sent"], report["dry_run"]) == (
        market.dev,
        FRIEND,
        False,
        False,
    )
    got = market.evm.balance(to_checksum_address(FRIEND))
    if symbol == "TEST":
        assert market.world.token is not None
        got = market.world.token.call.balanceOf(FRIEND)
    assert got == 3 * ETHER // 2
    assert market.said("confirm") == [f"send 1.5 {symbol} to {FRIEND} on test?"]
    assert [facts["needed"] for kind, facts in market.told if kind == "confirm"] == [True]
    again = market.client.wallet.send(FRIEND, amount)
    assert again["already_sent"] and again["transactions"][0]["tx"] == report["transactions"][0]["tx"]
    assert not market.client.wallet.send(FRIEND, amount, again=True)["already_sent"]
    dry = market.open(dry_run=True).wallet.send(FRIEND, "3")
    assert dry["dry_run"] and dry["transactions"][0]["tx"] is None and len(market.said("confirm")) == 3


def test_send__what_cannot_be__is_refused_before_it_is_asked(market: RealMarket) -> None:
    wallet = market.client.wallet
    refused(lambda: wallet.send(market.dev, "1"), "BAD_ADDRESS", UsageError)
    refused(lambda: wallet.send(FRIEND, "0"), "BAD_AMOUNT", UsageError)
    assert market.said("confirm") == []
    error = refused(lambda: wallet.send(FRIEND, "1000000"), "FUNDS_SHORT", FundsError)
    assert "sending 1000000 ETH" in error.message and market.chain.sent == []
    # All but the gas of it.
    have = market.evm.balance(to_checksum_address(market.dev))
    market.chain.give(market.dev, have)
    refused(lambda: wallet.send(FRIEND, "999999.9999999999999999"), "FUNDS_SHORT", FundsError)


@IN_TOKEN
def test_send__token_that_the_account_lacks__is_short_of_the_token(market: RealMarket) -> None:
    error = refused(lambda: market.client.wallet.send(FRIEND, "1000001"), "FUNDS_SHORT", FundsError)
    assert error.details["asset"] == "TEST" and error.details["short_by"] == str(ETHER)
    market.chain.give(market.dev, 5)
    error = refused(lambda: market.client.wallet.send(FRIEND, "1"), "FUNDS_SHORT", FundsError)
    assert error.details["asset"] == "ETH" and "the gas of sending 1 TEST takes" in error.message


def test_require_funds__to_the_last_wei__is_enough_and_one_less_is_not(market: RealMarket) -> None:
    session = market.client.session
    gas = 100 * session.market.port.fees().most
    market.chain.give(market.dev, 1_000 + gas)
    assert session.require_funds(market.dev, asset_units=1_000, gas=100, what="it") == {
        "asset": "1000",
        "gas": str(gas),
    }
    error = refused(
        lambda: session.require_funds(market.dev, asset_units=1_000, coin_units=1, gas=100, what="it"),
        "FUNDS_SHORT",
        FundsError,
    )
    assert error.message.startswith(f"{market.dev} holds ") and "it and its gas take" in error.message
    assert error.details == {
        "address": market.dev,
        "asset": "ETH",
        "chain_id": 31337,
        "have": str(1_000 + gas),
        "need": str(1_001 + gas),
        "short_by": "1",
    }


# ---- what a session knows ----


def test_session__explorer_gateways_and_stores__come_from_settings_and_network(market: RealMarket) -> None:
    session = market.client.session
    assert session.explorer("0x12") is None
    session.__dict__["network"] = replace(
        market.network, explorer="https://scan.test/", gateways=("https://b", "https://a")
    )
    assert session.explorer("0x12") == "https://scan.test/tx/0x12" and session.explorer(None) is None
    session.settings = replace(session.settings, gateways=("https://a",))
    assert session.gateways == ("https://a", "https://b")
    assert session.store_urls[1:] == ("gateway+https://a", "gateway+https://b")
    assert session.state.parent == market.home / "state" and session.state.name.startswith("31337-")


def test_password_file__of_a_program__is_named_or_lies_beside_the_key(market: RealMarket, tmp_path: Path) -> None:
    session = market.client.session
    key = session.key()
    assert session.password_file(key, "the worker") == market.home / "keys" / "dev.password"
    named = tmp_path / "named"
    session.settings = replace(session.settings, password_file=named)
    assert session.password_file(key, "the worker") == named
    session.settings = replace(session.settings, password_file=None)
    (market.home / "keys" / "dev.password").unlink()
    error = refused(lambda: session.password_file(key, "the worker"), "NO_PASSWORD", ConfigError)
    assert error.message == "the worker reads the password of dev from a file"


def test_meter__adds_up_what_moved(market: RealMarket) -> None:
    moved = market.client.session.meter("upload", 10)
    moved("a", 3)
    moved("b", 4)
    assert [facts for kind, facts in market.told if kind == "progress"] == [
        {"what": "upload", "done": 3, "total": 10},
        {"what": "upload", "done": 7, "total": 10},
    ]


def test_client__closed__closes_its_store_and_one_that_was_never_opened(market: RealMarket) -> None:
    with market.open() as client:
        assert client.dry_run is False and "dry_run" not in repr(client)
        _ = client.session.store
    market.open().close()
    assert repr(market.open(dry_run=True)).endswith(", dry_run=True>")
    with pytest.raises(TypeError, match="EvmChain speaks no JSON-RPC"):
        market.client.web3()


# ---- the doctor ----


def test_doctor__of_a_market_that_works__passes_and_names_what_it_saw(
    market: RealMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "see_engine", lambda: "engine 27.0")
    report = market.client.doctor()
    schemas.validate(report)
    assert [(row["name"], row["level"]) for row in report["checks"]] == [
        (name, "PASS") for name in ("settings", "network", "rpc", "account", "store", "docker")
    ]
    told = {row["name"]: row["detail"] for row in report["checks"]}
    assert told["network"] == "test, chain 31337" and f"block {market.chain.head().number}" in told["rpc"]
    assert told["account"] == f"{market.dev} holds 1000000 ETH, 0 ETH of credit" and report["result"] == "PASS"
    assert f"home={market.home}" in told["settings"] and "=None" not in told["settings"]


def test_doctor__account_or_engine_that_is_missing__warns_and_a_dead_chain_fails(
    market: RealMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_engine() -> str:
        raise ConfigError("no engine", hint="start it", code="NO_DOCKER")

    monkeypatch.setattr(doctor, "see_engine", no_engine)
    for name in ("dev", "provider"):
        (market.home / "keys" / f"{name}.json").unlink()
    report = market.open().doctor()
    levels = {row["name"]: row["level"] for row in report["checks"]}
    assert (levels["account"], levels["docker"], report["result"]) == ("WARN", "WARN", "WARN")
    assert {row["name"]: row["fix"] for row in report["checks"]}["docker"] == "start it"
    client = market.open()
    client.session.__dict__["network"] = replace(market.network, genesis_hash=bytes(32))
    report = client.doctor()
    assert [row["name"] for row in report["checks"]] == ["settings", "network", "rpc", "store", "docker"]
    assert report["result"] == "FAIL" and report["checks"][2]["level"] == "FAIL"


# ---- files of calls ----


def prepared(*reports: Any) -> str:
    return json.dumps([report["prepared"] for report in reports])


def test_send_file__calls_of_an_owner__are_told_sent_once_and_reported(market: RealMarket) -> None:
    workers, hot = market.client.workers, "0x" + "a1" * 20
    workers.register(hot, build.node(1).offer, b'{"a":1}', payout=market.provider, stake="5")
    node = market.client.session.market.node(1)  # type: ignore[arg-type]
    text = prepared(workers.add_stake(node, "2", print_tx=True), workers.exit(node, print_tx=True))
    sent = len(market.chain.sent)
    report = send_file(market.client.session, text)
    schemas.validate(report)
    fees = market.client.session.market.port.fees().most
    assert (report["from"], report["takes"], report["takes_text"]) == (market.provider, str(2 * ETHER), "2 ETH")
    assert int(report["gas_most"]) % fees == 0 and int(report["gas_most"]) // fees > 2 * 300_000 - 1
    assert [(one["function"], one["state"], one["contract"]) for one in report["calls"]] == [
        ("add_stake", "sent", "NodeRegistry"),
        ("exit_start", "sent", "NodeRegistry"),
    ]
    assert [one["tx"] for one in report["calls"]] == [one["tx"] for one in report["transactions"]]
    assert not report["already_sent"] and len(market.chain.sent) == sent + 2
    assert market.said("confirm")[-1].startswith(f"send 2 calls as {market.provider} on test, for 2 ETH and ")
    assert "Add 2 ETH to the stake of node 1" in market.said("note")
    again = send_file(market.client.session, text)
    assert again["already_sent"] and [one["state"] for one in again["calls"]] == ["sent_before"] * 2
    assert len(market.chain.sent) == sent + 2
    dry = send_file(market.open(dry_run=True).session, prepared(workers.add_stake(node, "3", print_tx=True)))
    assert dry["dry_run"] and [one["state"] for one in dry["calls"]] == ["tried"] and not dry["already_sent"]
    report = send_file(market.client.session, prepared(workers.add_stake(node, "4", print_tx=True)))
    assert market.said("confirm")[-1].startswith("send 1 call as ") and len(report["calls"]) == 1


@IN_TOKEN
def test_send_file__post_from_credit_in_a_token__goes_in_order(shop: Shop) -> None:
    credit(shop)
    report = shop.client.jobs.prepare({**Shop.JOB, "array": {"units": 2}}, use_credit=True)
    dry = send_file(shop.market.open(dry_run=True).session, json.dumps(report))
    assert [one["state"] for one in dry["calls"]] == ["tried", "not_tried"]
    told = shop.client.wallet.send_file(json.dumps(report))
    assert [(one["function"], one["state"], one["job"]) for one in told["calls"]] == [
        ("withdraw", "sent", None),
        ("post", "sent", report["job"]),
    ]
    assert [one["action"] for one in told["transactions"]] == ["escrow.withdraw", "token.approve", "jobs.post"]
    assert shop.market.said("posting")[-1] == f"posting job {report['job']}"
    # The chain has it: neither the post nor the withdrawal that was to pay for it is sent.
    again = shop.client.wallet.send_file(json.dumps(report))
    assert [one["state"] for one in again["calls"]] == ["posted_before"] * 2
    assert again["already_sent"] and again["transactions"] == [] and again["takes"] == "0"


def test_send_file__for_another_account_or_too_dear__is_refused(shop: Shop) -> None:
    report = shop.client.jobs.prepare(dict(Shop.JOB))
    other = shop.market.open(
        settings=replace(shop.market.settings, account="provider", origins={"account": "--account"})
    )
    error = refused(lambda: other.wallet.send_file(json.dumps(report)), "NOT_YOURS", RefusedError)
    assert error.message == f"the file is for {shop.market.dev}, and this account is {shop.market.provider}"
    data = report["prepared"][0]["data"]
    error = refused(lambda: shop.client.wallet.send_file(data), "BAD_TX", UsageError)
    assert "names no account" in error.message
    shop.market.chain.give(shop.market.dev, 10**12)
    refused(lambda: shop.client.wallet.send_file(json.dumps(report)), "FUNDS_SHORT", FundsError)
    assert shop.market.chain.sent == []


def test_explain__file_of_a_post__says_what_it_takes_and_every_term(shop: Shop) -> None:
    report = shop.client.jobs.prepare({**Shop.JOB, "array": {"units": 3}})
    told = explain(json.dumps(report), shop.market.network)
    schemas.validate(told)
    (one,) = told["calls"]
    assert (told["network"], told["chain_id"], one["function"], one["job"]) == ("test", 31337, "post", report["job"])
    assert one["what"] == f"Post a job of 3 units, which takes {report['escrow_text']}; what is not used comes back"
    rows = {row["name"]: row["text"] for row in one["rows"]}
    assert rows["pays at most"] == "0.036 ETH/h, billed fuel" and rows["time"] == "1m a unit, 3 attempts"
    assert rows["keeper fees"] == "at most 0.000072 ETH: 3 attempts a unit, of 0.000008 ETH"
    assert (rows["waits for"], rows["job"], "for its start" in rows) == ("nothing", report["job"], False)
    assert one["value"] == report["escrow"] and one["approve"] == "0" and one["approve_text"] is None
    assert one["terms"] and one["terms"]["units"] == "3" and one["terms"]["submitter"] == shop.market.dev
    alone = explain(report["prepared"][0]["data"], shop.market.network)["calls"][0]
    assert alone["from"] is None and alone["rows"] == one["rows"]
    lines = lines_of(one["what"], rows_of(one))
    assert lines[0] == one["what"] and lines[-1].split() == ["as", shop.market.dev]
    assert lines[1].split()[:2] == ["four", "words"]
