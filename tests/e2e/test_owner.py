"""What an owner does with a node, from the command line: prepared calls, other payers, one key for owner and worker."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.town import Said, Town, hearth, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["native", "erc20"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with nobody in it."""
    with town(tmp_path_factory.mktemp(request.param), erc20=request.param == "erc20") as made:
        yield made


def told(place: Town, *arguments: str) -> Said:
    """Run a command that must do its work."""
    said = place.hearth(*arguments)
    assert said.code == 0, said.err + said.out
    return said


# ---- prepared calls ----


@pytest.fixture(scope="module")
def cold(place: Town) -> Path:
    """The settings of a node whose owner is the key `provider`; its worker does not run."""
    config = place.worker_file("worker2")
    said = told(place, "worker", "register", "--config", str(config), "--stake", "2")
    # The transaction is told when it is mined; what came of it is the result.
    assert said.err.count("nodes.register: 0x") == 1 and "nodes.register" not in said.out
    assert said.out.startswith("node ") and "hearth worker start" in said.out
    return config


def stake_of(place: Town, config: Path) -> int:
    return int(told(place, "worker", "status", "--config", str(config), "--json").json["stake"])


def test_worker_register__no_stake_said__is_the_minimum(place: Town) -> None:
    config = place.worker_file("worker")
    for said, wei in (((), 10**18), (("--stake", "1.5"), 15 * 10**17)):
        report = told(place, "worker", "register", "--config", str(config), "--print-tx", "--json", *said).json
        assert report["stake"] == str(wei)


def test_worker_init__account_that_others_are_not__is_named_in_the_next_command(place: Town) -> None:
    """HEARTH_ACCOUNT may name another key than the one that init was given."""
    for file, extra, wanted in (
        ("a", ("--account", "worker2"), "hearth worker register --account worker2"),
        ("b", ("--account", "worker2", "--payout", "0x" + "77" * 20), "hearth worker register --print-tx"),
        (
            "c",
            ("--account", "worker2", "--payout", told(place, "wallet", "show", "worker3", "--json").json["address"]),
            "hearth worker register --account worker3",
        ),
    ):
        command = ("worker", "init", "--config", str(place.home / f"next-{file}.toml"), "--price", "1/h")
        report = told(place, *command, "--country", "de", "--runtimes", "wasm", *extra, "--json").json
        assert report["next"].startswith(wanted)


def test_worker_init__of_a_key_whose_node_is_registered__starts_it_where_an_rpc_says_so(
    place: Town, cold: Path, tmp_path: Path
) -> None:
    """Its owner may have registered it in the page."""
    payout = place.session.key("owner").address
    for more, wanted in (((), "hearth worker start"), (("--rpc", "http://127.0.0.1:9"), "hearth worker register")):
        config = tmp_path / f"again-{len(more)}.toml"
        command = ("worker", "init", "--config", str(config), "--price", "1/h", "--country", "de", "--payout", payout)
        report = told(place, *command, "--runtimes", "wasm", "--account", "worker2", *more, "--json").json
        assert report["next"].startswith(wanted)


def test_worker_stake__prepared__needs_no_amount_and_refuses_another(place: Town, cold: Path, tmp_path: Path) -> None:
    before = stake_of(place, cold)
    prepared = told(place, "worker", "stake", "0.5", "--config", str(cold), "--print-tx")
    file = tmp_path / "tx.json"
    file.write_text(prepared.out)
    send = ("--tx", str(file), "--account", "provider", "--json")
    other = place.hearth("worker", "stake", "5", *send)
    assert (other.code, other.error["code"]) == (2, "BAD_TX") and "5000000000000000000" in other.error["message"]
    price = place.hearth("worker", "price", "5/h", *send)
    assert (price.code, price.error["code"]) == (2, "BAD_TX")
    assert stake_of(place, cold) == before
    assert told(place, "worker", "stake", *send).json["prepared_in"] == str(file)
    # The file's key names the effect: the same amount again, and the same file again, send nothing more.
    assert told(place, "worker", "stake", "0.5", *send).json["transactions"][-1]["repeated"]
    assert stake_of(place, cold) - before == 5 * 10**17


def test_worker_operator__prepared_on_a_machine_that_a_thief_has__names_whom_the_owner_says(
    place: Town, cold: Path, tmp_path: Path
) -> None:
    thief, new = "0x" + "66" * 20, "0x" + "77" * 20
    file = tmp_path / "tx.json"
    file.write_text(told(place, "worker", "operator", thief, "--config", str(cold), "--print-tx").out)
    refused = place.hearth("worker", "operator", new, "--tx", str(file), "--account", "provider", "--json")
    assert (refused.code, refused.error["code"]) == (2, "BAD_TX") and thief in refused.error["message"]
    rehearsed = told(place, "worker", "operator", new, "--config", str(cold), "--dry-run", "--json").json
    assert (rehearsed["dry_run"], rehearsed["operator"]) == (True, new)
    shown = told(place, "worker", "status", "--config", str(cold), "--json").json
    assert shown["operator"] == told(place, "wallet", "show", "worker2", "--json").json["address"]


