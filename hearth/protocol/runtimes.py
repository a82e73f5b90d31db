"""The runtimes, one row each: what depends on the runtime that a job asks for reads this table, or fails loudly.

A further runtime whose program is an image or a module touches four files: its flag in `hearth/protocol/types.py`, its
row here, its sandbox in `worker/runtimes/`, and its opening (with its section, if it has settings) in
`worker/settings.py`. `hearth worker doctor` and `selftest` then report what its sandbox says of itself, and
`hearth/jobfile/job.schema.json` is generated anew.
Source: protocol.md "Words" (the flags) and "Job spec".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, Literal

from hearth.protocol.types import Runtime

RuntimeName = Literal["docker", "wasm"]
"""A runtime as job files, their canonical documents and worker.toml spell it."""
MAX_INPUT_ENTRIES: Final = 100_000
"""Files and folders that a job may bring, all of its data together: an empty one takes an inode as well."""
MAX_OUTPUT_ENTRIES: Final = 16_384
"""Files and folders that a unit may leave, whatever ran it: a worker refuses more, and a reader too."""
RESERVED_ENV: Final = ("NVIDIA_", "AMD_VISIBLE_", "LD_", "HEARTH_")
"""How no name in a job's environment begins, in whatever case: LD_* preloads code into every process of a container
(CVE-2025-23266), NVIDIA_* and AMD_VISIBLE_* steer what gives GPUs, HEARTH_* is the worker's own."""
MAX_LOG_BYTES: Final = 1 << 20
"""Bytes of each stream, stdout and stderr, that a worker keeps; of more, the first and the last half."""


@dataclass(frozen=True, slots=True)
class RuntimeKind:
    """What is particular to a runtime.

    `title` names it in sentences, `flag` on chain. `program` is the field of a job that names what it runs, `example`
    shows such a name, and `spelled` are the shell patterns by which one is told on a command line. Fuel is counted
    where `meters_fuel`; only where `takes_gpu` may a job ask for GPUs. A module is read before the post, to see that a
    worker could start it, where it is `webassembly`. With less than `least_memory` bytes no sandbox of the kind starts,
    with less than `least_memory_with_gpus` none that has GPUs: what gives them to a container runs in its memory.
    """

    name: RuntimeName
    title: str
    flag: Runtime
    program: Literal["image", "module"]
    example: str
    spelled: tuple[str, ...]
    meters_fuel: bool = False
    takes_gpu: bool = False
    webassembly: bool = False
    least_memory: int = 1
    least_memory_with_gpus: int = 1


WASM: Final = RuntimeKind(
    name="wasm",
    title="WASM",
    flag=Runtime.WASM,
    program="module",
    example="a path or ipfs://CID",
    spelled=("*.wasm", "ipfs://*"),
    meters_fuel=True,
    webassembly=True,
)
DOCKER: Final = RuntimeKind(
    name="docker",
    title="Docker",
    flag=Runtime.DOCKER,
    program="image",
    example='"name@sha256:..."',
    spelled=("*",),
    takes_gpu=True,
    least_memory=6 << 20,  # Docker's own least; what runs in the container needs more
    least_memory_with_gpus=64 << 20,
)

RUNTIMES: Final[Mapping[str, RuntimeKind]] = MappingProxyType({kind.name: kind for kind in (WASM, DOCKER)})
"""Every runtime by its name, in the order in which a program's spelling is compared."""
DEFAULT: Final = DOCKER
"""The runtime of a job that names neither a runtime nor a program."""


def runtime_of_program(program: str) -> RuntimeKind:
    """Return the runtime for a program on a command line, by how it is spelled: the first row that fits."""
    return next(kind for kind in RUNTIMES.values() if any(fnmatchcase(program, each) for each in kind.spelled))
