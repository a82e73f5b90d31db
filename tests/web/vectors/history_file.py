"""A file of a market's history as the library writes it, with the network that it is of and the logs that are in it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final
from unittest import mock

from hearth.chain.follow import DEPTH
from hearth.client.audit import history_file
from hearth.protocol.types import Unit
from tests.client.test_parents import Place

JOBS: Final = 4


def cases() -> Any:
    """Return the file's lines, of which each but the first holds the logs of one job."""
    place = Place()
    for _ in range(JOBS):
        place.chain.mine(count=3)
        place.post(Unit())
    place.chain.mine(count=DEPTH)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(history_file, "PART_CHARS", 1):
        file = Path(folder) / "history.jsonl"
        report = history_file.HistoryWriter(place.session).write(file)
        lines = file.read_text(encoding="ascii").splitlines()
    logs = place.chain.logs(list(place.network.contracts.values()), (), from_block=0, to_block=report["block"])
    return {
        "network": place.network.as_dict(),
        "block": report["block"],
        "blockHash": report["block_hash"],
        "lines": lines,
        "logs": [
            {
                "address": log.address,
                "topics": ["0x" + topic.hex() for topic in log.topics],
                "data": "0x" + log.data.hex(),
                "blockNumber": log.block_number,
                "blockHash": "0x" + log.block_hash.hex(),
                "txHash": "0x" + log.tx_hash.hex(),
                "logIndex": log.log_index,
            }
            for log in logs
        ],
    }
