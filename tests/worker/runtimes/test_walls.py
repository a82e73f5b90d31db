"""The walls round a WebAssembly unit's process, tried from inside: probing_child is the real child with a stranger at
the place of its compiler. What is tried fails with the walls and works without the one that stops it."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.worker.runtimes.probing_child import CALLS
from tests.worker.wasm_tools import command, from_text
from worker.runtimes import walls, wasm
from worker.runtimes.base import Level, RunRequest, SandboxLimits

pytestmark = pytest.mark.net  # a stranger inside is to call this port, and not get through

FILES, SYSTEM_CALLS, RIGHTS = "files", "calls", "rights"
WALLS = (FILES, SYSTEM_CALLS, RIGHTS)
ROOT = os.geteuid() == 0
VERSION = walls.landlock_version()
HEADERS = {"x86_64": "x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}

STOPPED_BY: dict[str, set[str]] = {
    "read the key": {FILES},
    "list the key's folder": {FILES},
    "write beside the key": {FILES},
    "delete a file beside the key": {FILES},
    "cut a file beside the key": {FILES},
    "read the worker's environment": {FILES} | ({RIGHTS} if ROOT else set()),
    "write into the job": {FILES},
    "open the key to everybody": {SYSTEM_CALLS},
    "link the key into the outputs": {FILES, SYSTEM_CALLS},
    "plant a symbolic link": {FILES, SYSTEM_CALLS},
    "change the folder": {SYSTEM_CALLS},
    "start a process": {SYSTEM_CALLS},
    "signal the worker": {SYSTEM_CALLS} | ({FILES} if VERSION >= 6 else set()),
    "raise its own limit": {SYSTEM_CALLS},
    "open a socket": {SYSTEM_CALLS},
    "open a local socket": {SYSTEM_CALLS},
    "call the worker's port": {SYSTEM_CALLS} | ({FILES} if VERSION >= 4 else set()),
    "start a thread": {SYSTEM_CALLS},
    "hold memory that is shared": {SYSTEM_CALLS},
    "hold memory that grows like a stack": {SYSTEM_CALLS},
    "hide files from their owner": {SYSTEM_CALLS},
    "take a page from the machine": {SYSTEM_CALLS, RIGHTS},
    "read what nobody may": {RIGHTS},
    **{name: {SYSTEM_CALLS} for name in CALLS},
}
NEEDED = ("read its inputs", "read its module", "use its outputs", "hold memory of its own", "sleep")

Probe = Callable[..., tuple[dict[str, str], bool]]

needs_walls = pytest.mark.skipif(
    VERSION < walls.LEAST_VERSION or not walls.has_filters(), reason="this kernel has no Landlock or no seccomp filter"
)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """Return a function that runs the probing child without the walls named, once for each set of them: what it said of
    every attempt, and whether another program ran in its place at last."""
    patch = pytest.MonkeyPatch()
    patch.setattr(wasm, "CHILD", "tests.worker.runtimes.probing_child")
    listener = socket.create_server(("127.0.0.1", 0))

    @cache
    def run(*without: str) -> tuple[dict[str, str], bool]:
        root = tmp_path_factory.mktemp("probe")
        for name in ("in", "job", "out", "scratch", "home"):
            (root / name).mkdir()
        (root / "in" / "data.txt").write_text("hello")
        for name in ("key.json", "other", "cut"):
            (root / "home" / name).write_text("secret")
        request = RunRequest(
            unit="-without-".join((f"probe-{os.getpid()}", *without)),
            command=(str(root / "home" / "key.json"), str(listener.getsockname()[1])),
            job_dir=root / "job",
            in_dir=root / "in",
            out_dir=root / "out",
            limits=SandboxLimits(wall_seconds=60, memory_bytes=64 << 20),
            module=from_text(root, command("nop")),
        )
        result = wasm.WasmRuntime(root / "scratch").run(request, threading.Event())
        said, _, rest = result.stdout.partition(b"\n")
        assert said, result
        return json.loads(said), b"another program ran" in rest

    yield run
    listener.close()
    patch.undo()


@needs_walls
@pytest.mark.parametrize("attempt", STOPPED_BY)
def test_child__what_a_stranger_would_try_in_it__fails_and_works_without_the_wall(attempt: str, probe: Probe) -> None:
    free = probe(*WALLS)[0][attempt]
    if free != "worked" and (attempt in CALLS or RIGHTS in STOPPED_BY[attempt]):
        pytest.skip(f"this machine refuses it anyway: {free}")
    assert free == "worked"
    assert probe()[0][attempt] != "worked"
    # What each call takes of root is the machine's to say.
    for wall in (FILES, SYSTEM_CALLS) if attempt in CALLS else WALLS:
        others = [one for one in WALLS if one != wall]
        assert (probe(*others)[0][attempt] == "worked") is (wall not in STOPPED_BY[attempt]), wall


@needs_walls
def test_child__another_program_in_its_place__each_wall_refuses_it(probe: Probe) -> None:
    ran = [probe(*without)[1] for without in ((), (FILES, RIGHTS), (SYSTEM_CALLS, RIGHTS), WALLS)]
    assert ran == [False, False, False, True]


@needs_walls
@pytest.mark.parametrize("need", NEEDED)
def test_child__what_a_unit_needs__works_behind_the_walls(need: str, probe: Probe) -> None:
    assert probe()[0][f"unit: {need}"] == "worked"


@needs_walls
def test_probe__every_attempt_of_the_child__is_in_the_table(probe: Probe) -> None:
    assert set(probe()[0]) == {*STOPPED_BY, *(f"unit: {need}" for need in NEEDED)}


# ---- the filter ----


def verdict(code: bytes, machine: int, number: int, *arguments: int) -> int:
    """Run a filter as the kernel would, for a call of `number`; return what it answers."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = number.to_bytes(4, "little") + machine.to_bytes(4, "little") + bytes(8)
    data += b"".join(value.to_bytes(8, "little") for value in values)
    lines = list(walls._INSTRUCTION.iter_unpack(code))
    held = at = 0
    while True:
        operation, yes, no, value = lines[at]
        at += 1
        if operation == 0x20:
            held = int.from_bytes(data[value : value + 4], "little")
        elif operation == 0x54:
            held &= value
        elif operation == 0x15:
            at += yes if held == value else no
        else:
            assert operation == 0x06
            return value


