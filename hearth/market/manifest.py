"""What a node says of itself beside the chain: its manifest, and where that is found.

The chain has the manifest's digest alone, in the last NodeRegistered or OfferChanged of the node. The call that named
it carries the document behind its arguments, where no contract looks: whoever can read the chain can read it, also of a
node whose store nobody reaches. It is a stranger's word: what is no manifest is refused, what is out of bounds in one
is left out. Source: protocol.md "Manifest".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hearth.base.addresses import gateway_fault
from hearth.base.errors import BadDocument, StorageError
from hearth.base.text import one_line
from hearth.chain.port import Block
from hearth.market.events import NodeRegistered, OfferChanged, topic_of
from hearth.market.reads import Market
from hearth.protocol.types import MAX_VRAM_GIB, NodeId
from hearth.storage import canonical

if TYPE_CHECKING:
    from hearth.storage.stores import Store

VERSION: Final = 1
MAX_BYTES: Final = 16 << 10
"""Of a document: what a call carries is paid for by the byte, and read by everybody."""
MAX_GATEWAYS: Final = 4
MAX_GPUS: Final = 64
MAX_TEXT: Final = 64
"""Characters of a name."""
SPAN: Final = 10_000
"""Blocks of logs that are asked for at once."""
MAX_IDS: Final = 256
"""Nodes that a search for logs names; of more, the logs of all are read."""
STORE_SECONDS: Final = 5.0
"""How long one's own store may take for a manifest that its call does not carry."""
MAX_FIGURE: Final = 1 << 36
"""Of what was measured of a GPU, and of when: far more than any has."""
_PLACES: Final = 4
"""Places of a call's data at which a document is looked for: a wallet's own call may hold that of an owner."""
_AFTER: Final = (32, 64)
"""Bytes from a digest to the document behind the arguments: of `update_offer` it is the last one, of `register` the
last but one."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a program got of a GPU in a container, `at` a Unix time.

    MiB of memory, 10^6 bytes a second from the host and within that memory, and 10^9 half-precision operations a
    second.
    """

    at: int
    memory_mib: int
    from_host_mb_s: int
    memory_mb_s: int
    half_gflops: int


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """A GPU as a manifest lists it; `measured` is None where nothing was."""

    name: str
    driver: str
    vram_gib: int
    measured: Figures | None = None

    def document(self) -> dict[str, Any]:
        """Return what a manifest says of it."""
        measured = {} if self.measured is None else {"measured": asdict(self.measured)}
        return {"name": _text(self.name), "driver": _text(self.driver), "vram_gib": self.vram_gib, **measured}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a node says of itself. `gateways` are addresses at which its results can be fetched, of which each is one
    that anybody may be sent to (`gateway_fault`)."""

    software: str = ""
    country: str = ""
    gpus: tuple[ListedGpu, ...] = ()
    gateways: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the document, within its bounds."""
        return {
            "version": VERSION,
            "software": _text(self.software),
            "country": _text(self.country),
            "gpus": [one.document() for one in self.gpus[:MAX_GPUS]],
            "gateways": list(self.gateways[:MAX_GATEWAYS]),
        }


class Named(NamedTuple):
    """A manifest as a log names it: whose it is, its digest, and the transaction that named it."""

    node: NodeId
    digest: bytes
    tx_hash: bytes


def manifest_of(document: Any) -> Manifest:
    """Return what a document says, unknown keys aside. Raises BadDocument for what is no manifest.

    Of one that is, whatever is out of bounds is left out: an address of no form, a fifth one, a name without end.
    """
    if not isinstance(document, dict) or type(document.get("version")) is not int or document["version"] != VERSION:
        raise _bad("it has no version that is known here")
    gpus, gateways = document.get("gpus", []), document.get("gateways", [])
    if not isinstance(gpus, list) or not isinstance(gateways, list):
        raise _bad("its gpus or gateways are no list")
    good = [one for one in gateways[:MAX_GATEWAYS] if isinstance(one, str) and not gateway_fault(one)]
    return Manifest(
        software=_text(document.get("software")),
        country=_text(document.get("country")),
        gpus=tuple(_gpu(one) for one in gpus[:MAX_GPUS] if isinstance(one, dict)),
        gateways=tuple(dict.fromkeys(good)),
    )


