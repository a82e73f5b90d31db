"""Blocks as files: what a store is given, and gives, where nothing else reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.base.errors import BadCid, BlockMissing, ConfigError, StorageError, UsageError
from hearth.base.files import AnyPath, new_file, path_of
from hearth.client.face import refusing
from hearth.storage import car, unixfs
from hearth.storage import cid as cids
from hearth.storage.stores import Timed

if TYPE_CHECKING:
    from hearth.client.reports import Exported, Imported
    from hearth.client.session import Session
    from hearth.storage.cid import Cid


@refusing
class Stored:
    """Bring blocks into the store and out of it: `client.store`."""

    def __init__(self, session: Session) -> None:
        """Open nothing yet."""
        self.session = session

    def import_file(self, file: AnyPath) -> Imported:
        """Put every block of a CAR file into the store, and pin its roots, of which all must be there then.

        One that names no root pins nothing. Each block is checked against its CID. Where a root lacks one nothing is
        pinned, and what was put goes with the next collection. Raises ConfigError NO_FILE, StorageError BAD_CAR,
        BlockCorrupt, BlockMissing.
        """
        file, store, dry = path_of(file), self.session.store, self.session.dry_run
        count = size = 0
        try:
            with file.open("rb") as source:
                with _naming(file):
                    roots, blocks = car.read(source)
                for cid, block in _of(file, blocks):
                    count, size = count + 1, size + len(block)
                    if cid.hash_code == cids.BLAKE3:
                        raise StorageError(
                            f"block {cid} of {file} is named by blake3, and blocks are kept by sha2-256",
                            hint="write it anew from what was added by ipfs add --hash sha2-256",
                            code="BAD_CAR",
                        )
                    if cid.hash_code != cids.IDENTITY and not dry:
                        store.put_block(block, cid.codec)
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be read: {error.strerror}", hint=f"ls -l {file}", code="NO_FILE"
            ) from error
        for root in () if dry else roots:
            with _naming(file, BlockMissing):
                store.pin(root)
        return {
            "schema": "hearth.import/1",
            "file": str(file),
            "roots": [str(root) for root in roots],
            "blocks": count,
            "bytes": size,
            "dry_run": dry,
        }

    def export(self, cid: str, file: AnyPath) -> Exported:
        """Write a file, tree or document of the store into a new CAR file, wholly or not at all.

        Raises UsageError BAD_CID for what is none, BlockMissing, BadDestination where the file exists or cannot be
        written, StoreDown once the time of the settings is over.
        """
        file = path_of(file)
        try:
            root, path = cids.parse_uri(cid)
        except BadCid as error:
            raise UsageError(error.message, hint=error.hint, code="BAD_CID") from error
        source = Timed(self.session.store, float(self.session.settings.timeout))
        if path:
            root = unixfs.resolve(root, path, source)
        with new_file(file, dry_run=self.session.dry_run) as out:
            count, size = car.write((root,), unixfs.blocks_of(root, source), out)
        return {
            "schema": "hearth.export/1",
            "file": str(file),
            "root": str(root),
            "blocks": count,
            "bytes": size,
            "dry_run": self.session.dry_run,
        }


@contextmanager
def _naming(file: Path, kind: type[StorageError] = StorageError) -> Iterator[None]:
    """Name the file in what is wrong with it: no store is to blame."""
    try:
        yield
    except kind as error:
        error.message = f"{file}: {error.message}"
        error.hint = "get the file again, or write it anew: hearth store export CID FILE, or ipfs dag export CID"
        if isinstance(error, BadCid):
            error.hint = "blocks of raw data, dag-pb and dag-cbor are kept: name a DAG of those, as ipfs add makes"
        raise


def _of(file: Path, blocks: Iterator[tuple[Cid, bytes]]) -> Iterator[tuple[Cid, bytes]]:
    """Yield a file's blocks; what reading them raises names it."""
    with _naming(file):
        yield from blocks
