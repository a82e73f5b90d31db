"""The one place where a key, its lock, its journal and the sender are put together.

Nothing here asks the chain: a program checks first that it is the right one, then calls `Sender.reconcile`, then sends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from hearth.base.files import Spare
from hearth.chain.keys import KeyFile, SignerLock, read_key, read_password, unlock
from hearth.chain.tx import Sender, SenderConfig, Signer
from hearth.chain.tx_journal import TxJournal
from hearth.market.network import Network

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from hearth.chain.port import ChainPort

log = structlog.get_logger("signer")


class OnChain(Protocol):
    """What says which chain it is on: a market's network file, or the deployment that writes one."""

    @property
    def chain_id(self) -> int:
        """Return the chain id."""

    @property
    def genesis_hash(self) -> bytes:
        """Return the hash of block 0."""


def sender_config(network: Network, max_fee: int, **changes: Any) -> SenderConfig:
    """Return how transactions of a market are paid, at most `max_fee` wei per gas, and waited for; `changes` are other
    fields of SenderConfig.

    Its own defaults are those of a public chain, taken to have blocks of up to twelve seconds: what two of them left
    out is replaced by a dearer transaction, and 64 of them are final. A local chain has blocks of a second and nobody
    to compete with.
    """
    pace = {"replace_after": 5.0, "poll": 0.1, "finality": 4} if network.local else {}
    return SenderConfig(max_fee, **{**pace, **changes})


def read_account(keystore: Path, password_file: Path) -> tuple[KeyFile, LocalAccount]:
    """Return a key and its account, unlocked with the password in a file. Raises ConfigError."""
    key = read_key(keystore)
    return key, unlock(key, read_password(password_file))


def lock_path(key: KeyFile, home: Path) -> Path:
    """Return where a key's lock is: beside the key, or in `home` where that folder cannot be written.

    Service managers hand keys over in folders that cannot be written (LoadCredential of systemd).
    """
    beside = key.lock_path
    return beside if os.access(beside.parent, os.W_OK, effective_ids=True) else home / beside.name


def shared_lock(user_home: Path, on: OnChain, key: KeyFile) -> Path:
    """Return where the lock of an address on one chain is that all copies of its key have in common.

    `user_home` is the home folder of this user's commands: a copy has another lock beside it, and the same nonces.
    """
    return user_home / "locks" / f"{on.chain_id}-{on.genesis_hash.hex()[:8]}" / key.lock_path.name


def _make_shared(path: Path) -> Path:
    """Make the file of a shared lock. Raises OSError."""
    for folder in (path.parents[2], path.parents[1], path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)
    return path


@contextmanager
def open_sender(
    port: ChainPort,
    on: OnChain,
    key: KeyFile,
    account: Signer,
    *,
    home: Path,
    user_home: Path,
    config: SenderConfig,
    service: bool = False,
    wait_seconds: float = 0.0,
    lock: Path | None = None,
    spare: Spare | None = None,
) -> Iterator[Sender]:
    """Hold `key` and its journal for this process, and yield what sends for it.

    `home` is the private folder of the journal; two chains or keys have two journals in it. `user_home` is that of this
    user's commands, in which copies of the key meet; a `service` may have none that it can write, and says so. `lock`
    is the lock's file, by default that of `lock_path`, `spare` the room that its journal has on a full disk. Raises
    ConfigError KEY_IN_USE where another process holds the key or a copy of it for `wait_seconds`, StorageError JOURNAL
    where the disk refuses, and OSError where `user_home` cannot be written.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    chain_id, genesis = on.chain_id, on.genesis_hash
    locks = [lock or lock_path(key, home)]
    try:
        locks.append(_make_shared(shared_lock(user_home, on, key)))
    except OSError as error:
        if not service:
            raise
        log.warning("who signs with a copy of this key will not be seen", why=str(error))
    with ExitStack() as held:
        for one in locks:
            held.enter_context(SignerLock(one, wait_seconds=wait_seconds))
        path = TxJournal.path_in(home, chain_id, genesis, key.address)
        journal = TxJournal(path, chain_id=chain_id, genesis_hash=genesis, address=key.address, spare=spare)
        with closing(journal):
            yield Sender(port, account, journal, config, chain_id=chain_id)
