"""Deploying a market of one's own: killed at every moment, refused in our words, done once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from eth_abi.abi import encode
from eth_account import Account

from hearth.base import failpoints
from hearth.base.errors import ChainError, ConfigError, FundsError, RefusedError, UsageError
from hearth.chain.keys import KeyFile, create_key
from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import SenderConfig
from hearth.client.session import MAX_FEE
from hearth.config.settings import load_settings
from hearth.daemon.signer import open_sender
from hearth.local import devnet
from hearth.market.contracts import CONTRACTS
from hearth.market.creation import create_address
from hearth.market.deploying import Wish, find_deployed, finish, prepare, record_path
from hearth.market.deployment import TxDeployer
from hearth.market.network import Network, load_network
from hearth.market.profiles import DEVNET, PUBLIC
from hearth.market.reads import Market, Seats
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.anvil import bare_chain
from tests.kit.require import require

pytestmark = pytest.mark.e2e

CHAIN_ID = 4242
DAY = 86_400
CONFIG = SenderConfig(MAX_FEE, poll=0.05, timeout=60)
TREASURY = "0x" + "77" * 20
COUNCIL = "0x" + "c0" * 20
NOBODY = ZERO_ADDRESS
SEATS = ("--treasury", TREASURY, "--council", COUNCIL)
WISH = Wish("mine", PUBLIC, Asset("ETH", 18), TREASURY, COUNCIL)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run a chain that is not the devnet's, whose blocks come by the clock, so that its base fee moves meanwhile."""
    try:
        devnet.find_anvil()
    except ConfigError as error:
        require("anvil", False, error.message)
    with bare_chain("--chain-id", str(CHAIN_ID), "--block-time", "1") as found:
        RpcChain([found], timeout=10).rpc("evm_mine")  # tests look at the block before a deployment
        yield found


TOKEN = (*SEATS, "--token", TREASURY, "--decimals", "6", "--yes")


def deploy(url: str, folder: Path, index: int, *, wish: Wish = WISH, anew: bool = False) -> Network:
    """Do what scripts/deploy.py does, with one of the chain's public accounts and a home of its own."""
    port = RpcChain([url], timeout=10)
    path = folder / "networks" / "mine.json"
    found = None if anew else find_deployed(wish, port, path)
    if found is not None:
        return found
    account = devnet.account(index)
    key = KeyFile("deployer", account.address.lower(), folder / "keys" / "deployer.json")
    deployment = prepare(wish, port, key.address, path, CONFIG, anew=anew)
    with open_sender(port, deployment, key, account, home=folder / "state", user_home=folder, config=CONFIG) as sender:
        sender.reconcile()
        return finish(deployment, TxDeployer(sender, port, since=deployment.since), port)


