"""The journal of posted terms: one file per job, written before its posting is signed.

It is why the same job file after a Ctrl-C, a crash or a cut line finds its job instead of paying twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.base.files import make_private, replace_text

if TYPE_CHECKING:
    from hearth.client.reports import PostedRecord
    from hearth.protocol.types import Terms


class Records:
    """The records of a market, in `folder` below the user's `home`; neither need exist. Each is whole or absent."""

    def __init__(self, home: Path, folder: Path) -> None:
        """Name the folders; nothing is created before something is written."""
        self._home = home
        self._folder = folder

    def write(
        self, job: str, fingerprint: str, note: str, terms: Terms, credit: int = 0, parents: Sequence[bytes] = ()
    ) -> PostedRecord:
        """Journal terms that are about to be posted, and return the record.

        `note` says what they came from, `credit` how many base units of credit in Escrow are withdrawn for them,
        `parents` is the list that is posted with them.
        """
        from hearth.protocol import words

        record: PostedRecord = {
            "schema": "hearth.posted/1",
            "job": job,
            "fingerprint": fingerprint,
            "from": note,
            "terms": [value.hex() if isinstance(value, bytes) else str(value) for value in words.pack_terms(terms)],
            "credit": str(credit),
            "parents": [one.hex() for one in parents],
            "seen": False,
        }
        self._write(record)
        return record

    def unseen(self, fingerprint: str) -> Iterator[PostedRecord]:
        """Yield the records of a fingerprint whose job's end nobody saw, newest first."""
        for record in self._newest():
            if record.get("fingerprint") == fingerprint and not record.get("seen"):
                yield record

    def of_spec(self, spec: bytes, most: int) -> list[PostedRecord]:
        """Return the newest records, at most so many, of jobs whose canonical spec has this digest."""
        return [record for record in self._newest() if record.get("terms", [])[1:2] == [spec.hex()]][:most]

    def mark_seen(self, job: str) -> None:
        """Note that a job's end was shown, so that the same file makes a new job."""
        record = _read(self._folder / f"{job}.json")
        if record is not None and not record.get("seen"):
            self._write({**record, "seen": True})

    def _newest(self) -> Iterator[PostedRecord]:
        """Yield every record that can be read, newest first."""
        for path in sorted(self._folder.glob("0x*.json"), key=lambda path: -path.stat().st_mtime_ns):
            record = _read(path)
            if record is not None:
                yield record

    def _write(self, record: PostedRecord) -> None:
        make_private(self._home)
        path = make_private(self._folder) / f"{record['job']}.json"
        replace_text(path, json.dumps(record, indent=2) + "\n")


def terms_of(record: PostedRecord) -> Terms:
    """Return the terms that a record keeps."""
    from hearth.protocol import words

    raw = record["terms"]
    packed = [bytes.fromhex(raw[i]) if i in (1, 8) else int(raw[i]) for i in range(9)]
    return words.unpack_terms(tuple(packed))  # type: ignore[arg-type]


def credit_of(record: PostedRecord) -> int:
    """Return the credit that pays for a record's job, base units; records of older versions name none."""
    return int(record.get("credit", 0))


def parents_of(record: PostedRecord) -> tuple[bytes, ...]:
    """Return the list of parents that is posted with a record's terms; records of older versions have none."""
    return tuple(bytes.fromhex(one) for one in record.get("parents", []))


def _read(path: Path) -> PostedRecord | None:
    try:
        record: PostedRecord = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "job" in record else None
