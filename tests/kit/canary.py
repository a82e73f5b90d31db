"""Known secrets, every form of them, and the places in which other programs and people could read them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

TOKENS = ("tok-canary-of-a-path-71", "tok-canary-of-a-query-72", "tok-canary-of-a-user-73")
"""The keys of an RPC provider, one for each place of a URL that may hold one."""


def with_tokens(url: str, *, path: bool = True) -> str:
    """Return an http URL of a host with a token as its user's password, in its query and in its path.

    A local chain answers at / alone.
    """
    in_path, query, user = TOKENS
    return f"{url.replace('://', f'://user:{user}@')}/{f'v3/{in_path}' if path else ''}?apikey={query}"


def forms_of(key: bytes, *texts: str) -> list[bytes]:
    """Return every form of a private key, of the tokens, and of further texts that must stand nowhere."""
    known = [key.hex(), key.hex().upper(), str(int.from_bytes(key, "big")), *TOKENS, *texts]
    return [key, *(text.encode() for text in known)]


def leaks(places: Mapping[str, bytes], canaries: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Return where a canary stands, with the canary."""
    wanted = list(canaries)
    return [(place, canary) for place, content in places.items() for canary in wanted if canary in content]


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def seen_outside(pid: int) -> dict[str, bytes]:
    """Return the arguments and environments of a process and its children, as another process sees them."""
    found = {}
    for one in family(pid):
        for name in ("cmdline", "environ"):
            with suppress(OSError):  # it has ended meanwhile
                found[f"{one}/{name}"] = Path(f"/proc/{one}/{name}").read_bytes()
    return found


def core_limit(pid: int) -> list[str]:
    """Return the soft and the hard limit of a process's core files."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[4:6] for line in lines if line.startswith("Max core"))


def dies_without_a_core(pid: int) -> bool:
    """Abort a child process; say whether it died of that and the kernel wrote no memory of it anywhere.

    SIGABRT, because wasmtime's handler of SIGSEGV waits for an instruction that faults again.
    """
    os.kill(pid, signal.SIGABRT)
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return ended is not None and (ended.si_code, ended.si_status) == (os.CLD_KILLED, signal.SIGABRT)


def files_below(*folders: Path) -> dict[str, bytes]:
    """Return the content of every file below some folders."""
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}
