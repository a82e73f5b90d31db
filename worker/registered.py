"""How what a node has registered on chain differs from what worker.toml offers, and what makes them equal again.

An offer counts as the chain has it: a price, or a size, that is changed in the file alone changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import Node, Offer
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.protocol.units import Asset, format_rate, show_rate
from hearth.protocol.zones import ZONES
from worker.settings import UPDATE, OfferSettings


def differences(wish: OfferSettings, offer: Offer, node: Node, asset: Asset) -> list[tuple[str, str]]:
    """Return what differs, in words, each with the command that registers it; nothing where nothing does.

    `offer` is what worker.toml comes to on this machine now. A price that waits for the market's notice counts as
    registered. What the file leaves out is the machine's and changes by itself: memory and cores are told where the
    chain has more of them, the disk never, runtimes where the chain lacks one.
    """
    found = list(_sizes(wish, offer, node.offer))
    asked = node.next_ask if node.offer.pending else node.offer.ask
    mine, theirs = show_rate(offer.ask, asset), show_rate(asked, asset)
    rows = [(text, UPDATE) for text in found]
    if mine != theirs:
        # The owner may have changed it on chain since: to register the file's again would undo that.
        fix = f'hearth worker price "{wish.price}", or set offer.price = "{format_rate(asked, asset)}" in worker.toml'
        rows.insert(0, (_differs("price", mine, theirs), fix))
    return rows


def gateway_differences(urls: Sequence[str], named: Sequence[str]) -> list[tuple[str, str]]:
    """Return how the gateways of worker.toml differ from those that the chain's manifest names, as `differences`."""
    if set(urls) == set(named):
        return []
    mine, theirs = ", ".join(urls) or "nothing", ", ".join(named) or "nothing"
    return [(f"gateway.urls is {mine} here, and the chain's manifest has {theirs}", UPDATE)]


def _sizes(wish: OfferSettings, mine: Offer, theirs: Offer) -> Iterator[str]:
    """Yield what differs, but for the price."""
    if mine.slots != theirs.slots:
        yield _differs("slots", mine.slots, theirs.slots)
    if mine.gpu_count != theirs.gpu_count:
        yield _differs("gpus", f"{mine.gpu_count} a slot", theirs.gpu_count)
    if mine.gpu_count and theirs.gpu_count:
        if mine.vram_gib != theirs.vram_gib:
            yield _differs("gpus", f"of {mine.vram_gib} GiB", f"{theirs.vram_gib} GiB")
        if mine.tier != theirs.tier:
            yield _differs("gpus", f"of tier {mine.tier}", f"tier {theirs.tier}")
    if mine.cores != theirs.cores and (wish.cores is not None or mine.cores < theirs.cores):
        yield _differs("cores", mine.cores, theirs.cores)
    if mine.ram_gib != theirs.ram_gib and (wish.memory is not None or mine.ram_gib < theirs.ram_gib):
        yield _differs("memory", f"{mine.ram_gib} GiB", f"{theirs.ram_gib} GiB")
    if mine.disk_gib != theirs.disk_gib and wish.disk is not None:
        yield _differs("disk", f"{mine.disk_gib} GiB", f"{theirs.disk_gib} GiB")
    if mine.zone != theirs.zone:
        yield _differs("country", f"{wish.country} ({ZONES[mine.zone].title})", ZONES[theirs.zone].title)
    ours, there = _names(mine.runtimes), _names(theirs.runtimes)
    if ours - there or (wish.runtimes is not None and ours != there):
        yield _differs("runtimes", " and ".join(sorted(ours)), " and ".join(sorted(there)))


def _names(flags: RuntimeFlag) -> set[str]:
    return {name for name, kind in RUNTIMES.items() if flags & kind.flag}


def _differs(name: str, mine: object, theirs: object) -> str:
    return f"offer.{name} is {mine} here, and the chain has {theirs}"
