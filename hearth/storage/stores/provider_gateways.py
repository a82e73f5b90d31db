"""The gateways that a stranger names: read where no store of one's own has a block, and trusted with nothing.

Whoever names them chooses where they lead and how they answer. So each leads to public addresses alone (but on a local
chain, where this machine itself may be meant), is asked by `GatewayStore` with all that it defends, and has a deadline
for a block. One that fails again and again, or lies once, is asked no more; and all of them together may keep a reader
waiting for so long only (`Patience`). Source: commands.md "Reading results".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.stores.base import ReadOnlyStore, Store, StoreBase, StoreStatus
from hearth.storage.stores.chain import none_gives
from hearth.storage.stores.gateway import GatewayStore

BLOCK_SECONDS: Final = 30.0
"""How long one gateway may take for one block."""
IN_VAIN_SECONDS: Final = 60.0
"""How long all the gateways of one stranger may keep a reader waiting, beside what their blocks are worth."""
FLOOR: Final = 16 << 10
"""Bytes that are worth a second of waiting, and what a block counts at least: of small ones few come in a second."""
STRIKES: Final = 3
"""Failures in a row after which a gateway is asked no more; bytes that lie are as good as all of them."""
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(slots=True)
class Patience:
    """How long strangers may keep a reader waiting: `seconds`, of which a block that came gives back what it is worth.

    It never grows beyond `seconds`: many blocks that come fast pay for no stall after them.
    """

    seconds: float
    _waited: float = 0.0

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return self.seconds - self._waited

    def count(self, seconds: float, size: int | None = None) -> None:
        """Count a wait, and what it brought: the bytes of a block, None for nothing."""
        worth = 0.0 if size is None else max(size, FLOOR) / FLOOR
        self._waited = max(0.0, self._waited + seconds - worth)


def provider_gateway(url: str, *, local: bool) -> GatewayStore:
    """Return a gateway that a stranger named, which leads to public addresses alone.

    On a local chain it may be on this machine by its own words, and nowhere else inside.
    """
    return GatewayStore(url, untrusted=not (local and (urlsplit(url).hostname or "") in LOOPBACK))


class ProviderGateways(ReadOnlyStore):
    """Read from the gateways at `urls`, which a stranger named; `whose` says in sentences who.

    `local` says that this is a local chain, on which a gateway of this machine may be meant. `shared` is the patience
    with several strangers together, beside that with each; after `until`, a time of `time.monotonic`, none is asked.
    `told` hears once of each gateway that gives a block.
    """

    def __init__(
        self,
        whose: str,
        urls: Sequence[str],
        *,
        local: bool,
        shared: Patience | None = None,
        until: float = math.inf,
        told: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Contact nobody yet. The URLs are ones that `hearth.base.addresses.gateway_fault` finds no fault in."""
        super().__init__(f"of {whose}")
        self._whose, self._told, self._until = whose, told, until
        self._gateways = [provider_gateway(url, local=local) for url in urls]
        self._strikes = dict.fromkeys(self._gateways, 0)
        self._named: set[GatewayStore] = set()
        self._patience = [Patience(IN_VAIN_SECONDS), *([] if shared is None else [shared])]

    def _read(self, cid: Cid, timeout: float) -> bytes:
        end = min(time.monotonic() + timeout, self._until)
        errors: list[StorageError] = []
        for gateway in [one for one in self._gateways if self._strikes[one] < STRIKES]:
            left = min(one.left for one in self._patience)
            if left <= 0:
                errors.append(self._down(f"the gateways of {self._whose} kept us waiting for too long"))
                break
            left = min(left, BLOCK_SECONDS, end - time.monotonic())
            if left <= 0:
                break
            began = time.monotonic()
            try:
                block = gateway.get_block(cid, left)
            except StorageError as error:
                self._count(time.monotonic() - began)
                self._judge(gateway, error)
                errors.append(error)
                continue
            self._count(time.monotonic() - began, len(block))
            self._praise(gateway)
            return block
        raise none_gives(cid, errors or [self._down(f"no gateway of {self._whose} is asked any more")])

    def _count(self, seconds: float, size: int | None = None) -> None:
        for patience in self._patience:
            patience.count(seconds, size)

    def _judge(self, gateway: GatewayStore, error: StorageError) -> None:
        """Note what a gateway did: who lacks a block has done nothing wrong."""
        if isinstance(error, BlockCorrupt | TooLarge):
            self._strikes[gateway] = STRIKES
        elif not isinstance(error, BlockMissing):
            self._strikes[gateway] += 1

    def _praise(self, gateway: GatewayStore) -> None:
        """Ask a gateway that gave a block before the others, and tell of it once."""
        self._strikes[gateway] = 0
        self._gateways.sort(key=lambda one: one is not gateway)
        if gateway not in self._named:
            self._named.add(gateway)
            self._told(gateway.url.removeprefix("gateway+"))

    def status(self) -> StoreStatus:
        """Return whether any of them is asked, without asking."""
        asked = [one.url for one in self._gateways if self._strikes[one] < STRIKES]
        return StoreStatus(self.url, bool(asked), False, ", ".join(asked) or "none is asked any more")

    def close(self) -> None:
        """Close idle connections."""
        for gateway in self._gateways:
            gateway.close()


