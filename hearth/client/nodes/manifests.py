"""What nodes say of themselves, by the manifests that their owners' calls carry: strangers' words, within bounds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from hearth.base.text import brief

if TYPE_CHECKING:
    from hearth.client.reports import NodeSays, SaidGpu
    from hearth.market.reads import Market
    from hearth.protocol.types import NodeId

MOST_SHOWN: Final = 120
"""Characters of a line that what one node says may take."""
SECONDS: Final = 20.0
"""How long all of them may take; what is not found by then is missing."""


def said_by(market: Market, nodes: Iterable[NodeId]) -> dict[NodeId, NodeSays]:
    """Return what each node says, as far as its last call carries it. Raises ChainError."""
    from hearth.market.manifest import find_manifest, last_named

    until = time.monotonic() + SECONDS
    found: dict[NodeId, NodeSays] = {}
    for node, named in last_named(market, nodes, market.port.head(), until=until).items():
        manifest = find_manifest(market, named) if time.monotonic() < until else None
        if manifest is not None:
            gpus: list[SaidGpu] = [
                {"name": one.name, "driver": one.driver, "vram_gib": one.vram_gib} for one in manifest.gpus
            ]
            found[node] = {"software": manifest.software, "country": manifest.country, "gpus": gpus}
    return found


def in_words(said: NodeSays | None) -> str:
    """Return the GPUs that a node says it has: "2 x NVIDIA L4 22 GiB, driver 570.133", "-" for none."""
    if said is None:
        return "-"
    kinds = Counter((one["name"], one["vram_gib"], one["driver"]) for one in said["gpus"])
    told = [
        f"{count} x {_name(name)} {size} GiB" + (f", driver {_name(driver)}" if driver else "")
        for (name, size, driver), count in kinds.items()
    ]
    return brief("; ".join(told), MOST_SHOWN) or "-"


def _name(said: str) -> str:
    """Return a name without what separates ours."""
    return said.replace(",", " ").replace(";", " ") or "a GPU"