@pytest.mark.parametrize("command", ["stake", "price"])
def test_worker_owner_action__neither_amount_nor_file__says_what_is_missing(
    place: Town, cold: Path, command: str
) -> None:
    refused = place.hearth("worker", command, "--config", str(cold), "--json")
    assert (refused.code, refused.error["code"]) == (2, "USAGE")
    assert f"hearth worker {command}" in refused.error["hint"] and "--tx FILE" in refused.error["hint"]


# ---- who pays ----


def test_worker_stake__another_wallet__pays_where_it_is_chosen(place: Town, cold: Path, tmp_path: Path) -> None:
    before, keeper = stake_of(place, cold), place.client.wallet.balance("keeper")["asset"]
    sent = told(place, "worker", "stake", "0.25", "--config", str(cold), "--account", "keeper", "--json").json
    assert sent["added"] == str(25 * 10**16)
    command = ("worker", "stake", "0.25", "--config", str(cold), "--account", "keeper", "--json")
    same = told(place, *command).json
    assert same["already_sent"] and same["transactions"][-1]["tx"] == sent["transactions"][-1]["tx"]
    assert stake_of(place, cold) - before == 25 * 10**16
    again = told(place, *command, "--again").json
    assert not again["transactions"][-1]["repeated"]
    assert stake_of(place, cold) - before == 5 * 10**17
    assert int(keeper) - int(place.client.wallet.balance("keeper")["asset"]) >= 5 * 10**17
    # What --print-tx wrote for the owner any wallet may send, since anyone may add stake; nothing else.
    for command, amount, code in (("stake", "0.5", 0), ("price", "0.7/h", 3)):
        file = tmp_path / f"{command}.json"
        file.write_text(told(place, "worker", command, amount, "--config", str(cold), "--print-tx").out)
        said = place.hearth("worker", command, "--tx", str(file), "--account", "keeper", "--json")
        assert said.code == code, said.out
        assert code == 0 or said.error["code"] == "NOT_OWNER"
    assert stake_of(place, cold) - before == 10**18


def test_worker_stake__key_that_nobody_chose__pays_nothing(place: Town, cold: Path, tmp_path: Path) -> None:
    """The only key of a machine is mostly the worker's own: its gas money is not stake."""
    keys = tmp_path / "home" / "keys"
    shutil.copytree(place.home / "keys", keys)
    for path in keys.glob("*.json"):
        if path.stem != "worker2":
            path.unlink()
    market = str(place.home / "networks" / "devnet.json")
    refused = hearth(tmp_path / "home", "worker", "stake", "1", "--config", str(cold), "--network", market, "--json")
    assert (refused.code, refused.error["code"]) == (3, "NOT_OWNER")
    assert "whichever pays the stake" in refused.error["hint"]


# ---- one key for owner and worker, which works ----

FAILPOINTS = {
    "native": ("owner.taken", "owner.mined"),
    "erc20": ("m8.broadcast@token.approve",),
}
"""Where the worker is killed while it adds stake for its owner."""


@pytest.fixture(scope="module")
def hot(place: Town) -> Path:
    """The settings of a node that its worker's key owns; `working` runs it."""
    address = told(place, "wallet", "show", "worker3", "--json").json["address"]
    config = place.worker_file("worker3", extra=("--payout", address))
    told(place, "worker", "register", "--config", str(config), "--account", "worker3", "--stake", "2", "--json")
    return config


@contextlib.contextmanager
def working(place: Town, config: Path, *, failpoint: str = "") -> Iterator[None]:
    """Run the worker while the context is open; one with a `failpoint` may die before."""
    status = ("worker", "status", "--config", str(config), "--json")
    place.start("hot", "-m", "worker", "--config", str(config), failpoint=failpoint)
    try:
        end = time.monotonic() + 60
        while (told(place, *status).json["process"] or {}).get("pid") != place.processes["hot"].pid:
            assert time.monotonic() < end, (place.home / "hot.log").read_text()[-3000:]
            time.sleep(0.1)
        yield
    finally:
        place.stop("hot")


def owner(place: Town, config: Path, *arguments: str) -> Said:
    """Run a command of the owner, whose key is the worker's."""
    return place.hearth("worker", *arguments, "--config", str(config), "--account", "worker3", "--json")