class LastResort(StoreBase):
    """Read from `first`, and what it does not give from the store that `last` opens; all else is `first`'s.

    `last` is called once, at the first block that `first` does not give; None from it is no store at all. Once that
    store has given a block it is asked first until it lacks one: a store that searches long for what it has not would
    else be waited for at every block of a tree that only the other has. Of the time for a block `first` has the part
    `first_share`: all of it, where the time for all blocks together leaves the last its own.
    """

    def __init__(self, first: Store, last: Callable[[], Store | None], *, first_share: float = 1.0) -> None:
        super().__init__(first.url, writable=first.writable)
        self._first, self._open, self._first_share = first, last, first_share
        self._opened = False
        self._last: Store | None = None
        self._gives = False

    def _read(self, cid: Cid, timeout: float) -> bytes:
        errors: list[StorageError] = []
        stores: list[Store] = [self._first]
        if self._gives and self._last is not None:
            stores.insert(0, self._last)
        for store in stores:
            try:
                return store.get_block(cid, timeout * (self._first_share if store is self._first else 1.0))
            except (StoreDown, BlockMissing, BlockCorrupt, TooLarge) as error:
                self._gives = False
                errors.append(error)
        last = self._resort() if len(stores) == 1 else None
        if last is not None:
            try:
                block = last.get_block(cid, timeout)
            except StorageError as error:
                errors.append(error)
            else:
                self._gives = True
                return block
        raise errors[0] if len(errors) == 1 else none_gives(cid, errors)

    def _resort(self) -> Store | None:
        """Return the last store, opened at the first call."""
        if not self._opened:
            self._opened, self._last = True, self._open()
        return self._last

    def _write(self, cid: Cid, data: bytes) -> None:
        self._first.put_block(data, cid.codec)

    def _pin_added(self, cid: Cid) -> None:
        self._first.pin(cid)

    def try_write(self) -> None:
        """Try the first store."""
        self._first.try_write()

    def has(self, cid: Cid) -> bool:
        """Return whether the first store has the block."""
        return self._first.has(cid)

    def pin(self, cid: Cid) -> None:
        """Copy the whole DAG into the first store, and pin it there."""
        for here, block in unixfs.blocks_of(cid, self):
            self._first.put_block(block, here.codec)
        self._first.pin(cid)

    def unpin(self, cid: Cid) -> None:
        """Let the DAG go in the first store."""
        self._first.unpin(cid)

    def collect(self) -> int:
        """Clear the first store."""
        return self._first.collect()

    def status(self) -> StoreStatus:
        """Return the first store's status."""
        return self._first.status()

    def close(self) -> None:
        """Close the last store; the first is its owner's."""
        if self._last is not None:
            self._last.close()
