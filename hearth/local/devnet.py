"""A local chain with the market on it, for one machine: `hearth devnet up|down`.

Runs anvil in real time with one block per second, keeps its state in a home folder, deploys the devnet profile with
the same plan and checks as any deployment, and writes the network file there. `up` may be called again at any time:
it finds what runs, starts what stopped, and deploys only where no market is. `join` deploys on a chain that somebody
else runs. A chain that was killed goes on from what
it saved last, and `up` says what it lost. The accounts are the ones that every anvil prints; their keys are public and
worth nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ChainError, ConfigError, HearthError
from hearth.base.files import replace_text
from hearth.base.urls import redact_url
from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.config.settings import home_folder
from hearth.market.deployment import TxDeployer, carry_out, make_plan
from hearth.market.network import Network, load_network, save_network
from hearth.market.profiles import DEVNET
from hearth.market.reads import Market
from hearth.protocol.types import LOCAL_CHAIN_ID
from hearth.protocol.units import NATIVE, Asset

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

ANVIL_PACKAGE: Final = "@foundry-rs/anvil@1.7.1"
"""The package of npm that brings anvil, in the version of package.json."""
HARDFORK: Final = "cancun"
"""What the contracts are compiled for."""
TOKEN_DECIMALS: Final = 18
TOKEN_SYMBOL: Final = "DEV"
TOKENS_EACH: Final = 10**6
"""Whole tokens that each account gets on an ERC-20 devnet."""

KEYS: Final = (
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
)
"""The keys that anvil derives from "test test test test test test test test test test test junk"."""
DEPLOYER: Final = 0
"""Index of the account that deploys and governs."""
FAUCET: Final = 8
"""Index of the account that gives coin and test tokens away."""
JOINED_COINS: Final = 100 * 10**18
"""What each account must have on a chain that somebody else runs, wei."""
GAS_MONEY: Final = 10**18
"""What the faucet keeps for its own gas, wei."""
TREASURY: Final = 9
"""Index of the account that earns the fees."""
BASE_FEE: Final = 10**9
"""Wei per gas of a new chain's first block, the least; the blocks move it from there."""
BASE_FEES: Final = 10**6
"""How many first base fees there are: all within a thousandth of the least."""
SAVE_SECONDS: Final = 2
"""How often anvil writes its state, which is what a killed chain loses at most; an hour of blocks is 5 MB."""
STATE: Final = "chain.json"
"""The file that the chain is started from."""
SAVED: Final = "saved-chain.json"
"""The file that a running chain saves itself to."""
_LOGGED: Final = re.compile(r"^    (Transaction|Block Number|Block Hash): (0x[0-9a-f]{64}|[0-9]+)$", re.MULTILINE)
"""What anvil's log says of each block: its transactions first, then its number and hash."""
RELEASE_SECONDS: Final = 2.0
"""How long a port may still be held by a chain that was just killed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What a chain that was killed had and has no longer: its newest `blocks`, up to number `reached`."""

    blocks: int
    reached: int
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Devnet:
    """A running devnet."""

    network: Network
    url: str
    pid: int
    network_file: Path
    started: bool
    """Whether this `up` started the chain, rather than finding it."""
    deployed: bool
    """Whether this `up` deployed the market."""
    lost: Lost | None = None
    """What the chain lost since it ran last, None for nothing."""


@dataclass(frozen=True, slots=True)
class DevnetStatus:
    """What is known of a home folder's devnet; `pid`, `url` and `head` are None where it does not run."""

    running: bool
    pid: int | None = None
    url: str | None = None
    head: int | None = None
    network_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    port: int
    binary: str


def account(index: int) -> LocalAccount:
    """Return one of the ten public accounts."""
    from eth_account import Account

    made: LocalAccount = Account.from_key(KEYS[index])
    return made


