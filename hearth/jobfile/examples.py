"""What each field of a job file may hold, as an example: the hint where something of another type stands there.

A place is written with "[]" for an entry of a list and "*" for a name that its writer chose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hearth.jobfile.problems import Location, field_name

EXAMPLES: Final[Mapping[str, str]] = {
    "version": "1",
    "name": '"my-job"',
    "runtime": '"docker"',
    "image": '"python:3.12-slim"',
    "module": '"./main.wasm"',
    "command": '["python3", "main.py"]',
    "command[]": '"main.py"',
    "workdir": '"./app"',
    "env": '{SEED: "7"}',
    "env.*": '"0.1 0.2"',
    "inputs": '[{src: "./data", dst: "/in/data"}]',
    "inputs[]": '{src: "./data", dst: "/in/data"}',
    "inputs[].src": '"./data"',
    "inputs[].dst": '"/in/data"',
    "inputs[].encrypt": "false",
    "outputs": '[{path: "/out"}]',
    "outputs[]": '{path: "/out"}',
    "outputs[].path": '"/out"',
    "outputs[].required": "true",
    "outputs[].max_size": '"100MiB"',
    "resources": '{cpus: 2, memory: "4GiB"}',
    "resources.gpu": '{count: 1, vram: "24GiB"}',
    "resources.gpu.count": "1",
    "resources.gpu.tier": '"rtx-4090"',
    "resources.gpu.vram": '"24GiB"',
    "resources.gpu.vendor": '"amd"',
    "resources.gpu.exact": "false",
    "resources.cpus": "2",
    "resources.memory": '"4GiB"',
    "resources.disk": '"20GiB"',
    "resources.regions": '["de", "fr"]',
    "resources.regions[]": '"de"',
    "limits": '{runtime: "30m"}',
    "limits.runtime": '"30m"',
    "limits.deadline": '"6h"',
    "price": '{max_rate: "1.20/h"}',
    "price.max_total": '"0.60"',
    "price.max_rate": '"1.20/h"',
    "price.keeper_fee": '"auto"',
    "price.billing": '"auto"',
    "match": '{window: "30s"}',
    "match.window": '"30s"',
    "match.newcomers": "false",
    "verify": '{attesters: "attesters.yaml"}',
    "verify.mode": '"none"',
    "verify.attesters": '"attesters.yaml"',
    "verify.window": '"1h"',
    "verify.compare": '{kind: "hash"}',
    "verify.compare.kind": '"hash"',
    "verify.compare.file": '"/out/result.npy"',
    "verify.compare.atol": '"1e-5"',
    "verify.compare.rtol": '"1e-5"',
    "verify.compare.minimum": '"0.99"',
    "verify.compare.field": '"accuracy"',
    "verify.replicas": "1",
    "verify.keep": "true",
    "array": "{units: 4}",
    "array.units": "4",
    "array.chunk": "1",
    "after": '["0x12..."]',
    "after[]": '"0x12..." of hearth jobs --mine',
    "after[].job": '"0x12..." of hearth jobs --mine',
    "after[].if": '"success"',
    "retry": "{attempts: 3}",
    "retry.attempts": "3",
    "checkpoint": '{every: "5m", path: "/out/checkpoints"}',
    "checkpoint.every": '"5m"',
    "checkpoint.path": '"/out/checkpoints"',
}
_AMOUNT: Final = r"[0-9]+(\.[0-9]+)?( ?(?!x)[A-Za-z]{2}.*)?"
FORMS: Final[Mapping[str, str]] = {
    "image": "[a-z0-9][a-z0-9._/-]*([:@].*)?",
    "inputs[].dst": "/in/[^/].*",
    "outputs[].path": "/out(/[^/].*)?",
    "checkpoint.path": "/out/[^/].*",
    "verify.compare.file": "/out/[^/].*",
    "resources.regions[]": "[A-Za-z]{2}",
    "limits.deadline": "([0-9]+[dhms])+",
    "limits.runtime": ".*[1-9].*",
    "checkpoint.every": ".*[1-9].*",
    "match.window": "[0-9]{1,2}s|[12][0-9]{2}s|300s",
    "outputs[].max_size": ".*[1-9].*",
    "resources.memory": ".*[1-9].*",
    "resources.disk": ".*[1-9].*",
    "resources.gpu.vram": ".*[1-9].*",
    "price.max_total": _AMOUNT,
    "price.max_rate": f"{_AMOUNT}/.+",
    "price.keeper_fee": f"auto|{_AMOUNT}",
    "after[]": "0x[0-9a-f]{64}",
    "after[].job": "0x[0-9a-f]{64}",
}
"""The text that fields take whose rule is not their type's, as far as a hint may suggest it."""
LONE: Final[Mapping[str, tuple[str, ...]]] = {
    "inputs[]": ("src",),
    "outputs[]": ("path",),
    "resources": ("cpus", "memory"),
    "resources.gpu": ("count",),
    "limits": ("runtime",),
    "price": ("max_total", "max_rate"),
    "match": ("window",),
    "verify.compare": ("kind",),
    "array": ("units",),
    "retry": ("attempts",),
    "checkpoint": ("every",),
}
"""Where one value stands for a mapping: the fields that may be meant, of which the first that takes it is."""
NEEDED: Final = frozenset({"price"})
"""Fields that no job can leave out, though the form of a job file lets it."""
BESIDE: Final[Mapping[str, str]] = {"inputs[]": ', dst: "/in/data"', "checkpoint": ', path: "/out/checkpoints"'}
"""What such a mapping needs beside that field."""


def place_of(where: Location) -> str:
    """Return a place as the examples write it: "inputs[].src"."""
    if where[:1] == ("env",) and len(where) > 1:
        return "env.*"
    return re.sub(r"\[[0-9]+\]", "[]", field_name(where))