def killed_at(point: str, url: str, folder: Path, index: int) -> bool:
    """Deploy in a process that dies at a fail point; say whether it did."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ["HEARTH_FAILPOINT"] = point
            failpoints._target.cache_clear()
            # Another name of the same host: the parent's connection is not shared with a process that dies.
            deploy(url.replace("127.0.0.1", "localhost"), folder, index)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


MOMENTS = [
    *([f"{moment}@deploy.{name}" for name in CONTRACTS] for moment in ("m2.intent", "m7.signed", "m8.broadcast")),
    ["deploy.recorded", *[f"m9.mined@deploy.{name}" for name in CONTRACTS], "deploy.checked", "deploy.written"],
]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(MOMENTS)), ids=["intent", "signed", "broadcast", "mined"])
def test_deploy__killed_at_each_transaction__ends_as_one_deployment(url: str, tmp_path: Path, index: int) -> None:
    chain = RpcChain([url], timeout=10)
    deployer = devnet.account(index).address.lower()
    first = chain.nonce(deployer)
    for point in MOMENTS[index]:
        assert killed_at(point, url, tmp_path, index), point
    network = deploy(url, tmp_path, index)
    assert network.contracts == {name: create_address(deployer, first + i) for i, name in enumerate(CONTRACTS)}
    assert chain.nonce(deployer, pending=True) == first + len(CONTRACTS)
    path = tmp_path / "networks" / "mine.json"
    assert load_network(path) == network and network.chain_id == CHAIN_ID
    assert not record_path(path).exists()
    assert not chain.code(network.escrow, network.deploy_block - 1) and chain.code(network.escrow, network.deploy_block)
    Market(chain, network).identity.check()

    assert deploy(url, tmp_path, index) == network
    assert chain.nonce(deployer, pending=True) == first + len(CONTRACTS)


def test_deploy__its_journal_is_lost__what_stands_is_found(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    deployer = devnet.account(4).address.lower()
    assert killed_at("m9.mined@deploy.NodeRegistry", url, tmp_path, 4)
    (tmp_path / "state").rename(tmp_path / "lost")
    network = deploy(url, tmp_path, 4)
    assert network.contracts == {name: create_address(deployer, i) for i, name in enumerate(CONTRACTS)}
    assert chain.nonce(deployer, pending=True) == len(CONTRACTS)
    assert not chain.code(network.escrow, network.deploy_block - 1)


def test_deploy__a_nonce_is_taken_meanwhile__signs_nothing_until_it_is_given_up(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    account = devnet.account(5)
    assert killed_at("m9.mined@deploy.Escrow", url, tmp_path, 5)
    key = KeyFile("deployer", account.address.lower(), tmp_path / "keys" / "deployer.json")
    deployment = prepare(WISH, chain, key.address, tmp_path / "networks" / "mine.json", CONFIG)
    assert deployment.resumed and deployment.deployed == {"Escrow"}
    with open_sender(
        chain, deployment, key, account, home=tmp_path / "state", user_home=tmp_path, config=CONFIG
    ) as sender:
        sender.send(Call(TREASURY, b"", 1, "test.pay"), key="pay")
    with pytest.raises(ChainError) as caught:
        deploy(url, tmp_path, 5)
    assert caught.value.code == "DEPLOY_NONCE" and "--force" in caught.value.hint
    assert chain.nonce(key.address, pending=True) == 2
    network = deploy(url, tmp_path, 5, anew=True)
    assert network.escrow == create_address(key.address, 2)


_DAMAGE: list[tuple[str, object]] = [
    *(("nonce", value) for value in ("x", -1, 2**64, 10**400)),
    *(("since", value) for value in (None, -5, 10**9, 10**400)),
    *(("deployer", value) for value in (5, "0x12", None)),
    ("settings", []),
]


def test_prepare__other_settings_than_the_one_under_way__are_refused(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    deployer, path = devnet.account(6).address.lower(), tmp_path / "networks" / "mine.json"
    assert killed_at("deploy.recorded", url, tmp_path, 6)
    unsent = prepare(replace(WISH, profile=DEVNET), chain, deployer, path, CONFIG)
    assert not unsent.resumed and prepare(WISH, chain, deployer, path, CONFIG).resumed
    assert killed_at("m9.mined@deploy.Escrow", url, tmp_path, 6)
    others: list[tuple[Wish, str]] = [
        (replace(WISH, profile=DEVNET), "profile 'public', not 'devnet'"),
        (replace(WISH, treasury="0x" + "78" * 20), f"treasury {TREASURY!r}, not '0x78"),
        (replace(WISH, council="0x" + "c1" * 20), f"council {COUNCIL!r}, not '0xc1"),
        (replace(WISH, guardian=COUNCIL), f"guardian 'none', not {COUNCIL!r}"),
        (replace(WISH, asset=Asset("POL", 18)), "asset 'ETH of 18 decimals"),
        (replace(WISH, name="yours"), "name 'mine', not 'yours'"),
    ]
    for wish, what in others:
        with pytest.raises(ConfigError) as caught:
            prepare(wish, chain, deployer, path, CONFIG)
        assert caught.value.code == "DEPLOY_UNFINISHED" and what in caught.value.message
    with pytest.raises(ConfigError) as caught:
        prepare(WISH, chain, devnet.account(7).address.lower(), path, CONFIG)
    assert caught.value.code == "DEPLOY_UNFINISHED"
    assert not prepare(others[0][0], chain, deployer, path, CONFIG, anew=True).resumed
    record = record_path(path)
    good = json.loads(record.read_text())
    damaged = [{}, [], *({**good, name: value} for name, value in _DAMAGE)]
    for text in ("", json.dumps({**good, "schema": "hearth.deployment/2"}), *map(json.dumps, damaged)):
        record.write_text(text)
        with pytest.raises(ConfigError) as caught:
            prepare(WISH, chain, deployer, path, CONFIG)
        assert caught.value.code == "DEPLOY_UNFINISHED"


def test_prepare__decimals_that_are_not_the_tokens__are_refused(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    deployer, path = devnet.account(3).address.lower(), tmp_path / "mine.json"
    code = bytes.fromhex(devnet.token_artifact()["bytecode"][2:]) + encode(
        ["string", "string", "uint8"], ["Six places", "SIX", 6]
    )
    sent = chain.rpc("eth_sendTransaction", {"from": deployer, "data": "0x" + code.hex()})
    while (receipt := chain.receipt(bytes.fromhex(sent[2:]))) is None:
        time.sleep(0.1)
    wish = replace(WISH, asset=Asset("SIX", 18, receipt.contract))
    with pytest.raises(ConfigError) as caught:
        prepare(wish, chain, deployer, path, CONFIG)
    assert caught.value.code == "BAD_DECIMALS" and "--decimals 6" in caught.value.hint
    six = replace(WISH, asset=Asset("SIX", 6, receipt.contract), per_ether=Fraction(2_500))
    assert prepare(six, chain, deployer, path, CONFIG).gas > 0


def test_prepare__short_of_gas__says_how_much_is_needed(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    poor = "0x" + "99" * 20
    with pytest.raises(FundsError) as caught:
        prepare(WISH, chain, poor, tmp_path / "mine.json", CONFIG)
    error = caught.value
    assert (error.exit_code, error.details["have"]) == (6, "0") and poor in error.message and poor in error.hint
    chain.rpc("anvil_setBalance", poor, hex(2 * int(error.details["need"])))
    deployment = prepare(WISH, chain, poor, tmp_path / "mine.json", CONFIG)
    assert deployment.fee_now < deployment.fee_most
    assert not list(tmp_path.iterdir())


def test_step_gas__against_what_creations_used__covers_it_and_little_more(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    used, planned = {}, {}
    account = devnet.account(8)
    key = KeyFile("deployer", account.address.lower(), tmp_path / "deployer.json")
    deployment = prepare(WISH, chain, key.address, tmp_path / "mine.json", CONFIG)
    with open_sender(
        chain, deployment, key, account, home=tmp_path / "state", user_home=tmp_path, config=CONFIG
    ) as sender:

        def tell(step: object, sent: object) -> None:
            used[step.name], planned[step.name] = sent.gas_used, step.gas  # type: ignore[attr-defined]

        finish(deployment, TxDeployer(sender, chain, tell=tell), chain)
    assert sum(used.values()) < sum(planned.values()) == deployment.gas < 1.1 * sum(used.values())
    assert all(used[name] <= planned[name] for name in CONTRACTS)


def test_find_deployed__another_market_of_this_name__is_refused(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    deploy(url, tmp_path, 9)
    path = tmp_path / "networks" / "mine.json"
    for wish in (replace(WISH, treasury="0x" + "78" * 20), replace(WISH, profile=DEVNET)):
        with pytest.raises(UsageError) as caught:
            find_deployed(wish, chain, path)
        assert caught.value.code == "FILE_EXISTS" and "other settings" in caught.value.message
    with bare_chain() as other, pytest.raises(UsageError) as caught:
        find_deployed(WISH, RpcChain([other], timeout=10), path)
    assert caught.value.code == "FILE_EXISTS" and "another" in caught.value.message


# ---- the scripts ----


class Scripts:
    """`ape run deploy` and `ape run manage` of one user, in this process: their commands are ape's own."""

    def __init__(self, url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.home = url, home
        monkeypatch.setenv("HEARTH_HOME", str(home / "hearth"))
        (home / "hearth").mkdir(mode=0o700)
        self.password = home / "password"
        self.password.write_text("swordfish\n")
        self.password.chmod(0o600)

    def __call__(
        self, *arguments: str, account: str = "deployer", answer: str | None = None, name: str = "mine"
    ) -> Result:
        from scripts import deploy, manage

        given = [*arguments, "--network", self.url, "--account", account, "--name", name]
        given += ["--folder", str(self.home / "networks"), "--password-file", str(self.password)]
        command = deploy.cli if arguments[0].startswith("--") else manage.cli
        return CliRunner().invoke(command, given, input=answer)


@pytest.fixture(scope="module")
def ape_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give ape a folder of its own, before it is imported: it asks for it once."""
    require("ape", find_spec("ape") is not None, "the dev dependencies are not installed")
    folder = tmp_path_factory.mktemp("ape")
    with mock.patch.dict(os.environ, {"APE_DATA_FOLDER": str(folder)}):
        from ape import config

        with mock.patch.object(config, "DATA_FOLDER", folder):
            yield folder


@pytest.fixture
def scripts(url: str, tmp_path: Path, ape_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    return Scripts(url, tmp_path, monkeypatch)


def test_deploy_script__a_wallets_key__plan_question_deployment_and_nothing_twice(scripts: Scripts) -> None:
    chain = RpcChain([scripts.url], timeout=10)
    key = create_key(scripts.home / "hearth" / "keys", "deployer", "swordfish", devnet=True)
    words = SEATS

    poor = scripts(*words, "--yes")
    assert poor.exit_code == 6 and f"error: {key.address} holds 0 ETH" in poor.output
    assert f"next: send ETH to {key.address}" in poor.output
    chain.rpc("anvil_setBalance", key.address, hex(10**18))

    unasked = scripts(*words)
    assert unasked.exit_code == 3 and "next: use --yes" in unasked.output
    with mock.patch("scripts._shared.on_terminal", return_value=True):
        declined = scripts(*words, answer="n\n")
    assert declined.exit_code == 130 and declined.output.count("[y/N]") == 1
    first = chain.nonce(key.address)
    for text in (f"chain {CHAIN_ID}", key.address, "it holds 1 ETH", "profile public", TREASURY, "gas: 0.0"):
        assert text in declined.output
    for i, name in enumerate(CONTRACTS):
        assert f"{name} will be {create_address(key.address, first + i)}" in declined.output
    assert not (scripts.home / "networks").exists() and chain.nonce(key.address) == first == 0

    with mock.patch("scripts._shared.on_terminal", return_value=True):
        done = scripts(*words, answer="y\n")
    path = scripts.home / "networks" / "mine.json"
    assert done.exit_code == 0 and done.output.splitlines()[-1] == str(path), done.output
    assert done.output.count("[y/N]") == 1
    network = load_network(path)
    assert network.rpc == (scripts.url,) and network.chain_id == CHAIN_ID

    again = scripts(*words)
    assert again.exit_code == 0 and "nothing was sent" in again.output and str(path) in again.output
    other = scripts("--treasury", "0x" + "78" * 20, "--council", COUNCIL, "--yes")
    assert other.exit_code == 2 and "next: use another --name, or --force" in other.output
    assert chain.nonce(key.address, pending=True) == len(CONTRACTS)

    # The deployer keeps no right, at no moment.
    market = Market(chain, network)
    assert {market.governor(name) for name in ("Rules", "NodeRegistry")} == {network.steward}
    assert market.seats() == Seats(COUNCIL, ZERO_ADDRESS, ZERO_ADDRESS, 2 * DAY)
    for account in (str(key.path), "TEST::1"):
        stranger = scripts("pause", "posts", "--yes", account=account)
        assert stranger.exit_code == 5 and "rules: not the governor" in stranger.output
        assert "next: hearth gov status" in stranger.output


def hand_over(scripts: Scripts, market: Market, account: str, *what: str) -> None:
    """Let the Steward offer its rights to an account, as an executed change does, and the account accept them."""
    chain, address = RpcChain([scripts.url], timeout=10), devnet.account(int(account[-1])).address
    steward = market.network.steward
    chain.rpc("anvil_impersonateAccount", steward)
    chain.rpc("anvil_setBalance", steward, hex(10**18))
    for name in what:
        call = market.calls.offer_governor({"posts": "Rules", "registrations": "NodeRegistry"}[name], address)
        sent = chain.rpc("eth_sendTransaction", {"from": steward, "to": call.to, "data": "0x" + call.data.hex()})
        while chain.receipt(bytes.fromhex(sent[2:])) is None:
            time.sleep(0.05)
        accepted = scripts("accept-governor", name, account=account)
        assert accepted.exit_code == 0, accepted.output


def test_manage_script__each_command__the_market_reads_so(scripts: Scripts) -> None:
    chain = RpcChain([scripts.url], timeout=10)
    governor = "TEST::3"
    done = scripts(*SEATS, "--yes", account=governor)
    assert done.exit_code == 0, done.output
    market = Market(chain, load_network(scripts.home / "networks" / "mine.json"))
    hand_over(scripts, market, governor, "posts", "registrations")
    market.identity.check()
    assert market.immutable("JobRegistry", "TREASURY") == TREASURY

    for bad, code in (
        ("ack_time=50", "not a duration"),
        ("fee_bps=99999", "fee_bps is from 0 (0 %) to 1000 (10 %)"),
        ("fee=1", "fee"),
    ):
        refused_change = scripts("set-policy", bad, account=governor)
        assert refused_change.exit_code == 2 and code in refused_change.output and "next: " in refused_change.output
    done = scripts("set-policy", "fee_bps=400", "ack_time=50s", "min_price=0.000002 ETH", account=governor)
    assert done.exit_code == 0, done.output
    policy = market.policy()
    assert (policy.fee_bps, policy.ack_time, policy.min_price) == (400, 50, 2 * 10**12)
    assert market.policies().previous == market.network.policy
    again = scripts("set-policy", "fee_bps=300", account=governor)
    assert again.exit_code == 5 and "rules: changed lately" in again.output
    assert scripts("drop-previous-policy", account=governor).exit_code == 0 and market.policies().until == 0
    unasked = scripts("pause", "registrations", account=governor)
    assert unasked.exit_code == 3 and "next: use --yes" in unasked.output
    assert market.immutable("NodeRegistry", "paused_until") == 0
    assert scripts("pause", "registrations", "--yes", account=governor).exit_code == 0
    assert market.immutable("NodeRegistry", "paused_until") > chain.head().timestamp
    assert market.policies().paused_until == 0
    assert scripts("set-minimum-stake", "2", account=governor).exit_code == 0
    assert market.immutable("NodeRegistry", "minimum_stake") == 2 * 10**18
    too_low = scripts("set-minimum-stake", "7 wei", account=governor)
    assert too_low.exit_code == 5 and "nodes: minimum out of range" in too_low.output


def test_manage_script__posts_are_paused__new_jobs_wait_and_the_brake_rests_for_a_month(scripts: Scripts) -> None:
    governor, submitter = "TEST::4", devnet.account(5).address.lower()
    with bare_chain("--chain-id", str(CHAIN_ID)) as own:
        scripts.url = own
        chain = RpcChain([own], timeout=10)
        assert scripts(*SEATS, "--yes", account=governor).exit_code == 0
        market = Market(chain, load_network(scripts.home / "networks" / "mine.json"))
        hand_over(scripts, market, governor, "posts")

        def post() -> None:
            """Simulate a post under what the client takes for the policy in force."""
            now, policy = chain.head().timestamp, market.policies().word
            terms = build.terms(submitter=submitter, policy=policy, deadline=now + DAY, keeper_fee=10**12)
            chain.call(market.calls.post(terms), sender=submitter)

        def later(seconds: int) -> None:
            chain.rpc("evm_increaseTime", seconds)
            chain.rpc("evm_mine")

        post()
        assert scripts("pause", "posts", "--yes", account=governor).exit_code == 0
        assert market.policies().paused_until == chain.head().timestamp + 7 * DAY
        assert market.policies().word == market.network.policy
        with pytest.raises(RefusedError, match="jobs: paused"):
            post()
        later(7 * DAY)
        post()
        early = scripts("pause", "posts", "--yes", account=governor)
        assert early.exit_code == 5 and "rules: paused lately" in early.output
        assert "next: hearth gov status says from when" in early.output
        later(23 * DAY)
        assert scripts("pause", "posts", "--yes", account=governor).exit_code == 0
        with pytest.raises(RefusedError, match="jobs: paused"):
            post()

        # What is set meanwhile is taken at its end.
        assert scripts("set-policy", "fee_bps=400", account=governor).exit_code == 0
        assert market.policy().fee_bps == 400
        later(7 * DAY)
        post()
        assert scripts("set-policy", "fee_bps=300", account=governor).exit_code == 0
        assert market.policy().fee_bps == 300
        post()


def test_manage_script__rights_are_offered__they_pass_once_accepted_and_for_that_contract_alone(
    scripts: Scripts,
) -> None:
    first, second, address = "TEST::6", "TEST::7", devnet.account(7).address
    assert scripts(*SEATS, "--yes", account=first).exit_code == 0
    market = Market(RpcChain([scripts.url], timeout=10), load_network(scripts.home / "networks" / "mine.json"))
    hand_over(scripts, market, first, "posts")
    early = scripts("accept-governor", "posts", account=second)
    assert early.exit_code == 5 and "rules: not offered to you" in early.output
    mistyped = scripts("offer-governor", "posts", address[:-1], account=first)
    assert mistyped.exit_code == 2 and "is no address" in mistyped.output
    offered = scripts("offer-governor", "posts", address, account=first)
    assert offered.exit_code == 0, offered.output
    assert market.immutable("Rules", "offered_governor").lower() == address.lower()
    assert scripts("set-policy", "fee_bps=400", account=first).exit_code == 0
    assert scripts("accept-governor", "posts", account=second).exit_code == 0
    assert market.immutable("Rules", "governor").lower() == address.lower()
    late = scripts("set-policy", "fee_bps=300", account=first)
    assert late.exit_code == 5 and "rules: not the governor" in late.output
    assert scripts("drop-previous-policy", account=second).exit_code == 0
    other = scripts("set-minimum-stake", "2", account=second)
    assert other.exit_code == 5 and "nodes: not the governor" in other.output


def test_deploy_script__a_keystore_of_apes__signs(scripts: Scripts, ape_folder: Path) -> None:
    chain = RpcChain([scripts.url], timeout=10)
    secret = b"\x42" * 32
    address = Account.from_key(secret).address.lower()
    keystore = ape_folder / "accounts" / "apes.json"
    keystore.parent.mkdir(exist_ok=True)
    keystore.write_text(json.dumps(Account.encrypt(secret, "swordfish", kdf="scrypt", iterations=1 << 10)))
    keystore.chmod(0o644)
    chain.rpc("anvil_setBalance", address, hex(10**18))
    done = scripts(*SEATS, "--yes", account="apes")
    assert done.exit_code == 0, done.output
    assert load_network(scripts.home / "networks" / "mine.json").escrow == create_address(address, 0)


@pytest.mark.parametrize(
    ("arguments", "account", "code", "words"),
    [
        (("--treasury", "0x12", "--council", COUNCIL, "--yes"), "deployer", 2, "0x12 is no address"),
        (("--treasury", NOBODY, "--council", COUNCIL, "--yes"), "TEST::9", 3, "the treasury is the zero address"),
        (("--treasury", TREASURY, "--council", NOBODY, "--yes"), "TEST::9", 3, "the council is the zero address"),
        ((*SEATS, "--guardian", "0x12", "--yes"), "TEST::9", 2, "0x12 is no address"),
        ((*SEATS, "--yes"), "nobody", 3, "next: hearth wallet import nobody FILE"),
        ((*SEATS, "--yes"), "./none.json", 3, "none.json cannot be read"),
        ((*TOKEN, "--per-ether", "2500", "--decimals", "18"), "TEST::9", 2, f"--token {TREASURY} is no contract"),
        ((*SEATS, "--token", "", "--per-ether", "1", "--yes"), "TEST::9", 2, "is no address"),
        (TOKEN, "TEST::9", 2, "next: --per-ether 2500, where 2500 ETH are worth an ether"),
        ((*TOKEN, "--per-ether", "0"), "TEST::9", 2, "--per-ether '0' is no amount"),
        ((*TOKEN, "--per-ether", "1"), "TEST::9", 3, "an eighth of min_keeper_fee would be nothing"),
        ((*SEATS, "--network", "http://127.0.0.1:1", "--yes"), "TEST::9", 4, "cannot be used"),
    ],
    ids=[
        "address",
        "treasury",
        "council",
        "guardian",
        "account",
        "file",
        "token",
        "no token",
        "worth",
        "no worth",
        "small coin",
        "network",
    ],
)
def test_deploy_script__bad_input__is_refused_before_anything_is_sent(
    scripts: Scripts, arguments: tuple[str, ...], account: str, code: int, words: str
) -> None:
    chain = RpcChain([scripts.url], timeout=10)
    before = chain.nonce(devnet.account(9).address, pending=True)
    if "--network" in arguments:
        scripts.url = arguments[arguments.index("--network") + 1]
    told = scripts(*arguments, account=account)
    assert told.exit_code == code and words in told.output and "next: " in told.output, told.output
    assert not (scripts.home / "networks").exists()
    assert chain.nonce(devnet.account(9).address, pending=True) == before


@pytest.mark.parametrize(
    "name", ["../mine", "", "a b", ".mine", "-mine", "Mine", "my_mine", "mine\n", "m" * 33, "/tmp/mine", "mine.json"]
)
def test_scripts__name_that_no_network_has__nothing_is_signed_or_written(scripts: Scripts, name: str) -> None:
    chain, deployer = RpcChain([scripts.url], timeout=10), devnet.account(8).address
    before, files = chain.nonce(deployer, pending=True), sorted(scripts.home.rglob("*"))
    for arguments in ((*SEATS, "--yes"), ("pause", "posts", "--yes")):
        told = scripts(*arguments, account="TEST::8", name=name)
        assert told.exit_code == 2 and "names no network" in told.output, told.output
        assert "next: use --name mymarket" in told.output
    assert chain.nonce(deployer, pending=True) == before and sorted(scripts.home.rglob("*")) == files


def test_prepare__token_that_tells_no_decimals__is_named(url: str, tmp_path: Path) -> None:
    chain = RpcChain([url], timeout=10)
    deployer = devnet.account(3).address.lower()
    # Creation code of a contract that answers each call with nothing (STOP), and of one that reverts: revert(0, 0).
    for code in ("0x600060005360016000f3", "0x6460006000fd6000526005601bf3"):
        sent = chain.rpc("eth_sendTransaction", {"from": deployer, "data": code})
        while (receipt := chain.receipt(bytes.fromhex(sent[2:]))) is None:
            time.sleep(0.1)
        wish = replace(WISH, asset=Asset("ODD", 18, receipt.contract))
        with pytest.raises(UsageError) as caught:
            prepare(wish, chain, deployer, tmp_path / "mine.json", CONFIG)
        assert caught.value.code == "BAD_ADDRESS" and f"--token {receipt.contract}" in caught.value.message


def test_find_account__a_name_of_two_keys__is_refused(scripts: Scripts, ape_folder: Path) -> None:
    from scripts._shared import find_account

    keystore = ape_folder / "accounts" / "twice.json"
    keystore.parent.mkdir(exist_ok=True)
    keystore.write_text(json.dumps(Account.encrypt(b"\x43" * 32, "swordfish", kdf="scrypt", iterations=1 << 10)))
    settings = load_settings()
    key = create_key(settings.keys_folder, "twice", "swordfish", devnet=True)
    with pytest.raises(ConfigError) as caught:
        find_account("twice", settings)
    assert caught.value.code == "MANY_ACCOUNTS" and str(key.path) in caught.value.hint
    assert find_account(key.address, settings).address == key.address
