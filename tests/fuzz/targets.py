"""Every parser of strangers' bytes, by its name."""

from __future__ import annotations

from typing import Final

from tests.fuzz import chain_targets, machine_targets, storage_targets, text_targets
from tests.fuzz.target import Target

TARGETS: Final[dict[str, Target]] = {
    one.name: one
    for one in (*storage_targets.TARGETS, *chain_targets.TARGETS, *machine_targets.TARGETS, *text_targets.TARGETS)
}