def find_anvil(home: Path | None = None) -> Path:
    """Find anvil: HEARTH_ANVIL, node_modules of this clone, of `home` or of the user's home folder, the PATH.

    Raises ConfigError NO_ANVIL with the command that installs it where it is looked for.
    """
    named = os.environ.get("HEARTH_ANVIL")
    if named:
        if not Path(named).is_file():
            raise ConfigError(f"HEARTH_ANVIL names {named}, which is no file", code="NO_ANVIL", hint="unset it")
        return _native(Path(named))
    lasting = home_folder(os.environ)
    for folder in (Path(__file__).parents[2], home or lasting, lasting):
        # Not every npm links the command of a package that a package needs.
        for found in (folder / "node_modules" / ".bin" / "anvil", folder / "node_modules" / _BINARY):
            if found.exists():
                return _native(found)
    on_path = shutil.which("anvil")
    if on_path:
        return _native(Path(on_path))
    raise ConfigError(
        "anvil, the local chain, is not installed",
        code="NO_ANVIL",
        # npm makes a folder that others may enter, and a home is none: whoever has no home gets one first.
        hint=f"mkdir -p -m 700 {(place := shlex.quote(str(lasting)))} && npm install --prefix {place} {ANVIL_PACKAGE}",
    )


_MACHINE: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_BINARY: Final = f"@foundry-rs/anvil-{platform.system().lower()}-{_MACHINE}/bin/anvil"


def _native(program: Path) -> Path:
    """Return the binary behind npm's wrapper, so that the process that is stopped is the chain itself."""
    package = program.resolve().parent
    binary = package.parents[1] / _BINARY
    return binary if package.name == "anvil" and binary.is_file() else program.resolve()


def up(
    home: Path,
    port: int = 8545,
    *,
    block_time: int = 1,
    erc20: bool = False,
    host: str = "127.0.0.1",
    name: str = "devnet",
    timeout: float = 60.0,
) -> Devnet:
    """Start the chain under `home` where it does not run, deploy the market where there is none.

    `erc20` deploys a market whose asset is a test token of 18 decimals, minted to every account. Raises ConfigError
    PORT_BUSY where something else listens, ChainError DEVNET_START where anvil does not come up within `timeout`
    seconds.
    """
    with _one_at_a_time(home):
        return _up(home, port, block_time, erc20, host, name, timeout)


def _up(home: Path, port: int, block_time: int, erc20: bool, host: str, name: str, timeout: float) -> Devnet:
    url = f"http://{host}:{port}"
    chain = RpcChain([url], timeout=10.0, attempts=2)
    process = _running(home)
    if process is not None and process.port != port:
        raise ConfigError(
            f"the devnet in {home} runs already, on port {process.port}",
            code="DEVNET_RUNS",
            hint=f"use --port {process.port}, or hearth devnet down first",
        )
    if process is not None and not _answers(home, chain, process, timeout):
        process = None
    started = process is None
    logged: list[_Logged] = []
    if process is None:
        _refuse_busy(host, port)
        logged = _logged(home)
        _take_saved(home)
        process = _start(home, host, port, block_time)
        _wait_ready(home, chain, process, timeout)
    lost = _lost(logged, chain)
    path = home / "networks" / f"{name}.json"
    network, deployed = _market_on(chain, (url,), home, path, erc20)
    return Devnet(network, url, process.pid, path, started, deployed, lost)


def join(home: Path, rpc: Sequence[str], *, name: str = "devnet") -> Network:
    """Deploy the market on a local chain that somebody else runs, where this home folder has none there.

    Everybody knows the keys that sign, so only a chain of the id of local ones will do, and its first accounts must be
    rich. Raises ChainError WRONG_CHAIN for any other, or what the providers `rpc` raise.
    """
    with _one_at_a_time(home):
        chain = RpcChain(rpc, timeout=10.0, attempts=2)
        served = chain.chain_id()
        if served != LOCAL_CHAIN_ID:
            raise ChainError(
                f"{redact_url(rpc[0])} serves chain {served}: the keys are public, so a local chain alone will do",
                code="WRONG_CHAIN",
                hint=f"start a chain of your own with the id {LOCAL_CHAIN_ID}",
            )
        poor = [one.address for one in map(account, range(len(KEYS))) if chain.balance(one.address) < JOINED_COINS]
        if poor:
            raise ChainError(
                f"{len(poor)} of the {len(KEYS)} public accounts have less than {JOINED_COINS // 10**18} coins there, "
                f"{poor[0]} first",
                code="WRONG_CHAIN",
                hint="make them rich in the chain's first block, as anvil does",
            )
        return _market_on(chain, tuple(rpc), home, home / "networks" / f"{name}.json", erc20=False)[0]


