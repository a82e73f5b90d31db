"""A market's logs up to a final block as one file, from which whoever reads it begins: `hearth net snapshot`.

Nobody has to believe it: a reader compares it with the chain before anything is taken (page.md). Its lines
are canonical JSON: the first says whose logs these are, each other one holds those of a range of blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ChainError
from hearth.base.files import new_file
from hearth.client.reading import LOG_SPAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hearth.chain.port import Block, Log
    from hearth.client.reports import HistoryHead, HistoryPart, Snapshot
    from hearth.client.session import Session
    from hearth.market.network import Network

PART_CHARS: Final = 2**18
"""About how long a line is: what a reader looks at, and keeps, at once."""


class HistoryWriter:
    """Write the history file of a session's market."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet."""
        self.session = session
        self._logs = self._parts = self._bytes = 0

    def write(self, file: Path | None) -> Snapshot:
        """Return the report of `client.net.snapshot`."""
        session = self.session
        last = self._last()
        out_path = file or Path(f"hearth-{session.network.chain_id}-{last.number}.jsonl")
        with new_file(out_path, dry_run=session.dry_run) as out:
            for line in self._lines(last):
                self._bytes += out.write(line)
            # What was read is of the chain that has this block, as long as it still has it.
            if session.market.port.block(last.number) != last:
                raise ChainError(
                    f"block {last.number} is another one than when reading began", code="REORG", hint="hearth doctor"
                )
        return {
            "schema": "hearth.snapshot/1",
            "network": session.network.name,
            "file": str(out_path),
            "block": last.number,
            "block_hash": f"0x{last.hash.hex()}",
            "logs": self._logs,
            "parts": self._parts,
            "bytes": self._bytes,
            "dry_run": session.dry_run,
        }

    # ---- inside ----

    def _last(self) -> Block:
        """Return the newest block that is taken as final."""
        from hearth.chain.follow import DEPTH

        port, first = self.session.market.port, self.session.network.deploy_block
        head = port.head()
        number = head.number - DEPTH
        if number < first:
            raise ChainError(
                f"the market began in block {first}, and the chain is at {head.number}: a block is final under "
                f"{DEPTH} others",
                hint="hearth net status",
                code="NOT_FINAL",
            )
        found = port.block(number)
        if found is None:
            raise ChainError(f"the provider lacks block {number}", code="RPC_LAGS", hint="hearth doctor")
        return found

    def _lines(self, last: Block) -> Iterator[bytes]:
        network = self.session.network
        yield _line(header_of(network, last))
        names = {address: name for name, address in network.contracts.items()}
        for part in self._ranges(network.deploy_block, last.number, names):
            self._parts += 1
            yield _line(part)

    def _ranges(self, first: int, last: int, names: Mapping[str, str]) -> Iterator[HistoryPart]:
        """Yield the logs of all blocks in ranges that follow on each other, cut between blocks."""
        port = self.session.market.port
        blocks: list[list[Any]] = []
        begin, size = first, 0
        for start in range(first, last + 1, LOG_SPAN):
            end = min(last, start + LOG_SPAN - 1)
            found = port.logs(list(names), from_block=start, to_block=end)
            self._logs += len(found)
            for (number, block_hash), logs in groupby(found, key=lambda log: (log.block_number, log.block_hash)):
                if size > PART_CHARS:
                    yield {"from": begin, "to": number - 1, "blocks": blocks}
                    blocks, begin, size = [], number, 0
                one = [number, _hex(block_hash), [_short(log, names) for log in logs]]
                blocks.append(one)
                size += len(_line(one))
        yield {"from": begin, "to": last, "blocks": blocks}


def header_of(network: Network, last: Block) -> HistoryHead:
    """Return the first line: the market, and the last block whose logs follow."""
    return {
        "schema": "hearth.history/1",
        "chain_id": network.chain_id,
        "genesis_hash": _hex(network.genesis_hash),
        "deploy_block": network.deploy_block,
        "contracts": dict(network.contracts),
        "block": last.number,
        "block_hash": _hex(last.hash),
    }


def _short(log: Log, names: Mapping[str, str]) -> list[Any]:
    topics = [_hex(topic) for topic in log.topics]
    return [log.log_index, _hex(log.tx_hash), names[log.address], topics, _hex(log.data)]


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"


def _line(value: Any) -> bytes:
    """Return canonical JSON: of integers, ASCII texts, lists and objects this is RFC 8785."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