@pytest.mark.parametrize("name", walls.MACHINES)
def test_program__every_number_of_a_machine__is_left_where_it_is_in_the_table(name: str) -> None:
    machine = walls.MACHINES[name]
    code = walls.program(machine, 7)
    left = {numbers[machine.column] for call, numbers in walls.CALLS.items() if call not in walls.conditions(7)}
    for number in range(1024):
        allowed = verdict(code, machine.audit, number) == walls.ALLOW
        assert allowed is (number in left), number
    assert verdict(code, machine.audit, 0x4000_0000) != walls.ALLOW  # a call of the x32 kind
    assert verdict(code, 0x4000_0003, 0) == walls.KILL_PROCESS  # a call of 32-bit programs


@pytest.mark.parametrize("name", walls.MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "allowed"),
    [
        ("mmap", (0, 4096, 3, 0x22), True),  # as the C library asks for memory
        ("mmap", (0, 4096, 0, 0x4022), True),  # as the engine reserves addresses
        ("mmap", (0, 4096, 3, 0x21), False),  # shared
        ("mmap", (0, 4096, 3, 0x23), False),  # shared, by its second name
        ("mmap", (0, 4096, 3, 0x122), False),  # grows like a stack
        ("mmap", (0, 4096, 3, 0x4_0022), False),  # huge pages
        ("madvise", (0, 4096, 4), True),  # as the C library gives memory back
        ("madvise", (0, 4096, 100), False),  # take the page from the machine
        ("madvise", (0, 4096, 101), False),  # the same, its content kept
        ("madvise", (0, 4096, 12), False),  # look for equal pages of others
        ("mkdirat", (3, 0, 0o755), True),
        ("mkdirat", (3, 0, 0o300), False),  # one that cannot be listed
        ("fcntl", (3, 1030), True),
        ("fcntl", (3, 8), False),  # who is told by a signal
        ("ioctl", (0, 0x5451), True),
        ("ioctl", (0, 0x5412), False),  # type into a terminal
        ("tgkill", (7, 9, 6), True),
        ("tgkill", (8, 9, 6), False),
    ],
)
def test_program__call_that_is_left_in_part__by_its_arguments(
    name: str, call: str, arguments: tuple[int, ...], allowed: bool
) -> None:
    machine = walls.MACHINES[name]
    number = walls.CALLS[call][machine.column]
    assert number is not None
    assert (verdict(walls.program(machine, 7), machine.audit, number, *arguments) == walls.ALLOW) is allowed


@pytest.mark.parametrize("name", walls.MACHINES)
def test_calls__numbers__are_those_of_the_kernels_headers(name: str) -> None:
    header = Path("/usr/include") / HEADERS[name]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed (linux-libc-dev)")
    text = header.read_text()
    known = {call: int(number) for call, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.M)}
    known.setdefault("newfstatat", known.get("fstatat", -1))
    column = walls.MACHINES[name].column
    table: Mapping[str, tuple[int | None, int | None]] = {**walls.CALLS, **{n: pair for n, (pair, _) in CALLS.items()}}
    for call, numbers in table.items():
        assert numbers[column] is None or known[call] == numbers[column], call
    assert known["seccomp"] == walls.MACHINES[name].seccomp


# ---- what a provider is told ----


def test_look__kernel_without_walls__warns_of_what_is_at_risk_and_what_to_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "landlock_version", lambda: 1)
    monkeypatch.setattr(walls, "has_filters", lambda: False)
    files, calls = walls.look()
    assert (files.level, calls.level) == (Level.WARN, Level.WARN)
    assert "key file" in files.detail and "5.19" in files.fix
    assert "sockets" in calls.detail and "seccomp" in calls.fix


@needs_walls
def test_look__this_kernel__says_that_both_stand() -> None:
    files, calls = walls.look()
    assert (files.level, calls.level) == (Level.PASS, Level.PASS)
    assert f"Landlock {VERSION}" in files.detail and str(len(walls.CALLS)) in calls.detail


def test_raise_walls__kernel_without_them__runs_the_unit_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raised: list[str] = []
    monkeypatch.setattr(walls, "_prctl", lambda *_: None)
    monkeypatch.setattr(walls, "drop_capabilities", lambda: raised.append("rights"))
    monkeypatch.setattr(walls, "landlock_version", lambda: 1)
    monkeypatch.setattr(walls, "has_filters", lambda: False)
    monkeypatch.setattr(walls, "shut_files", lambda *_: raised.append("files"))
    monkeypatch.setattr(walls, "shut_calls", lambda: raised.append("calls"))
    walls.raise_walls([str(tmp_path)], [], lambda: raised.append("threads"))
    assert raised == ["rights", "threads"]