def down(home: Path, *, timeout: float = 30.0) -> bool:
    """Stop the chain under `home`, its state kept. Returns False where it did not run."""
    process = _running(home)
    if process is None:
        return False
    os.kill(process.pid, signal.SIGTERM)
    end = time.monotonic() + timeout
    while not _ended(process):
        if time.monotonic() > end:
            raise ChainError(
                f"the devnet (process {process.pid}) does not stop", code="DEVNET_STOP", hint="hearth devnet down"
            )
        time.sleep(0.05)
    _pid_file(home).unlink(missing_ok=True)
    return True


def wipe(home: Path) -> None:
    """Forget a stopped devnet: its chain, its network files and its journals. Raises ConfigError where it runs."""
    if _running(home) is not None:
        raise ConfigError(f"the devnet in {home} runs", code="DEVNET_RUNS", hint="hearth devnet down")
    for part in (STATE, SAVED, "anvil.log", "anvil.json"):
        (home / part).unlink(missing_ok=True)
    for folder in ("networks", "devnet-state"):
        shutil.rmtree(home / folder, ignore_errors=True)


def status(home: Path, *, host: str = "127.0.0.1") -> DevnetStatus:
    """Say what runs under `home`."""
    process = _running(home)
    if process is None:
        return DevnetStatus(running=False)
    url = f"http://{host}:{process.port}"
    files = sorted((home / "networks").glob("*.json"))
    try:
        head: int | None = RpcChain([url], timeout=3.0, attempts=1).head().number
    except ChainError:
        head = None
    return DevnetStatus(True, process.pid, url, head, files[0] if files else None)


def fund(chain: RpcChain, network: Network, address: str, *, wei: int = 0, tokens: int = 0) -> list[str]:
    """Give an account native coin and, on an ERC-20 devnet, base units of the token; both are added.

    Returns the hashes of the mined transactions. Raises ChainError.
    """
    faucet, token = account(FAUCET).address, network.asset.address
    requests = []
    if wei:
        if chain.balance(faucet) < wei + GAS_MONEY:
            chain.rpc("anvil_setBalance", faucet, hex(wei + GAS_MONEY))
        requests.append({"from": faucet, "to": address, "value": hex(wei)})
    if tokens and token is not None:
        requests.append(_minting(token, address, tokens))
    return _send_unlocked(chain, requests)


# ---- the process ----


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Let one `up` of a home folder work at a time; the next one finds what it made."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "devnet.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _pid_file(home: Path) -> Path:
    return home / "anvil.json"


def _running(home: Path) -> _Process | None:
    """Return the process that the home folder names, None (and the stale file gone) where it is not ours or ended."""
    file = _pid_file(home)
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        process = _Process(int(raw["pid"]), int(raw["port"]), str(raw["binary"]))
    except (OSError, ValueError, KeyError, TypeError):
        file.unlink(missing_ok=True)
        return None
    if _alive(process):
        return process
    file.unlink(missing_ok=True)
    return None


def _ended(process: _Process) -> bool:
    """Say whether a process has ended, and collect it where it is this process's child.

    A child is told by its exit alone: while the kernel still loads its program it has no arguments to be known by.
    """
    try:
        return os.waitpid(process.pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return not _alive(process)


def _alive(process: _Process) -> bool:
    """Say whether the process runs and is the anvil that was started: ids are used again."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # somebody else's process has the id now
    try:
        line = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        # No /proc on this system: ask ps.
        shown = subprocess.run(["ps", "-o", "args=", "-p", str(process.pid)], capture_output=True, check=False)
        line = shown.stdout.split()
    return str(process.port).encode() in line and any(b"anvil" in part for part in line[:2])


def free_port() -> int:
    """Return a loopback port that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _refuse_busy(host: str, port: int) -> None:
    """Refuse a port that somebody holds; a chain that was just killed is given the time to let go of its own."""
    end = time.monotonic() + RELEASE_SECONDS
    while _listens(host, port):
        if time.monotonic() >= end:
            raise ConfigError(
                f"something else listens on {host}:{port}",
                code="PORT_BUSY",
                hint=f"hearth devnet up --port {port + 1}",
            )
        time.sleep(0.05)


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def _start(home: Path, host: str, port: int, block_time: int) -> _Process:
    """Start anvil in a session of its own, so that Ctrl-C in this terminal does not stop it."""
    binary = find_anvil(home)
    state = home / STATE
    command = [
        str(binary),
        *("--host", host, "--port", str(port)),
        *("--chain-id", str(LOCAL_CHAIN_ID), "--hardfork", HARDFORK, "--accounts", str(len(KEYS))),
        *("--block-time", str(block_time), "--dump-state", str(home / SAVED), "--state-interval", str(SAVE_SECONDS)),
        # Anvil's block 0 differs by nothing but the second it starts in, and chains are told apart by its hash: by
        # workers that sweep up their own sandboxes, by journals and by locks of keys.
        *(
            ("--load-state", str(state))
            if state.exists()
            else ("--base-fee", str(BASE_FEE + secrets.randbelow(BASE_FEES)))
        ),
    ]
    with (home / "anvil.log").open("ab") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, close_fds=True
        )
    process = _Process(child.pid, port, str(binary))
    replace_text(_pid_file(home), json.dumps(asdict(process)) + "\n")
    return process


