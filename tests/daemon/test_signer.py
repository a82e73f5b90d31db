"""A key, its lock, its journal and its sender, put together: on any chain, from any folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from eth_account import Account
from structlog.testing import capture_logs

from hearth.base.errors import ConfigError
from hearth.chain.keys import KeyFile, SignerLock, create_key
from hearth.chain.port import Call
from hearth.chain.tx import Sender
from hearth.chain.tx_journal import TxState
from hearth.client.session import MAX_FEE
from hearth.daemon.signer import lock_path, open_sender, read_account, sender_config
from hearth.market.network import Network
from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit import build
from tests.kit.fake_chain import FakeChain

NOBODY = 65_534
SECRET = b"\x11" * 32
ACCOUNT = Account.from_key(SECRET)
TARGET = "0x" + "cd" * 20
CALL = Call(TARGET, b"\x01\x02\x03\x04", 0, "jobs.claim")


@pytest.fixture
def chain() -> FakeChain:
    chain = FakeChain()
    chain.set_balance(ACCOUNT.address, 10**18)
    chain.on_call(TARGET, CALL.data, lambda call, block: b"")
    return chain


@pytest.fixture
def key(tmp_path: Path) -> KeyFile:
    return create_key(tmp_path / "keys", "hot", "swordfish", secret=SECRET, devnet=True)


@contextmanager
def without_rights() -> Iterator[None]:
    """Be an ordinary user: root may write everywhere."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Make a folder that an ordinary user can reach: pytest's own are root's where root runs it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


# ---- numbers ----


def test_sender_config__local_and_public_chain__one_pace_each(chain: FakeChain) -> None:
    local = build.network(chain)
    assert local.local and local.chain_id == LOCAL_CHAIN_ID
    quick = sender_config(local, 7)
    assert (quick.replace_after, quick.poll, quick.finality, quick.max_fee) == (5.0, 0.1, 4, 7)
    slow = sender_config(replace(local, chain_id=1), 7, timeout=9.0)
    assert (slow.replace_after, slow.poll, slow.finality, slow.timeout) == (20.0, 0.5, 64, 9.0)
    assert sender_config(local, 7, poll=0.02).poll == 0.02


# ---- the lock ----


def test_lock_path__folder_that_can_be_written__lies_beside_the_key(key: KeyFile, tmp_path: Path) -> None:
    assert lock_path(key, tmp_path / "state") == key.lock_path


def test_open_sender__key_folder_read_only__locks_in_the_state_folder(chain: FakeChain, shared: Path) -> None:
    """As under LoadCredential of systemd, for any user."""
    credentials, home = shared / "credentials", shared / "home"
    key = create_key(credentials, "keeper", "swordfish", secret=SECRET, devnet=True)
    home.mkdir()
    if not os.geteuid():
        os.chown(home, NOBODY, NOBODY)
    credentials.chmod(0o555)
    network = build.network(chain)
    config = sender_config(network, MAX_FEE)
    try:
        with without_rights():
            with open_sender(chain, network, key, ACCOUNT, home=home, user_home=home, config=config) as sender:
                assert (home / key.lock_path.name).exists() and not key.lock_path.exists()
                sender.start(CALL, key="claim")
                with pytest.raises(ConfigError) as caught:
                    with open_sender(chain, network, key, ACCOUNT, home=home, user_home=home, config=config):
                        pass
            assert caught.value.code == "KEY_IN_USE"
    finally:
        credentials.chmod(0o700)


def test_open_sender__key_held_elsewhere__waits_then_refuses(chain: FakeChain, key: KeyFile, tmp_path: Path) -> None:
    network = build.network(chain)
    with SignerLock(key.lock_path):
        with pytest.raises(ConfigError) as caught:
            with open_sender(
                chain,
                network,
                key,
                ACCOUNT,
                home=tmp_path / "state",
                user_home=tmp_path,
                config=sender_config(network, MAX_FEE),
                wait_seconds=0.1,
            ):
                pass
    assert (caught.value.code, caught.value.exit_code) == ("KEY_IN_USE", 3)
    assert not list((tmp_path / "state").iterdir())


def test_open_sender__copy_of_the_key_in_another_folder__is_refused_on_the_same_chain(
    chain: FakeChain, key: KeyFile, tmp_path: Path
) -> None:
    """What a provider loses: nothing. Two processes would take each other's nonces, with a lock beside each copy."""
    network, user = build.network(chain), tmp_path / "user"
    config = sender_config(network, MAX_FEE)
    copy = create_key(tmp_path / "copies", "copied", "swordfish", secret=SECRET, devnet=True)
    assert copy.lock_path != key.lock_path

    def opened(on: Network) -> AbstractContextManager[Sender]:
        return open_sender(chain, on, copy, ACCOUNT, home=tmp_path / "two", user_home=user, config=config)

    with open_sender(chain, network, key, ACCOUNT, home=tmp_path / "one", user_home=user, config=config):
        with pytest.raises(ConfigError) as caught, opened(network):
            pass
        assert (caught.value.code, caught.value.exit_code) == ("KEY_IN_USE", 3) and key.address in caught.value.message
        assert caught.value.details["pid"] == os.getpid() and not list((tmp_path / "two").iterdir())
        assert S_IMODE(user.stat().st_mode) == 0o700, "the commands keep their keys in it"
        with opened(replace(network, genesis_hash=b"\x22" * 32)):
            pass
    with opened(network):
        pass


def test_open_sender__no_home_folder_of_the_user__stops_no_service(
    chain: FakeChain, key: KeyFile, tmp_path: Path
) -> None:
    network, user = build.network(chain), tmp_path / "user"
    user.write_text("a file")
    config = sender_config(network, MAX_FEE)
    given: dict[str, Any] = {"home": tmp_path / "state", "user_home": user, "config": config}
    with capture_logs() as logs, open_sender(chain, network, key, ACCOUNT, **given, service=True):
        pass
    assert [line["event"] for line in logs] == ["who signs with a copy of this key will not be seen"]
    with pytest.raises(OSError), open_sender(chain, network, key, ACCOUNT, **given):
        pass


# ---- the journal ----


def test_open_sender__again__knows_what_it_sent(chain: FakeChain, key: KeyFile, tmp_path: Path) -> None:
    network = build.network(chain)
    config = sender_config(network, MAX_FEE)
    for _ in range(2):
        with open_sender(
            chain, network, key, ACCOUNT, home=tmp_path / "state", user_home=tmp_path, config=config
        ) as sender:
            sender.reconcile()
            sender.start(CALL, key="claim")
            assert len(sender.journal.intents(TxState.BROADCAST)) == 1
    assert len(set(chain.sent)) == 1
    other = replace(network, genesis_hash=b"\x22" * 32)
    with open_sender(chain, other, key, ACCOUNT, home=tmp_path / "state", user_home=tmp_path, config=config) as sender:
        assert sender.journal.find("claim") is None


# ---- files ----


def test_read_account__files__unlocked(key: KeyFile, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("swordfish\n")
    password.chmod(0o600)
    found, account = read_account(key.path, password)
    assert found == key
    assert account.address == ACCOUNT.address
    password.write_text("other\n")
    with pytest.raises(ConfigError) as caught:
        read_account(key.path, password)
    assert caught.value.code == "WRONG_PASSWORD"
