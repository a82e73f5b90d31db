"""What nodes say of themselves, by the manifests that their owners' calls carry: strangers' words, within bounds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from hearth.base.text import brief

if TYPE_CHECKING:
    from hearth.client.reports import NodeSays, SaidFigures, SaidGpu
    from hearth.market.manifest import Figures, ListedGpu
    from hearth.market.reads import Market
    from hearth.protocol.types import NodeId

MOST_SHOWN: Final = 240
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
    """Return the GPUs that a node says it has, "-" for none: `2 x "NVIDIA L4" 22 GiB, driver "570.133", 121 TFLOP/s,
    300 GB/s`."""
    if said is None:
        return "-"
    kinds: dict[tuple[str, int, str], list[SaidFigures | None]] = {}
    for one in said["gpus"]:
        kinds.setdefault((one["name"], one["vram_gib"], one["driver"]), []).append(one["measured"])
    told = [
        f"{len(figures)} x {_name(name)} {size} GiB" + (f", driver {_name(driver)}" if driver else "") + _least(figures)
        for (name, size, driver), figures in kinds.items()
    ]
    return brief("; ".join(told), MOST_SHOWN) or "-"


def _least(measured: Sequence[SaidFigures | None]) -> str:
    """Return the rates that each of some GPUs was measured to have at least, "" where one was not measured."""
    found = [one for one in measured if one is not None]
    if len(found) < len(measured):
        return ""
    half, memory = min(one["half_gflops"] for one in found), min(one["memory_mb_s"] for one in found)
    return f", {_thousands(half)} TFLOP/s, {_thousands(memory)} GB/s"


def figures_in_words(figures: Figures) -> str:
    """Return what was measured of a GPU: "150 TFLOP/s, 950 GB/s, 25 GB/s from the host, 23.6 GiB on 2026-11-30"."""
    half, memory, host = map(_thousands, (figures.half_gflops, figures.memory_mb_s, figures.from_host_mb_s))
    day = datetime.fromtimestamp(figures.at, UTC).date()
    return f"{half} TFLOP/s, {memory} GB/s, {host} GB/s from the host, {figures.memory_mib / 1024:.1f} GiB on {day}"


def _thousands(count: int) -> str:
    """Return a count in thousands, with three digits at least."""
    return f"{count / 1_000:.0f}" if count >= 99_950 else f"{count / 1_000:.3g}"


def _said(gpu: ListedGpu) -> SaidGpu:
    measured = None if gpu.measured is None else cast("SaidFigures", asdict(gpu.measured))
    return {"name": gpu.name, "driver": gpu.driver, "vram_gib": gpu.vram_gib, "measured": measured}


def _name(said: str) -> str:
    """Return a stranger's name in quotes, without what would end them."""
    return '"' + said.replace('"', " ") + '"' if said else "a GPU"
