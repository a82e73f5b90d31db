"""This worker's own gateway: its store's blocks over HTTP, and the manifest that says where.

What is served is public, named by its hash, and the same for everybody. What is not in the store is not searched for:
a stranger who asks for what he likes must not have this machine ask others. Source:
commands.md "Files of blocks, and gateways".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from hearth import __version__
from hearth.base.errors import ConfigError
from hearth.market.manifest import ListedGpu, Manifest
from hearth.storage import canonical
from hearth.storage.cid import Cid
from hearth.storage.stores import Store, StoreBase, StoreStatus, open_store
from hearth.storage.stores.gateway_server import GatewayServer
from worker.gpu import probing
from worker.gpu.figures import measured_now
from worker.gpu.port import GpuInfo
from worker.settings import Settings

_CHOOSE: Final = "choose another address in [gateway] listen: port 0 takes any free one, an empty text serves nothing"


class Here(StoreBase):
    """Give what a store itself holds, and nothing that it would have to search for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.url, writable=False)
        self._store = store

    def _read(self, cid: Cid, timeout: float) -> bytes:
        if not self._store.has(cid):
            raise self._missing(cid)
        return self._store.get_block(cid, timeout)

    def _write(self, cid: Cid, data: bytes) -> None:
        self._require_writable()

    def has(self, cid: Cid) -> bool:
        """Return whether the store holds the block."""
        return self._store.has(cid)

    def pin(self, cid: Cid) -> None:
        """Refuse: it is only read."""
        self._require_writable()

    def unpin(self, cid: Cid) -> None:
        """Refuse: it is only read."""
        self._require_writable()

    def status(self) -> StoreStatus:
        """Return the store's status."""
        return self._store.status()


def own_store(settings: Settings) -> Store:
    """Open the first store that can be written, in which results are. Raises ConfigError where there is none."""
    for url in settings.stores:
        store = open_store(url)
        if store.writable:
            return store
        store.close()
    raise ConfigError(
        "none of the stores can be written, so that no result would be in it",
        hint="add a folder or a Kubo to stores in worker.toml, then hearth worker doctor",
        component="worker",
        field="stores",
    )


def manifest_of(settings: Settings) -> Manifest:
    """Return what this machine says of itself, by its settings and what is in it now."""
    named = settings.offer.gpu_names
    found = () if settings.offer.gpus == "none" else probing.probe(named).gpus
    return Manifest(
        software=f"hearth {__version__}",
        country=settings.offer.country,
        gpus=tuple(_listed(one, settings.home) for one in found if one.vram_gib and (not named or one.uuid in named)),
        gateways=settings.gateway.urls,
    )


def _listed(gpu: GpuInfo, home: Path) -> ListedGpu:
    measured = measured_now(gpu, home)
    return ListedGpu(gpu.name, gpu.driver, gpu.vram_gib, None if measured is None else measured.figures)


def store_manifest(settings: Settings) -> bytes:
    """Store this worker's manifest, and return it in canonical form. Raises ConfigError, StorageError."""
    document = manifest_of(settings).document()
    with closing(own_store(settings)) as store:
        store.put_json(document)
    return canonical.encode(document)


@contextmanager
def serving(settings: Settings, address: tuple[str, int]) -> Iterator[GatewayServer]:
    """Serve this worker's own store at an address while the context is open.

    Raises ConfigError where the address cannot be had, or no store is the worker's own.
    """
    host, port = address
    with closing(own_store(settings)) as store:
        try:
            server = GatewayServer(Here(store), host, port)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(
                f"gateway.listen: {settings.gateway.listen} cannot be had: {why}",
                hint=_CHOOSE,
                component="worker",
                field="gateway.listen",
            ) from error
        with server:
            yield server
