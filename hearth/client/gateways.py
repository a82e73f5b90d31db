"""The gateways that nodes name in their manifests: where a result is read from that no store here has."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError
from hearth.protocol.types import NodeId

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.market.manifest import Named
    from hearth.storage.stores import Store

NOBODY: Final = NodeId(0)
LOOK_SECONDS: Final = 60.0
"""How long the chain is searched for where nodes name their manifests, at each search."""
IN_VAIN_SECONDS: Final = 300.0
"""How long the gateways of all nodes together may keep one command waiting, beside what their blocks are worth."""
MAX_NODES: Final = 64
"""Nodes whose gateways one command asks."""


class NodeGateways:
    """What one command may fetch of nodes: the session's store, and as the last resort the gateways of a node.

    Nothing is looked for, and nobody asked, before a block is missing.
    """

    def __init__(self, session: Session, nodes: Iterable[NodeId] = (), *, until: float = float("inf")) -> None:
        """Know of `nodes`, which are then searched for at once; after `until` (`time.monotonic`) nobody is asked."""
        from hearth.storage.stores import Patience

        self._session = session
        self._until = until
        self._stores: dict[NodeId, Store] = {}
        self._known, self._searched = set(nodes), set[NodeId]()
        self._named: dict[NodeId, Named] = {}
        self._patience = Patience(IN_VAIN_SECONDS)
        self._asked = 0

    def know(self, nodes: Iterable[NodeId]) -> None:
        """Take up nodes of which something may be fetched."""
        self._known.update(nodes)

    def behind(self, node: NodeId) -> Store:
        """Return the store for what a node has made, the session's for NOBODY; it is not to be closed."""
        from hearth.storage.stores import LastResort

        if node == NOBODY:
            return self._session.store
        if node not in self._stores:
            self.know([node])
            self._stores[node] = LastResort(self._session.store, partial(self._open, node))
        return self._stores[node]

    def _open(self, node: NodeId) -> Store | None:
        """Return the gateways that a node's manifest names; None where there is none, or it cannot be had."""
        from hearth.storage.stores import ProviderGateways

        tell = self._session.tell
        try:
            gateways = self._gateways(node)
        except ChainError as error:
            tell("note", {"text": f"where node {node} has gateways cannot be read: {error.message}"})
            return None
        if not gateways:
            return None
        self._asked += 1
        if self._asked > MAX_NODES:
            tell("note", {"text": f"the gateways of {MAX_NODES} nodes were asked; those of node {node} are not"})
            return None
        what = f"no store here has what node {node} made: the gateways that it names are asked"
        tell("note", {"text": f"{what}, {len(gateways)} in all"})
        return ProviderGateways(
            f"node {node}",
            gateways,
            local=self._session.local,
            shared=self._patience,
            until=self._until,
            told=lambda url: tell("note", {"text": f"blocks come from {url}, a gateway of node {node}"}),
        )

    def _gateways(self, node: NodeId) -> tuple[str, ...]:
        """Return what a node names, from the last call that says it. Raises ChainError."""
        from hearth.market.manifest import find_manifest, last_named

        market = self._session.market
        if node not in self._searched:
            # All at once: a search for many nodes asks no more of a provider than one for a single node.
            until, wanted = min(time.monotonic() + LOOK_SECONDS, self._until), self._known - self._searched
            self._named |= last_named(market, wanted, market.port.head(), until=until)
            self._searched |= wanted
        named = self._named.get(node)
        found = None if named is None else find_manifest(market, named, self._session.store)
        return () if found is None else found.gateways
