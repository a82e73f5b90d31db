"""What nodes' manifests name, by the calls that the worker's watcher has seen: each is read once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from hearth.market.manifest import Named, find_manifest
from hearth.market.reads import Market
from hearth.protocol.types import NodeId

AGAIN_SECONDS: Final = 600.0
"""After which a manifest that could not be had is looked for again."""


class Manifests:
    """The gateways that nodes name: `learn` asks the chain, in the thread that reads it, and `known` may any."""

    def __init__(
        self, market: Market, named: Callable[[NodeId], Named | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._market = market
        self._named = named
        self._clock = clock
        self._found: dict[NodeId, tuple[bytes, float, tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    def learn(self, node: NodeId) -> tuple[str, ...]:
        """Return the gateways of a node's last manifest, nothing where it names none. Raises ChainError."""
        named = self._named(node)
        if named is None:
            return ()
        with self._lock:
            digest, until, gateways = self._found.get(node, (b"", 0.0, ()))
        if digest == named.digest and self._clock() < until:
            return gateways
        found = find_manifest(self._market, named)
        stays = float("inf") if found is not None else self._clock() + AGAIN_SECONDS
        gateways = () if found is None else found.gateways
        with self._lock:
            self._found[node] = (named.digest, stays, gateways)
        return gateways

    def known(self, node: NodeId) -> tuple[str, ...]:
        """Return what was learnt of a node."""
        with self._lock:
            return self._found.get(node, (b"", 0.0, ()))[2]
