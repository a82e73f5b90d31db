"""What nodes say of themselves, by the manifests that their owners' calls carry: strangers' words, within bounds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hearth.base.text import brief

if TYPE_CHECKING:
    from hearth.client.reports import NodeSays, SaidFigures, SaidGpu
    from hearth.market.manifest import Figures, ListedGpu
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
            found[node] = {
                "software": manifest.software,
                "country": manifest.country,
                "gpus": [_said(one) for one in manifest.gpus],
            }
    return found


def in_words(said: NodeSays | None) -> str:
    """Return the GPUs that a node says it has: "2 x NVIDIA L4 22 GiB, driver 570.133", "-" for none."""
    if said is None:
        return "-"
    kinds: dict[tuple[str, int, str], list[SaidFigures | None]] = {}
    for one in said["gpus"]:
        kinds.setdefault((one["name"], one["vram_gib"], one["driver"]), []).append(one["measured"])
    told = [
        f"{len(measured)} x {_name(name)} {size} GiB"
        + (f", driver {_name(driver)}" if driver else "")
        + _least(measured)
        for (name, size, driver), measured in kinds.items()
    ]
    return brief("; ".join(told), MOST_SHOWN) or "-"


def _least(measured: Sequence[SaidFigures | None]) -> str:
    """Return the rates that each of some GPUs was measured to have at least, "" where one was not measured."""
    found = [one for one in measured if one is not None]
    if len(found) < len(measured):
        return ""
    halves = [one["half_gflops"] for one in found if one["half_gflops"] is not None]
    half = f", {_tera(min(halves))}" if len(halves) == len(found) else ""
    return f"{half}, {_giga(min(one['memory_mb_s'] for one in found))}"


def figures_in_words(figures: Figures) -> str:
    """Return what was measured of a GPU: "150 TFLOP/s, 950 GB/s, 25 GB/s from the host, 23.6 GiB on 2026-11-30"."""
    half = "no units for matrices" if figures.half_gflops is None else _tera(figures.half_gflops)
    rates = f"{half}, {_giga(figures.memory_mb_s)}, {_giga(figures.from_host_mb_s)} from the host"
    day = datetime.fromtimestamp(figures.at, UTC).date()
    return f"{rates}, {figures.memory_mib / 1024:.1f} GiB on {day}"


def _tera(gflops: int) -> str:
    return f"{gflops / 1_000:.3g} TFLOP/s" if gflops < 10**6 else f"{gflops // 1_000} TFLOP/s"


def _giga(mb_s: int) -> str:
    return f"{mb_s / 1_000:.3g} GB/s" if mb_s < 10**6 else f"{mb_s // 1_000} GB/s"


def _said(gpu: ListedGpu) -> SaidGpu:
    figures = gpu.measured
    measured: SaidFigures | None = None
    if figures is not None:
        measured = {
            "at": figures.at,
            "memory_mib": figures.memory_mib,
            "from_host_mb_s": figures.from_host_mb_s,
            "memory_mb_s": figures.memory_mb_s,
            "half_gflops": figures.half_gflops,
        }
    return {"name": gpu.name, "driver": gpu.driver, "vram_gib": gpu.vram_gib, "measured": measured}


def _name(said: str) -> str:
    """Return a name without what separates ours."""
    return said.replace(",", " ").replace(";", " ") or "a GPU"
