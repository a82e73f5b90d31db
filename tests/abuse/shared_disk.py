"""Two strangers' containers on one small disk, without volumes: `python -m tests.abuse.shared_disk HOME [--runs 4]`.

One keeps to what its job names; the other takes room that no list of files shows, in the way of `--trick`. Prints one
line of JSON a run: how each attempt ended, after how many tries, and how many were stopped for want of room. Runs as
whoever calls it, who owns HOME, a disk of MIB_OF_DISK.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hearth.jobfile.resolved import ResolvedOutput
from hearth.protocol.types import JobId, NodeId
from tests.kit import build
from tests.worker.attempt.jobs import Jobs
from tests.worker.runtimes.engines import NUMPY, rules, runtime_of
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import folders_in
from worker.attempt.task import Bounds, Task
from worker.decide import MAX_TRIES, LeaseKey
from worker.disk import Disk
from worker.journal import AttemptJournal, Phase

MIB: Final = 1 << 20
MIB_OF_DISK: Final = 192
RESERVE: Final = 64 * MIB
HONEST, STRANGER = LeaseKey(JobId(b"\xaa" * 32), 0, 1), LeaseKey(JobId(b"\xbb" * 32), 0, 1)
HONEST_CAP: Final = 48 * MIB

# It writes as much as its job names, by name, while the other takes what there is.
HONEST_PROGRAM: Final = """
import time
for number in range(40):
    with open(f"/out/{number}", "wb") as file:
        file.write(bytes(1 << 20))
    time.sleep(0.05)
"""
_PUT: Final = """
import array, os, socket, threading, time
def put(fd, size=1 << 22):
    try:
        while size:
            size -= os.write(fd, bytes(min(size, 1 << 20)))
    except OSError:
        time.sleep(0.2)
def unnamed(number):
    fd = os.open(f"/out/{number}", os.O_CREAT | os.O_RDWR)
    os.unlink(f"/out/{number}")
    return fd
"""
TRICKS: Final = {
    # Open files without a name.
    "open": "held = []\nfor number in range(900):\n    held.append(unnamed(number))\n    put(held[-1])\n"
    "time.sleep(600)",
    # No descriptor either: only a mapping keeps the file.
    "mapped": "import mmap\nheld = []\nfor number in range(900):\n    fd = unnamed(number)\n    put(fd)\n"
    "    held.append(mmap.mmap(fd, 4096))\n    os.close(fd)\ntime.sleep(600)",
    # In no table at all: on its way from one socket to another.
    "adrift": "one, two = socket.socketpair()\nfd = unnamed(0)\nput(fd, 176 << 20)\n"
    "socket.send_fds(one, [b'x'], [fd])\nos.close(fd)\ntime.sleep(600)",
    # From hand to hand, so that a look at one of the two may miss it.
    "passed": "one, two = socket.socketpair()\nfd = unnamed(0)\nput(fd, 1 << 28)\n"
    "def hand(line):\n    while True:\n        _, fds, _, _ = socket.recv_fds(line, 1, 1)\n"
    "        socket.send_fds(line, [b'x'], fds)\n        os.close(fds[0])\n"
    "if os.fork() == 0:\n    hand(one)\nsocket.send_fds(two, [b'x'], [fd])\nos.close(fd)\nhand(two)",
    # Where a worker that is a plain user sees nothing.
    "unreadable": "os.mkdir('/out/d', 0o700)\nfor number in range(900):\n"
    "    put(os.open(f'/out/d/{number}', os.O_CREAT | os.O_RDWR))\ntime.sleep(600)",
    # Room by the number of files.
    "small": "for number in range(16_000):\n    with open(f'/out/{number}', 'wb') as file:\n"
    "        file.write(b'x' * 4000)\ntime.sleep(600)",
}  # fmt: skip


def run(home: Path, trick: str) -> dict[str, Any]:
    """Run both containers on a home's disk to their ends, once; what is left is deleted."""
    with tempfile.TemporaryDirectory() as elsewhere:
        jobs = Jobs(Path(elsewhere))
        disk = Disk(home, RESERVE)
        journal = AttemptJournal(home / "work.db", disk.spare)
        means = Means(
            journal=journal,
            store=jobs.store,
            folders=folders_in(home),
            runtimes={"docker": runtime_of(rules())},
            node=NodeId(3),
            label=f"strangers-{uuid.uuid4().hex[:8]}-",
            bounds=Bounds(),
            keep_seconds=60,
            stores_here=False,
        )
        executor = Executor(means, disk=disk)
        tasks: dict[LeaseKey, Task] = {}
        for key, program, cap in ((HONEST, HONEST_PROGRAM, HONEST_CAP), (STRANGER, _PUT + TRICKS[trick], 1024)):
            spec = jobs.spec(
                *("python3", "-c", program),
                runtime="docker",
                image=NUMPY,
                module=None,
                resources=build.spec().resources.model_copy(update={"memory_mib": 512}),
                outputs=(ResolvedOutput(path="/out", required=False, max_size=cap),),
            )
            tasks[key] = Task(key, jobs.terms(spec), 60, 1.0)
            executor.start(tasks[key])
        began = time.monotonic()
        while executor.active() and time.monotonic() - began < 200:
            time.sleep(0.05)
            for key, task in tasks.items():  # as a worker does: what this machine failed at is tried again
                entry = journal.entry(key)
                if entry is not None and entry.phase is Phase.BROKEN and task.tries < MAX_TRIES:
                    tasks[key] = replace(task, tries=task.tries + 1)
                    executor.start(tasks[key])
        told: dict[str, Any] = {"seconds": round(time.monotonic() - began, 1), "starved": executor.starved}
        for name, key in (("honest", HONEST), ("stranger", STRANGER)):
            entry = journal.entry(key)
            assert entry is not None
            told[name] = [entry.phase.value, entry.outcome.name.lower(), entry.tries, entry.detail]
        executor.close()
        journal.close()
        for left in home.glob("work.db*"):
            left.unlink()
        means.folders.remove_others(())
        return told


def main(argv: list[str]) -> int:
    """Print how each run ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.abuse.shared_disk", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--trick", choices=TRICKS, default="open")
    chosen = parser.parse_args(argv)
    for _ in range(chosen.runs):
        print(json.dumps({"user": os.geteuid(), "trick": chosen.trick, **run(chosen.home, chosen.trick)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
