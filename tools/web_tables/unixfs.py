"""What fixes a CID of files, which names are refused or disarmed, and how letters fold (protocol.md "Job spec";
hearth/storage/unixfs/, hearth/base/found.py). FOLDS are rows of first, last, step and distance to the small letter,
FOLDS_LONG what becomes several letters; both of what stands in canonical decomposition only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hearth.storage.unixfs import codec, model, names

LATER: Final = frozenset(
    (0x1C89, 0x1C8A, *range(0xA7CB, 0xA7CE), *range(0xA7DA, 0xA7DD), 0x105C9, 0x105E4, *range(0x10D50, 0x10D86))
    + (*range(0x11380, 0x11400), *range(0x16100, 0x16140), *range(0x16D40, 0x16D80))
)
"""Characters that have got a case or parts since Unicode 14, that of the oldest Python taken: left out, so that every
Python writes the same table."""


def tables() -> Mapping[str, Any]:
    """Return constants of the format, limits, and the tables of names."""
    return {
        "CHUNK_BYTES": model.CHUNK_BYTES,
        "LINKS_PER_NODE": model.LINKS_PER_NODE,
        "DIRECTORY_BLOCK_BYTES": model.DIRECTORY_BLOCK_BYTES,
        "SHARD_FANOUT": model.SHARD_FANOUT,
        "MAX_NAME_BYTES": model.MAX_NAME_BYTES,
        "MAX_PATH_BYTES": model.MAX_PATH_BYTES,
        "MAX_PATH_DEPTH": model.MAX_PATH_DEPTH,
        "MAX_DAG_HEIGHT": model.MAX_DAG_HEIGHT,
        "HASH_BITS": model.HASH_BITS,
        "MURMUR3": codec.MURMUR3,
        "TYPE_NAMES": codec.TYPE_NAMES,
        "LIMITS": {
            "max_bytes": model.DEFAULT_LIMITS.max_bytes,
            "max_entries": model.DEFAULT_LIMITS.max_entries,
            "max_blocks": model.DEFAULT_LIMITS.max_blocks,
        },
        "OBEYED": sorted(names._OBEYED),
        "DATA": sorted(names._DATA),
        "SHORT": names._SHORT.pattern,
        "RENAMED_PREFIX": names.RENAMED_PREFIX,
        "FOLDS": _folds(),
        "FOLDS_LONG": [(character, folded) for character, folded in _folding() if len(folded) > 1],
    }


def _folding() -> Iterator[tuple[str, str]]:
    """Yield each character that folds and is not taken apart by decomposition, and what it folds to."""
    for number in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(number)
        folded = character.casefold()
        if folded != character and number not in LATER and unicodedata.normalize("NFD", character) == character:
            yield character, folded


def _folds() -> list[list[int]]:
    """Return [first, last, step, distance] of runs of characters that fold to one each."""
    runs: list[list[int]] = []
    for character, folded in _folding():
        if len(folded) > 1:
            continue
        number, distance = ord(character), ord(folded) - ord(character)
        last = runs[-1] if runs else [0, 0, 0, 0]
        step = number - last[1]
        if distance == last[3] and step in (1, 2) and (last[0] == last[1] or step == last[2]):
            last[1:3] = number, step
        else:
            runs.append([number, number, 1, distance])
    return runs