def read_manifest(raw: bytes) -> Manifest:
    """Return what the bytes of a document say. Raises StorageError for what is no manifest, or larger than one."""
    if len(raw) > MAX_BYTES:
        raise _bad(f"it has {len(raw)} bytes, and {MAX_BYTES} are read")
    return manifest_of(canonical.decode(raw))


def carried(data: bytes, digest: bytes) -> bytes | None:
    """Return the document that a call's data carry, by its digest; None where they carry none.

    The digest is an argument of the call, and the document stands behind the last one, also where a wallet's call has
    the owner's inside. Nothing but its digest says where it ends.
    """
    at = -1
    for _ in range(_PLACES):
        at = data.find(digest, at + 1)
        if at < 0:
            return None
        for after in _AFTER:
            found = _beginning(data[at + after : at + after + MAX_BYTES], digest)
            if found is not None:
                return found
    return None


def _beginning(text: bytes, digest: bytes) -> bytes | None:
    """Return the beginning of some bytes that is an object of this digest, None where none is."""
    if not text.startswith(b"{"):
        return None
    hashed, begun = hashlib.sha256(), 0
    while (end := text.find(b"}", begun) + 1) > 0:
        hashed.update(text[begun:end])
        begun = end
        if hashed.copy().digest() == digest:
            return text[:end]
    return None


def last_named(market: Market, nodes: Iterable[NodeId], head: Block, *, until: float) -> dict[NodeId, Named]:
    """Return what each node's last log of a manifest names, as far as it is found by a time of `time.monotonic`.

    The newest blocks are read first. Raises ChainError.
    """
    wanted, found = set(nodes), dict[NodeId, Named]()
    last = head.number
    ids = [int(node).to_bytes(32, "big") for node in wanted] if len(wanted) <= MAX_IDS else None
    topics = ([topic_of(NodeRegistered), topic_of(OfferChanged)], ids)
    while last >= market.network.deploy_block and wanted - found.keys() and time.monotonic() < until:
        first = max(market.network.deploy_block, last - SPAN + 1)
        logs = market.port.logs([market.network.nodes], topics, from_block=first, to_block=last)
        events = (event for event in market.events_in(logs) if isinstance(event, NodeRegistered | OfferChanged))
        here = {event.node: named_by(event) for event in events}
        found = here | found
        last = first - 1
    return {node: named for node, named in found.items() if node in wanted}


def named_by(event: NodeRegistered | OfferChanged) -> Named:
    """Return the manifest that an event names."""
    return Named(event.node, event.manifest, event.log.tx_hash)


def find_manifest(market: Market, named: Named, store: Store | None = None) -> Manifest | None:
    """Return a manifest by what names it: from the call, else from a store; None where it is not had, or is none.

    Raises ChainError.
    """
    call = market.port.transaction(named.tx_hash)
    raw = None if call is None else carried(call.data, named.digest)
    try:
        if raw is not None:
            return read_manifest(raw)
        if store is not None:
            return read_manifest(store.get_block(canonical.cid_of_digest(named.digest), STORE_SECONDS))
    except StorageError:
        return None
    return None


def _gpu(raw: dict[str, Any]) -> ListedGpu:
    size = raw.get("vram_gib")
    return ListedGpu(
        _text(raw.get("name")),
        _text(raw.get("driver")),
        size if type(size) is int and 0 < size <= MAX_VRAM_GIB else 0,
        figures_of(raw.get("measured")),
    )


def figures_of(raw: Any) -> Figures | None:
    """Return the figures of a document, None where one is missing or out of bounds: half of them say nothing."""
    told = raw if isinstance(raw, dict) else {}
    said: list[Any] = [told.get(field.name) for field in fields(Figures)]
    return Figures(*said) if all(type(one) is int and 0 < one <= MAX_FIGURE for one in said) else None


def _text(value: Any) -> str:
    """Return a name as it is where it is short and can be shown, "" for any other value."""
    return value if isinstance(value, str) and len(value) <= MAX_TEXT and one_line(value) == value else ""


def _bad(why: str) -> BadDocument:
    return BadDocument(f"the document is no manifest: {why}", hint="hearth worker update, by the node's owner")