def _wait_ready(home: Path, chain: RpcChain, process: _Process, timeout: float) -> None:
    end = time.monotonic() + timeout
    while True:
        try:
            served = chain.chain_id()
        except ChainError:
            served = None
        if served == LOCAL_CHAIN_ID:
            return
        if _ended(process) or time.monotonic() > end:
            raise ChainError(
                f"anvil did not come up on port {process.port}: {_last_words(home)}",
                code="DEVNET_START",
                hint=f"see {home / 'anvil.log'}; then hearth devnet up",
            )
        time.sleep(0.05)


def _answers(home: Path, chain: RpcChain, process: _Process, timeout: float) -> bool:
    """Wait until a chain that was found answers; False where it ended instead, as one that was just killed does."""
    try:
        _wait_ready(home, chain, process, timeout)
    except ChainError:
        if _running(home) is not None:
            raise
        return False
    return True


def _last_words(home: Path) -> str:
    try:
        lines = (home / "anvil.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it said nothing"


# ---- its state ----


@dataclass(frozen=True, slots=True)
class _Logged:
    """A block of anvil's log, with the hashes of its transactions."""

    number: int
    hash: str
    transactions: tuple[str, ...]


def _take_saved(home: Path) -> None:
    """Start from what the last run saved; where it was killed while it wrote that, from what it was started with.

    Anvil writes its state in place, so a kill in that moment leaves a part of it. And each start adds a block 0 of its
    own, of which the next one takes any for the genesis: the first one, the oldest, is the chain's.
    """
    saved = home / SAVED
    try:
        state = json.loads(saved.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        saved.unlink()
        return
    zeros = [block for block in state["blocks"] if int(block["header"]["number"], 16) == 0]
    genesis = min(zeros, key=lambda block: int(block["header"]["timestamp"], 16))
    state["blocks"] = [block for block in state["blocks"] if block is genesis or int(block["header"]["number"], 16)]
    replace_text(home / STATE, json.dumps(state))
    saved.unlink()


def _logged(home: Path) -> list[_Logged]:
    """Return the blocks that anvil's log ends with, oldest first, as far back as their numbers go on."""
    try:
        text = (home / "anvil.log").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    blocks: list[_Logged] = []
    transactions: list[str] = []
    number = -1
    for name, value in _LOGGED.findall(text):
        if name == "Transaction":
            transactions.append(value)
        elif name == "Block Number":
            number = int(value)
        else:
            if blocks and number != blocks[-1].number + 1:
                blocks.clear()
            blocks.append(_Logged(number, value, tuple(transactions)))
            transactions.clear()
    return blocks


def _lost(logged: Sequence[_Logged], chain: RpcChain) -> Lost | None:
    """Compare what the log tells with what the chain holds; what is lost is always the newest part."""

    def gone(block: _Logged) -> bool:
        held = chain.block(block.number)
        return held is None or "0x" + held.hash.hex() != block.hash

    lost = logged[bisect_left(logged, True, key=gone) :]
    if not lost:
        return None
    return Lost(len(lost), lost[-1].number, tuple(tx_hash for block in lost for tx_hash in block.transactions))


# ---- the market on it ----


def _existing(path: Path, chain: RpcChain, erc20: bool) -> Network | None:
    """Return the market that the network file names, None where this chain does not hold it.

    Raises ConfigError where it holds one of the other asset, or the file is none of this version.
    """
    if not path.exists():
        return None
    try:
        network = load_network(path)
    except ConfigError as error:
        # A market of another version: it is wiped when its owner says so, not before.
        raise ConfigError(error.message, code=error.code, hint="hearth devnet down --wipe") from error
    try:
        Market(chain, network).identity.check()
    except ChainError as error:
        if error.code in ("WRONG_CHAIN", "WRONG_CONTRACTS"):
            return None
        raise
    if (network.asset.address is not None) != erc20:
        raise ConfigError(
            f"the devnet's market pays in {network.asset.symbol}",
            code="DEVNET_ASSET",
            hint="hearth devnet down --wipe, then the same command; or HEARTH_HOME=FOLDER for the other one",
        )
    return network


def _market_on(chain: RpcChain, rpc: tuple[str, ...], home: Path, path: Path, erc20: bool) -> tuple[Network, bool]:
    """Return the market of a network file on a chain, deployed where it is not there, and whether it was deployed."""
    network = _existing(path, chain, erc20)
    if network is None:
        network = _deploy(home, chain, rpc, path.stem, erc20)
        save_network(network, path)
        return network, True
    if network.rpc != rpc:
        # The chain runs on another port than last time: whoever reads the file must find it there.
        network = replace(network, rpc=rpc)
        save_network(network, path)
    return network, False


def _deploy(home: Path, chain: RpcChain, rpc: tuple[str, ...], name: str, erc20: bool) -> Network:
    deployer = account(DEPLOYER)
    genesis = chain.genesis_hash()
    journal = TxJournal(
        TxJournal.path_in(home / "devnet-state", LOCAL_CHAIN_ID, genesis, deployer.address),
        chain_id=LOCAL_CHAIN_ID,
        genesis_hash=genesis,
        address=deployer.address,
    )
    try:
        sender = Sender(chain, deployer, journal, SenderConfig(MAX_FEE, poll=0.1, timeout=60.0))
        sender.reconcile()
        asset = _deploy_token(chain, sender) if erc20 else NATIVE
        plan = make_plan(
            DEVNET,
            asset,
            deployer=sender.address,
            nonce=chain.nonce(sender.address, pending=True),
            treasury=account(TREASURY).address,
            council=sender.address,
        )
        return carry_out(plan, TxDeployer(sender, chain), chain, name=name, rpc=rpc)
    finally:
        journal.close()


@lru_cache(maxsize=1)
def token_artifact() -> dict[str, Any]:
    """Return the test token's ABI-free artifact: creation code with its arguments applied."""
    file = resources.files("hearth.local") / "devnet_token.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _deploy_token(chain: RpcChain, sender: Sender) -> Asset:
    from hearth.base.abi import encode

    code = bytes.fromhex(token_artifact()["bytecode"][2:])
    code += encode(["string", "string", "uint8"], ["Devnet token", TOKEN_SYMBOL, TOKEN_DECIMALS])
    nonce = chain.nonce(sender.address, pending=True)
    sent = sender.send(Call(None, code, 0, "deploy.token"), key=f"deploy/token/{nonce}")
    assert sent.tx_hash is not None
    receipt = chain.receipt(sent.tx_hash)
    if receipt is None or receipt.contract is None:
        raise HearthError("the test token has no address", code="DEVNET_TOKEN", hint="hearth devnet up")
    token = receipt.contract
    each = TOKENS_EACH * 10**TOKEN_DECIMALS
    _send_unlocked(chain, [_minting(token, account(i).address, each) for i in range(len(KEYS))])
    return Asset(TOKEN_SYMBOL, TOKEN_DECIMALS, receipt.contract)


def _minting(token: str, to: str, amount: int) -> dict[str, str]:
    """Return the request that mints test tokens; anybody may."""
    from eth_utils.crypto import keccak

    from hearth.base.abi import encode

    data = keccak(text="mint(address,uint256)")[:4] + encode(["address", "uint256"], [to, amount])
    return {"from": account(FAUCET).address, "to": token, "data": "0x" + data.hex()}


def _send_unlocked(chain: RpcChain, requests: Sequence[Mapping[str, str]]) -> list[str]:
    """Send transactions of the faucet, which the local chain signs for, and wait until they are mined."""
    sent = [str(chain.rpc("eth_sendTransaction", request)) for request in requests]
    end = time.monotonic() + 30
    for tx_hash in sent:
        while (receipt := chain.receipt(bytes.fromhex(tx_hash[2:]))) is None:
            if time.monotonic() > end:
                raise ChainError("the faucet's transaction is not mined", code="TX_PENDING", hint="hearth devnet up")
            time.sleep(0.1)
        if not receipt.ok:
            raise ChainError("the faucet's transaction failed", code="DEVNET_FAUCET", hint="hearth devnet up")
    return sent
