"""Money that a user moves, on a real chain with both assets: sends, the faucet, and what is signed elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from hearth.client.prepared import Prepared
from hearth.storage import cid as cids
from tests.kit.town import EXAMPLES, ROOT, Said, Town, example_text, hearth, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ETHER = 10**18
FRIEND = "0x" + "fe" * 20


@pytest.fixture(scope="module", params=["native", "erc20"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market without workers."""
    with town(tmp_path_factory.mktemp(request.param), erc20=request.param == "erc20") as made:
        yield made


def _send(place: Town, *arguments: str) -> Said:
    return place.hearth("wallet", "send", *arguments, "--yes", "--json")


def test_wallet_send__asset_and_coin__arrive_for_amount_and_fee(place: Town) -> None:
    market, mine = place.session.market, place.session.key().address
    for amount in ("0.25", "0.5 ETH"):
        native = place.session.asset.address is None or "ETH" in amount
        balance = market.port.balance if native else market.asset_balance
        mine_before, theirs_before, coin = balance(mine), balance(FRIEND), market.port.balance(mine)
        told = _send(place, FRIEND, amount)
        assert told.code == 0, told.out + told.err
        units, fee = int(told.json["amount"]), int(told.json["transactions"][0]["fee"])
        assert units in (ETHER // 4, ETHER // 2) and told.json["already_sent"] is False
        assert balance(FRIEND) - theirs_before == units
        assert mine_before - balance(mine) == units + (fee if native else 0)
        assert coin - market.port.balance(mine) == fee + (units if native else 0)


def test_wallet_send__the_same_again__is_found_and_again_sends_once_more(place: Town) -> None:
    held = place.session.market.asset_balance
    before = held(FRIEND)
    first = _send(place, FRIEND, "0.125")
    second = _send(place, to_checksum_address(FRIEND), "0.1250")
    assert second.code == 0 and second.json["already_sent"] is True
    assert second.json["transactions"][0]["tx"] == first.json["transactions"][0]["tx"]
    assert "nothing was sent now" in place.hearth("wallet", "send", FRIEND, "0.125", "--yes").out
    assert held(FRIEND) - before == ETHER // 8
    third = _send(place, FRIEND, "0.125", "--again")
    assert third.json["already_sent"] is False and held(FRIEND) - before == ETHER // 4
    assert _send(place, FRIEND, "0.125").json["transactions"][0]["tx"] == third.json["transactions"][0]["tx"]
    assert held(FRIEND) - before == ETHER // 4


@pytest.mark.parametrize("place", ["native"], indirect=True)
@pytest.mark.parametrize("point", ["m7.signed", "m8.broadcast", "m9.mined"])
def test_wallet_send__killed_and_called_again__pays_once(place: Town, point: str) -> None:
    friend = f"0x{point.encode().hex():0>40}"
    command = [sys.executable, "-m", "hearth.cli", "wallet", "send", friend, "0.5", "--yes"]
    environ = {**os.environ, "HEARTH_HOME": str(place.home), "PYTHONPATH": str(ROOT), "HEARTH_FAILPOINT": point}
    killed = subprocess.run(command, env=environ, capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # Neither the same call pays again, nor one that asks for another send without knowing of this one.
    blind = _send(place, friend, "0.5", "--again")
    assert blind.code == 4 and blind.error["code"] == "TX_PENDING", blind.out
    again = _send(place, friend, "0.5")
    assert again.code == 0 and again.json["already_sent"] is True, again.out
    assert place.session.market.port.balance(friend) == ETHER // 2
    assert _send(place, friend, "0.5").json["already_sent"] is True
    assert place.session.market.port.balance(friend) == ETHER // 2


@pytest.mark.parametrize("place", ["native"], indirect=True)
def test_wallet_send__again_before_the_last_is_mined__refused(place: Town) -> None:
    friend = "0x" + "ab" * 20
    with place.still():
        slow = _send(place, friend, "0.5", "--timeout", "1s")
        assert slow.code == 4 and slow.error["code"] == "TX_PENDING"
        again = _send(place, friend, "0.5", "--again")
        assert again.code == 4 and again.error["code"] == "TX_PENDING" and "without --again" in again.error["hint"]
    assert _send(place, friend, "0.5").json["already_sent"] is True
    assert place.session.market.port.balance(friend) == ETHER // 2


def test_wallet_send__what_cannot_or_should_not_go__refused_before_anything_is_signed(place: Town) -> None:
    port, mine = place.session.market.port, place.session.key().address
    network = place.session.network
    before = (port.nonce(mine, pending=True), place.session.market.asset_balance(mine))
    mistyped = to_checksum_address(FRIEND)[:-1] + to_checksum_address(FRIEND)[-1].swapcase()
    rows = [
        (("0x" + "00" * 20, "1"), 2, "BAD_ADDRESS", "zero address"),
        ((mine, "1"), 2, "BAD_ADDRESS", "this account itself"),
        ((network.jobs, "1"), 2, "BAD_ADDRESS", "this market's JobRegistry: what is sent there is lost"),
        ((network.escrow, "1 ETH"), 2, "BAD_ADDRESS", "this market's Escrow"),
        ((mistyped, "1"), 2, "BAD_ADDRESS", "mistyped"),
        (("0x12", "1"), 2, "BAD_ADDRESS", "is no address"),
        ((FRIEND, "0"), 2, "BAD_AMOUNT", "nothing"),
        ((FRIEND, "1 DOGE"), 2, "BAD_AMOUNT", "DOGE"),
        ((FRIEND, "99999999"), 6, "FUNDS_SHORT", "short by"),
        ((FRIEND, "99999999 ETH"), 6, "FUNDS_SHORT", "short by"),
    ]
    if network.asset.address is not None:
        rows.append(((network.asset.address, "1"), 2, "BAD_ADDRESS", "DEV token"))
    else:
        # The whole balance leaves nothing for the fee.
        whole = place.hearth("wallet", "balance", "--json").json["native"]
        rows.append(((FRIEND, f"{int(whole) // ETHER}.{int(whole) % ETHER:018}"), 6, "FUNDS_SHORT", "and its gas"))
    for arguments, code, name, words in rows:
        told = _send(place, *arguments)
        assert (told.code, told.error["code"]) == (code, name), (arguments, told.out)
        assert words in told.error["message"] and told.error["hint"]
    unasked = place.hearth("wallet", "send", FRIEND, "0.33", "--json")
    assert (unasked.code, unasked.error["code"]) == (3, "NOT_CONFIRMED")
    dry = place.hearth("wallet", "send", FRIEND, "0.33", "--dry-run", "--json")
    assert dry.code == 0 and dry.json["transactions"][0]["tx"] is None
    assert (port.nonce(mine, pending=True), place.session.market.asset_balance(mine)) == before


@pytest.mark.parametrize("place", ["native"], indirect=True)
def test_wallet_withdraw__to_where_it_would_be_lost__refused(place: Town) -> None:
    for lost in (place.session.network.jobs, "0x" + "00" * 20):
        told = place.hearth("wallet", "withdraw", "--to", lost, "--json")
        assert (told.code, told.error["code"]) == (2, "BAD_ADDRESS")


def test_devnet_fund__default_and_named__arrive(place: Town) -> None:
    market, mine = place.session.market, place.session.key().address
    before = (market.port.balance(mine), market.asset_balance(mine))
    told = place.hearth("devnet", "fund", "--json")
    assert told.code == 0, told.out
    assert market.port.balance(mine) - before[0] == 100 * ETHER
    assert market.asset_balance(mine) - before[1] == (100 if market.network.asset.address is None else 1_000) * ETHER
    assert len(told.json["transactions"]) == len(told.json["given"])
    other = "0x" + "77" * 20
    assert place.hearth("devnet", "fund", other, "7.5").out == f"gave 7.5 {place.session.asset.symbol} to {other}\n"
    assert place.hearth("devnet", "fund", other, "20000 ETH").code == 0  # more than the faucet was born with
    coin, asset = market.port.balance(other), market.asset_balance(other)
    assert (coin, asset) in ((20_007 * ETHER + ETHER // 2,) * 2, (20_000 * ETHER, 7 * ETHER + ETHER // 2))
    assert place.hearth("devnet", "fund", other, "1", "--dry-run").out.startswith("would give 1 ")
    assert market.asset_balance(other) == asset
    assert place.hearth("devnet", "fund", other, "0", "--json").error["code"] == "BAD_AMOUNT"


def test_devnet_fund__no_chain_runs__says_how_to_start_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    told = hearth(home, "devnet", "fund", FRIEND, "--json")
    assert (told.code, told.error["code"], told.error["hint"]) == (3, "NO_DEVNET", "hearth devnet up")


# ---- transactions to sign elsewhere ----


def _sign_elsewhere(place: Town, account: LocalAccount, prepared: dict[str, str]) -> None:
    """Sign and send one prepared transaction with a key that this home has never seen, as any other wallet does."""
    port = place.session.market.port
    fees = port.fees()
    fields = {
        "type": 2,
        "chainId": prepared["chain_id"],
        "nonce": port.nonce(account.address),
        "to": to_checksum_address(prepared["to"]),
        "data": prepared["data"],
        "value": int(prepared["value"]),
        "gas": 500_000,
        "maxFeePerGas": 2 * fees.base_fee + fees.priority_fee,
        "maxPriorityFeePerGas": fees.priority_fee,
    }
    tx_hash = port.send_raw(bytes(account.sign_transaction(fields).raw_transaction))
    end = time.monotonic() + 30
    while (receipt := port.receipt(tx_hash)) is None:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert receipt.ok, prepared["action"]


def test_submit__print_tx__stored_here_and_posted_from_elsewhere(place: Town) -> None:
    other = Account.from_key(b"\x42" * 32)
    job = ("submit", str(EXAMPLES / "digits" / "job.yaml"), "--anyway", "--account", other.address, "--print-tx")
    market = place.session.market
    assert place.hearth("devnet", "fund", other.address).code == 0
    planned = place.hearth(*job, "--dry-run", "--json")
    assert planned.code == 0 and planned.json["schema"] == "hearth.plan/1"
    assert not (place.session.state / "jobs").exists()
    told = place.hearth(*job, "--json")
    assert told.code == 0, told.out + told.err
    report = told.json
    approval = [] if market.network.asset.address is None else ["token.approve"]
    assert [one["action"] for one in report["prepared"]] == [*approval, "jobs.post"]
    assert {one["from"] for one in report["prepared"]} == {report["from"]} == {other.address.lower()}
    assert report["already_posted"] is False and "short of" not in told.err
    # Everything that it names is in the store, nothing was sent, and no journal of transactions thinks so.
    for one in report["stored"]:
        assert place.session.store.has(cids.parse(one["cid"])), one
    assert {one["src"] for one in report["stored"]} >= {"spec", "./digits.wasm"}
    assert market.port.nonce(other.address, pending=True) == 0
    assert not list(place.home.rglob(f"tx-*-{other.address.lower()[2:10]}.db"))
    assert place.hearth("job", "show", report["job"], "--json").error["code"] == "NOT_FOUND"
    # Printed twice it is the same job: whoever signs both posts it once.
    assert place.hearth(*job, "--json").json["prepared"] == report["prepared"]
    shown = place.hearth(*job)
    assert all(one["data"] in shown.out for one in report["prepared"])
    assert f"hearth job wait {report['job'][:14]}" in shown.out
    for one in report["prepared"]:
        _sign_elsewhere(place, other, one)
    posted = place.hearth("job", "show", report["job"], "--json").json
    assert (posted["submitter"], posted["escrow"]) == (other.address.lower(), report["escrow"])
    assert place.hearth("job", "spec", report["job"], "--json").json["name"] == "digits"
    done = place.hearth(*job, "--json").json
    assert (done["already_posted"], done["job"], done["prepared"]) == (True, report["job"], [])


def test_submit__print_tx_of_an_own_key__submit_posts_that_very_job_and_credit_comes_first(place: Town) -> None:
    job = ("submit", str(EXAMPLES / "digits" / "job.yaml"), "--anyway", "--json")
    mine, port = place.session.key().address, place.session.market.port
    nonce = port.nonce(mine)
    prepared = place.hearth(*job, "--print-tx").json
    assert port.nonce(mine, pending=True) == nonce
    # What was only prepared is looked at again before it is posted: no worker is there to take it.
    refused = place.hearth(*(word for word in job if word != "--anyway"))
    assert (refused.code, refused.error["code"]) == (8, "NO_WORKER") and port.nonce(mine, pending=True) == nonce
    told = place.hearth(*job)
    assert told.json["job"] == prepared["job"] and "prepared before" in told.err
    assert told.json["already_posted"] is False
    assert port.nonce(mine) == nonce + len(prepared["prepared"])
    assert place.hearth(*job).json["transactions"] == [] and port.nonce(mine) == nonce + len(prepared["prepared"])
    assert place.hearth("job", "cancel", prepared["job"]).code == 0
    again = place.hearth(*job, "--print-tx", "--again", "--use-credit").json
    assert again["job"] != prepared["job"] and again["prepared"][0]["action"] == "escrow.withdraw"


def test_submit__print_tx__what_cannot_be__refused_or_warned_of(place: Town) -> None:
    job = ("submit", str(EXAMPLES / "digits" / "job.yaml"), "--anyway", "--print-tx")
    waiting = place.hearth(*job, "--wait", "--json")
    assert (waiting.code, waiting.error["code"]) == (2, "USAGE") and "hearth job wait" in waiting.error["hint"]
    lost = place.hearth(*job, "--account", place.session.network.escrow, "--json")
    assert (lost.code, lost.error["code"]) == (2, "BAD_ADDRESS")
    poor = place.hearth(*job, "--account", "0x" + "99" * 20, "--json")
    assert poor.code == 0 and "is short of" in poor.err


# ---- the same files, sent with a key of this machine ----


def _prepared(place: Town, folder: Path, name: str) -> tuple[Path, dict[str, Any]]:
    """Prepare a job of its own name elsewhere; return the file and what it holds."""
    job = folder / f"{name}.yaml"
    job.write_text(example_text("digits", folder).replace("name: digits", f"name: {name}"))
    told = place.hearth("submit", str(job), "--anyway", "--print-tx", "--json")
    assert told.code == 0, told.out + told.err
    path = folder / f"{name}.json"
    path.write_text(told.out)
    return path, told.json


def _credit(place: Town, folder: Path) -> int:
    """Return the account's credit, of a job that it posted and cancelled, if need be."""
    market, mine = place.session.market, place.session.key().address
    if not market.credit(mine):
        path, report = _prepared(place, folder, "credited")
        assert _send(place, str(path)).code == 0 and place.hearth("job", "cancel", report["job"]).code == 0
    return market.credit(mine)


def test_wallet_send__a_file_of_submit__posts_the_job_that_explain_names_and_once(place: Town, tmp_path: Path) -> None:
    path, report = _prepared(place, tmp_path, "filed")
    port, mine = place.session.market.port, place.session.key().address
    before = port.nonce(mine)
    explained = place.hearth("job", "explain", str(path), "--json").json["calls"][-1]
    assert explained["job"] == report["job"]
    unasked = place.hearth("wallet", "send", str(path), "--json")
    assert (unasked.code, unasked.error["code"]) == (3, "NOT_CONFIRMED")
    assert _send(place, str(path), "--dry-run").code == 0 and port.nonce(mine, pending=True) == before
    foreign = _send(place, str(path), "--account", "keeper")
    assert (foreign.code, foreign.error["code"]) == (5, "NOT_YOURS")
    told = place.hearth("wallet", "send", str(path), "--yes")
    assert told.code == 0 and explained["what"] in told.err and explained["four_words"] in told.err
    assert f"next: hearth job show {report['job'][:14]}" in told.out
    posted = place.hearth("job", "show", report["job"], "--json").json
    assert (posted["job"], posted["submitter"]) == (explained["job"], mine)
    assert port.nonce(mine) == before + len(report["prepared"])
    again = _send(place, str(path))
    assert again.code == 0 and again.json["already_sent"] is True
    assert [one["state"] for one in again.json["calls"]] == ["posted_before"]
    assert port.nonce(mine, pending=True) == before + len(report["prepared"])
    # Whoever submits the same job file finds the job that was posted from the file of calls.
    assert place.hearth("submit", str(tmp_path / "filed.yaml"), "--anyway", "--json").json["already_posted"] is True


@pytest.mark.parametrize("place", ["native"], indirect=True)
def test_wallet_send__a_withdrawal_as_the_page_saves_it__pays_once(place: Town, tmp_path: Path) -> None:
    credit, mine = _credit(place, tmp_path), place.session.key().address
    market = place.session.market
    call = market.calls.withdraw(mine, credit)
    key = f"withdraw/{mine}/{market.port.head().number}"
    path = tmp_path / "hearth-withdraw.json"
    path.write_text(json.dumps(Prepared(call.label, mine, call, 0, key).document(market.network), indent=2) + "\n")
    for already in (False, True):
        told = _send(place, str(path))
        assert told.code == 0 and told.json["already_sent"] is already, told.out
        assert market.credit(mine) == 0
    command = [sys.executable, "-m", "hearth.cli", "wallet", "send", "-", "--yes", "--json"]
    environ = {**os.environ, "HEARTH_HOME": str(place.home), "PYTHONPATH": str(ROOT)}
    piped = subprocess.run(command, env=environ, input=path.read_bytes(), capture_output=True, timeout=120, check=True)
    assert json.loads(piped.stdout)["already_sent"] is True


@pytest.mark.parametrize("place", ["native"], indirect=True)
@pytest.mark.parametrize(
    "point", ["m8.broadcast@escrow.withdraw", "m9.mined@escrow.withdraw", "m8.broadcast@jobs.post"]
)
def test_wallet_send__killed_between_two_calls__goes_on_and_pays_once(place: Town, tmp_path: Path, point: str) -> None:
    _credit(place, tmp_path)
    path, market = tmp_path / "both.json", place.session.market
    name = "both-" + point.replace(".", "-").replace("@", "-")
    _prepared(place, tmp_path, name)
    job = ("submit", str(tmp_path / f"{name}.yaml"), "--anyway", "--print-tx", "--again", "--use-credit", "--json")
    report = place.hearth(*job).json
    path.write_text(json.dumps(report))
    assert [one["action"] for one in report["prepared"]] == ["escrow.withdraw", "jobs.post"]
    mine, before = place.session.key().address, market.port.nonce(place.session.key().address)
    command = [sys.executable, "-m", "hearth.cli", "wallet", "send", str(path), "--yes"]
    environ = {**os.environ, "HEARTH_HOME": str(place.home), "PYTHONPATH": str(ROOT), "HEARTH_FAILPOINT": point}
    killed = subprocess.run(command, env=environ, capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for _ in range(2):
        again = _send(place, str(path))
        assert again.code == 0, again.out
        assert market.port.nonce(mine, pending=True) == before + 2
    assert again.json["already_sent"] is True
    assert place.hearth("job", "show", report["job"], "--json").code == 0
    assert place.hearth("job", "cancel", report["job"]).code == 0


@pytest.mark.parametrize("place", ["native"], indirect=True)
def test_wallet_send__no_file__is_refused_with_the_next_command(place: Town) -> None:
    for arguments, name in (
        ((FRIEND,), "USAGE"),
        (("nowhere.json",), "BAD_TX"),
        (("nowhere.json", "--again"), "USAGE"),
    ):
        told = _send(place, *arguments)
        assert (told.code, told.error["code"]) == (2, name) and told.error["hint"]