def test_owner_actions__worker_runs_on_the_owners_key__it_sends_them(place: Town, hot: Path) -> None:
    with working(place, hot):
        before = stake_of(place, hot)
        for _ in range(2):
            added = owner(place, hot, "stake", "0.5")
            assert added.code == 0, added.err + added.out
            calls = [facts["action"] for facts in added.json["transactions"]]
            approved = [] if place.session.network.asset.address is None else ["token.approve"]
            assert calls == [*approved, "nodes.add_stake"]
            assert all(facts["block"] > 0 and not facts["repeated"] for facts in added.json["transactions"])
            assert "the running worker holds this key" in added.err and "nodes.add_stake: 0x" in added.err
        assert stake_of(place, hot) - before == 10**18
        assert owner(place, hot, "price", "0.66/h").code == 0
        # What the contract or the balance refuses comes back as it would from a command that signs itself.
        again = owner(place, hot, "price", "0.67/h")
        assert (again.code, again.error["code"]) == (5, "ASK_PENDING")
        rich = owner(place, hot, "stake", "999999")
        assert (rich.code, rich.error["code"]) == (6, "FUNDS_SHORT")
        nothing = owner(place, hot, "withdraw")
        assert (nothing.code, nothing.error["code"]) == (6, "NO_CREDIT")
        # This one alone would stop the worker that sends it.
        taken = owner(place, hot, "operator", "0x" + "77" * 20)
        assert (taken.code, taken.error["code"]) == (3, "KEY_IN_USE") and "hearth worker drain" in taken.error["hint"]
        assert owner(place, hot, "exit", "--yes").code == 0 and owner(place, hot, "exit", "--cancel").code == 0
        rehearsed = owner(place, hot, "stake", "1", "--dry-run")
        assert rehearsed.code == 0 and rehearsed.json["dry_run"]
        assert not list((place.home / "workers" / "worker3" / "requests").glob("*.[adt]*"))
    assert stake_of(place, hot) - before == 10**18


def test_worker_stake__worker_killed_while_it_sends__is_added_once(place: Town, hot: Path) -> None:
    for failpoint in FAILPOINTS["native" if place.session.network.asset.address is None else "erc20"]:
        before = stake_of(place, hot)
        with working(place, hot, failpoint=failpoint):
            cut = owner(place, hot, "stake", "0.125")
            assert place.processes["hot"].wait(30) == -signal.SIGKILL
        assert (cut.code, cut.error["code"]) == (4, "TX_PENDING"), (failpoint, cut.out)
        assert "hearth worker start" in cut.error["hint"]
        # Nothing is signed beside what the worker has taken up.
        waits = owner(place, hot, "stake", "0.125")
        assert (waits.code, waits.error["code"]) == (4, "TX_PENDING"), failpoint
        with working(place, hot):
            assert owner(place, hot, "stake", "0.125").code == 0
            assert stake_of(place, hot) - before == 125 * 10**15, failpoint


# ---- leaving ----


def test_worker_withdraw__after_the_exit__pays_stake_and_earnings_to_the_owner(
    place: Town, cold: Path, tmp_path: Path
) -> None:
    stake = stake_of(place, cold)
    told(place, "worker", "exit", "--yes", "--config", str(cold))
    place.rpc("evm_increaseTime", place.session.network.node_parameters.unbonding)
    place.rpc("evm_mine")
    told(place, "worker", "exit", "--finish", "--config", str(cold))
    books = told(place, "worker", "earnings", "--config", str(cold), "--json").json
    assert books["left_at"] and books["owner"] == place.session.key("owner").address
    assert f"node {books['node']} left the market at 20" in told(place, "worker", "earnings", "--config", str(cold)).out
    gone = place.hearth("worker", "why", "0x12", "--config", str(cold), "--json")
    assert gone.error["code"] == "NO_NODE"
    assert gone.error["message"].startswith(f"node {books['node']} left the market at 20")
    assert "hearth worker earnings" in gone.error["hint"]
    credit = int(place.client.wallet.balance("provider")["credit"])
    assert credit >= stake
    half = told(place, "worker", "withdraw", "0.5", "--config", str(cold), "--json").json
    assert (half["amount"], half["to"]) == (str(5 * 10**17), place.session.key("owner").address)
    file = tmp_path / "tx.json"
    file.write_text(told(place, "worker", "withdraw", "--config", str(cold), "--print-tx").out)
    other = place.hearth("worker", "withdraw", "--tx", str(file), "--account", "keeper", "--json")
    assert (other.code, other.error["code"]) == (3, "NOT_OWNER")
    assert "has this credit" in other.error["message"]
    said = told(place, "worker", "withdraw", "--tx", str(file), "--account", "provider")
    assert said.err.count("escrow.withdraw: 0x") == 1
    assert place.client.wallet.balance("provider")["credit"] == "0"
    empty = place.hearth("worker", "withdraw", "--config", str(cold), "--json")
    assert (empty.code, empty.error["code"]) == (6, "NO_CREDIT")


def test_worker_exit_finish__worker_runs_on_the_owners_key__says_so_and_the_worker_ends_well(
    place: Town, hot: Path
) -> None:
    with working(place, hot):
        assert owner(place, hot, "exit", "--yes").code == 0
        early = owner(place, hot, "exit", "--finish")
        assert (early.code, early.error["code"]) == (5, "UNBONDING"), early.out
        assert "UTC" in early.error["message"] and "--cancel" in early.error["hint"]
        place.rpc("evm_increaseTime", place.session.network.node_parameters.unbonding)
        place.rpc("evm_mine")
        done = owner(place, hot, "exit", "--finish")
        assert (done.code, done.json["transactions"][-1]["action"]) == (0, "nodes.exit_finish"), done.out
        assert place.processes["hot"].wait(30) == 0, (place.home / "hot.log").read_text()[-3000:]
