"""A store on disk with one small job in it, for the tests of the stages and of the executor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hearth.jobfile import Blob, ResolvedSpec, needs_of, spec_digest
from hearth.jobfile.resolved import ResolvedInput, ResolvedOutput
from hearth.jobfile.resolved import canonical as canonical_of
from hearth.protocol.types import JobId, Terms
from hearth.storage.stores import FolderStore
from tests.kit import build
from tests.worker import wasm_tools
from worker.decide import LeaseKey

KEY = LeaseKey(JobId(b"\xaa" * 32), 0, 1)


def label() -> str:
    """Return what the names of this process's sandboxes start with, and no other's: a sweep kills all of them."""
    return f"test-{os.getpid()}-3-"


class Jobs:
    """A store with a module, a working directory and an input, and the specs and terms of jobs on them."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = FolderStore(tmp_path / "store")
        self.module = self.store.add_path(wasm_tools.from_c("probe"))
        self.data = self.store.add_bytes(b"rows\n")
        self.code = self.store.add_path(_folder(tmp_path / "work", {"code.txt": b"code"}))

    def spec(self, *command: str, **changes: Any) -> ResolvedSpec:
        values: dict[str, Any] = {
            "name": "probe",
            "module": Blob(cid=str(self.module.cid), size=self.module.size),
            "command": command,
            "workdir": Blob(cid=str(self.code.cid), size=self.code.size),
            "env": {"EPOCHS": "3"},
            "inputs": (ResolvedInput(cid=str(self.data.cid), dst="/in/data.txt", size=self.data.size),),
            "outputs": (ResolvedOutput(path="/out", required=True, max_size=1 << 20),),
        }
        return build.spec(**{**values, **changes})

    def terms(self, spec: ResolvedSpec, **changes: Any) -> Terms:
        self.store.put_json(canonical_of(spec))
        return self.terms_only(spec_digest(spec), spec, **changes)

    def terms_only(self, digest: bytes, spec: ResolvedSpec, **changes: Any) -> Terms:
        values: dict[str, Any] = {
            "submitter": "0x" + "33" * 20,
            "salt": 1,
            "spec": digest,
            "needs": needs_of(spec.resources, spec.runtime),
            "ceiling": 10**15,
            "max_seconds": spec.runtime_seconds,
            "units": spec.units,
            "deadline": 1 << 39,
            "keeper_fee": 0,
            "policy": 0,
        }
        return Terms(**{**values, **changes})


def _folder(path: Path, files: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path
