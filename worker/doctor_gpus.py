"""The rows of `hearth worker doctor` about GPUs: each of this machine, and how they are shared out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from hearth.base.text import one_line
from hearth.client.nodes.manifests import figures_in_words
from hearth.protocol.gpu_tiers import NVIDIA, Vendor
from worker.gpu import probing
from worker.gpu.figures import MEASURED, measured_now, shortfalls
from worker.gpu.port import GpuInfo, GpuProbe
from worker.runtimes import oci
from worker.runtimes.base import Check, Level
from worker.settings import Settings
from worker.status import lent_gpus

MEND_NAMES: Final = f"mend offer.gpus in worker.toml; {' or '.join(one.listing for one in probing.DRIVERS)} shows them"
LOST: Final = "a GPU here does not answer, and may be this one: restart this machine"


def look_at_gpus(settings: Settings, chain_id: int) -> list[Check]:
    """Check driver, each GPU of the machine, how they are shared out, and the container toolkit."""
    if settings.offer.gpus == "none":
        return [Check("gpu", Level.PASS, "not offered")]
    wish = settings.offer.gpu_names
    found = probing.probe(wish)
    if not found.gpus and not found.lost:
        if not found.absent or wish:
            level, fix = Level.FAIL if wish else Level.WARN, 'mend the driver, or set offer.gpus = "none"'
            return [Check("gpu", level, found.reason, fix)]
        return [Check("gpu", Level.PASS, f"none is offered: {found.reason}")]
    lent = lent_gpus(settings.home)
    rows = rows_of(found, lent, wish, settings.home)
    gone = sorted(set(wish) - {item.uuid for item in found.gpus})
    rows += [
        Check(f"gpu {uuid}", Level.FAIL, "it is not on this machine, or lost", LOST if found.lost else MEND_NAMES)
        for uuid in gone
    ]
    usable = [one for one in found.gpus if not one.problems_but(lent)]
    rows += _look_at_shares(settings, usable)
    toolkit = [_look_at_toolkit(chain_id)] if found.vendor is NVIDIA else []
    return [*rows, *_look_at_others(found.vendor), *toolkit]


def rows_of(
    found: GpuProbe, lent: Collection[str] = (), wish: Collection[str] = (), home: Path | None = None
) -> list[Check]:
    """Return a row for each GPU that a look found or missed; jobs of this worker have those that are `lent`, `wish` are
    those that its settings name, and `home` keeps what was measured."""
    rows = [_look_at_gpu(item, lent, home, named=item.uuid in wish) for item in found.gpus]
    rows += [
        Check(f"gpu {index}", Level.FAIL, f"it does not answer: {why}", "restart this machine; else the card is broken")
        for index, why in found.lost
    ]
    return sorted(rows, key=lambda row: [int(number) for number in row.name.removeprefix("gpu ").split(".")])


def _look_at_others(vendor: Vendor) -> list[Check]:
    """Say which GPUs stay idle since they are of another vendor than those that are offered."""
    others = [driver.vendor for driver in probing.DRIVERS if driver.vendor is not vendor]
    idle = [one for other in others for one in probing.probe_of(other).gpus]
    if not idle:
        return []
    text = f"{len(idle)} of {idle[0].vendor.title} stay idle: a node offers GPUs of one vendor"
    return [Check("gpu vendors", Level.WARN, text, "name them in offer.gpus of a second worker")]


def _look_at_toolkit(chain_id: int) -> Check:
    """Check the program that writes CDI specifications, whose hooks give containers their GPUs."""
    name, tool = "nvidia-container-toolkit", shutil.which("nvidia-ctk")
    if tool is None:
        fix = f"install nvidia-container-toolkit {oci.TOOLKIT_MINIMUM}"
        return Check(name, Level.WARN, "nvidia-ctk is not on PATH here: nobody can see whether it is too old", fix)
    try:
        said = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as failed:
        return Check(name, Level.WARN, f"{tool} does not say its version: {one_line(str(failed))}", "install it again")
    return oci.check_toolkit(said.stdout.partition("\n")[0], chain_id)


def _look_at_gpu(item: GpuInfo, lent: Collection[str], home: Path | None, *, named: bool) -> Check:
    """Say how one GPU is, and what its owner could do; one that offer.gpus names is missed."""
    name, level = f"gpu {item.label}", Level.FAIL if named else Level.WARN
    if item.defects:
        return Check(name, level, f"{item.name}: {'; '.join(item.defects)}", "it is left out until that is solved")
    if item.users and item.uuid not in lent:
        said = zip(item.users, item.processes or (), strict=True)
        users = "; ".join(f"{one}{_program(pid)}" for one, (pid, _) in said)
        return Check(name, level, f"{item.name}: {users}", "it is left out until that ends")
    words = _gpu_in_words(item) + ("; a job of this worker has it now" if item.uuid in lent else "")
    measured = None if home is None else measured_now(item, home)
    short: list[str] = []
    if measured is not None and measured.figures is None:
        return Check(name, Level.FAIL, f"{words}; {measured.why}", "mend it, then hearth worker benchmark")
    if measured is not None and measured.figures is not None:
        words = f"{words}; measured {figures_in_words(measured.figures)}"
        short = [f"{one}; then hearth worker benchmark" for one in shortfalls(item, measured.figures)]
    elif home is not None and item.vendor in MEASURED:
        words = f"{words}; not measured with this driver: hearth worker benchmark"
    if item.remarks or short:
        return Check(name, Level.WARN, words, "; ".join((*item.remarks, *short)))
    return Check(name, Level.PASS, words)


def _program(pid: int | None) -> str:
    """Return the name of a process's program in brackets, "" where nobody says."""
    try:
        return f" ({one_line(Path(f'/proc/{pid}/comm').read_text().strip())})" if pid is not None else ""
    except OSError:
        return ""


def _look_at_shares(settings: Settings, usable: Sequence[GpuInfo]) -> list[Check]:
    """Say what a slot promises less than its GPU has, and which GPUs no slot has."""
    wish = settings.offer
    chosen = [one for one in usable if wish.gpus == "all" or one.uuid in wish.gpus]
    if not chosen or wish.gpus_per_slot == 0:
        return []
    rows = []
    if len({(one.tier, one.vram_gib) for one in chosen}) > 1:
        least = min(chosen, key=lambda one: one.tier)
        text = f"every slot is offered as {least.slug}, the least of its {len(chosen)} GPUs"
        better = [one.uuid for one in chosen if one.tier != least.tier or one.vram_gib != least.vram_gib]
        fix = f"a worker for each kind earns more: offer.gpus = {list(better)} in a second worker.toml"
        rows.append(Check("gpu kinds", Level.WARN, text, fix))
    per_slot = wish.gpus_of_slot(len(chosen))
    idle = len(chosen) - per_slot * wish.slots
    if per_slot and idle > 0:
        text = f"{wish.slots} x {per_slot} GPUs are offered, and {idle} of {len(chosen)} stay idle"
        rows.append(Check("gpu shares", Level.WARN, text, "set offer.slots or offer.gpus_per_slot"))
    return rows


def _gpu_in_words(item: GpuInfo) -> str:
    unseen = "; the driver does not say who uses it" if item.processes is None else ""
    power = f", {item.watts} W" if item.watts else ""
    return f"{item.name}, {item.vram_gib} GiB, tier {item.slug}{power}{unseen}"
