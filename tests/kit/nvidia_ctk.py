"""NVIDIA's container toolkit, built from its pinned module, and the CDI spec that it writes of a played machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from tests.kit.played_gpu import INSIDE, PlayedMachine
from tests.kit.require import need_program
from tools.services.gpu import CTK, HOOK


def generated(machine: PlayedMachine) -> dict[str, Any]:
    """Return the spec that nvidia-ctk writes of a machine, by the command that the worker advises."""
    ctk = need_program(CTK)
    # Where its package has it: a user of no rights may not reach the cache folder.
    hook = shutil.copy(need_program(HOOK), machine.folder / "usr" / "bin")
    caps = "".join(f"{name} {minor}\n" for name, minor in machine.capabilities())
    # Where a kernel module of NVIDIA's says which nodes are those of MIG slices: no option names another place.
    script = """set -e
        mount -t tmpfs none /proc/driver
        mkdir /proc/driver/nvidia-caps
        printf %s "$1" > /proc/driver/nvidia-caps/mig-minors
        shift; exec "$@" """
    command = [
        *("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", caps),
        *(str(ctk), "--quiet", "cdi", "generate", "--device-name-strategy=uuid", "--format=json"),
        *(f"--driver-root={machine.folder}", f"--nvidia-cdi-hook-path={hook}"),
    ]
    env = {**os.environ, **machine.environ}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spec: dict[str, Any] = json.loads(done.stdout)
    return spec


def playable(machine: PlayedMachine, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with what the played driver needs in a container, which nobody told nvidia-ctk of."""
    ours, edits = machine.spec()["containerEdits"], spec["containerEdits"]
    plays = [one for one in ours["mounts"] if one["containerPath"] == INSIDE]
    env = [one for one in ours["env"] if one.startswith("PLAYED_")]
    return {**spec, "containerEdits": {**edits, "env": edits["env"] + env, "mounts": edits["mounts"] + plays}}
