"""AMD's GPUs as the kernel tells of them: read from files of a played machine, named, sized and judged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.protocol.gpu_tiers import AMD, find_model
from hearth.protocol.types import Runtime
from tests.kit import build
from tests.kit.played_amd import FIRST_RENDER, GIB, MI300X, RENDER_GROUP, AmdMachine, amd_card
from tests.worker.test_doctor import told
from worker.build import pool_of
from worker.gpu import probing
from worker.gpu.amd import DRIVER, parse
from worker.gpu.amdgpu import read
from worker.gpu.port import GpuProbe
from worker.gpu.probing import drivers_of
from worker.runtimes.docker import DockerRuntime

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[AmdMachine]:
    """A machine with an MI300X, and an RX 7900 XTX."""
    folder = tmp_path / "machine"
    folder.mkdir()
    yield AmdMachine(folder, [amd_card(192, **MI300X), amd_card()])


def look(machine: AmdMachine) -> GpuProbe:
    return parse(read(machine.sys, machine.dev))


def test_parse__two_cards__named_sized_and_given_by_their_places_in_a_cdi_specification(machine: AmdMachine) -> None:
    found = look(machine)
    first, second = found.gpus
    assert (first.name, first.slug, first.vram_gib, first.compute) == (
        "AMD Instinct MI300X OAM",
        "mi300x",
        193,
        (9, 4, 2),
    )
    assert (second.name, second.slug, second.vram_gib, second.compute) == (
        "AMD rx-7900-xtx",
        "rx-7900-xtx",
        24,
        (11, 0, 0),
    )
    assert [one.uuid for one in found.gpus] == [one.uuid for one in machine.cards]
    assert (first.vendor, first.watts, first.used_bytes, first.driver) == (AMD, 355, GIB >> 4, "amdgpu 6.12.12")
    assert (first.problems, first.remarks, found.reason, found.lost) == ((), (), "", ())
    wanted = ("amd.com/gpu=1", "/dev/dri/renderD", FIRST_RENDER + 1, (RENDER_GROUP,))
    device = second.device
    assert (device.cdi, device.nodes, device.number, device.groups) == wanted
    assert drivers_of([device.uuid]) == [DRIVER]


@pytest.mark.parametrize(
    ("says", "defect"),
    [
        ({"ue": 3}, "3 uncorrected memory errors"),
        ({"partition": "CPX"}, "amd-smi set --compute-partition SPX"),
        ({"partition": "SPX"}, ""),
        ({"ue": None, "power": None, "used": None}, ""),
    ],
    ids=["memory errors", "partitioned", "one partition", "what no job depends on"],
)
def test_parse__card_with_a_fault__is_unfit_for_it_alone(
    machine: AmdMachine, says: dict[str, Any], defect: str
) -> None:
    machine.change(0, **says)
    first, second = look(machine).gpus
    assert (defect in "; ".join(first.defects)) and bool(first.defects) is bool(defect)
    assert second.problems == ()


def test_parse__card_without_an_id__is_offered_to_nobody(machine: AmdMachine) -> None:
    machine.cards[0].unique_id = None
    machine.write()
    (first, _) = look(machine).gpus
    assert first.uuid == "" and "names no unique id" in first.defects[0]


def test_parse__process_that_has_memory_of_it__uses_it_and_one_that_has_none_does_not(machine: AmdMachine) -> None:
    machine.change(1, procs={4242: 5 * GIB, 17: 0})
    first, second = look(machine).gpus
    assert first.users == () and second.users == ("process 4242 uses it: one tenant per GPU at a time",)


def test_parse__card_that_answers_no_more__is_lost_and_hides_no_other(machine: AmdMachine) -> None:
    total = machine.place(0) / "mem_info_vram_total"
    total.unlink()
    total.mkdir()  # reads fail, as those of a card that fell off the bus do
    found = look(machine)
    assert [one.index for one in found.gpus] == [1] and found.lost == ((0, "Is a directory"),)
    assert found.reason == "GPU 0 does not answer: Is a directory"


ODD = {"empty": "", "letters": "x", "negative": "-1", "huge": "9" * 5000, "odd": "²", "odd pair": "ue: ²"}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_read__file_that_holds_anything__is_what_it_does_not_say(machine: AmdMachine, text: str) -> None:
    for name in ("mem_info_vram_used", "ras/umc_err_count", "hwmon/hwmon0/power1_cap", "unique_id", "device"):
        (machine.place(0) / name).write_text(text)
    found = look(machine)
    assert len(found.gpus) == 2 and (found.gpus[0].used_bytes, found.gpus[0].watts) == (None, None)


def test_probe__integrated_gpu_alone__is_no_gpu_and_no_fault(tmp_path: Path) -> None:
    found = look(AmdMachine(tmp_path, [amd_card(0.5, device="0x15bf", gfx=110003)]))
    assert (found.gpus, found.absent, found.lost) == ((), True, ())


def test_probe__no_kernel_module__is_absent(tmp_path: Path) -> None:
    found = parse(read(tmp_path, tmp_path))
    assert found.absent and found.reason == "no AMD driver: the kernel module amdgpu is not loaded"


def test_parse__card_that_is_not_in_the_table__is_offered_by_its_memory_and_says_so(machine: AmdMachine) -> None:
    machine.change(1, device="0x745e", revision="0xcc")
    _, second = look(machine).gpus
    assert (second.slug, second.name) == ("tier-1", "AMD 745e:cc") and "not in the table" in second.remarks[0]


def test_parse__node_that_no_job_can_open__is_a_defect(machine: AmdMachine) -> None:
    (machine.dev / "kfd").chmod(0o600)
    assert all("no job can open /dev/kfd" in one.defects[0] for one in look(machine).gpus)
    (machine.dev / "kfd").chmod(0o666)
    (machine.dev / f"dri/renderD{FIRST_RENDER}").unlink()
    first, second = look(machine).gpus
    assert f"/dev/dri/renderD{FIRST_RENDER}" in first.defects[0] and second.problems == ()


def test_parse__memory_that_no_compute_process_has__is_a_desktops_and_not_offered(machine: AmdMachine) -> None:
    machine.change(1, used=9 * GIB, procs={4242: 5 * GIB})
    _, second = look(machine).gpus
    assert second.vram_gib == 20 and "4GiB of it are used by what computes nothing" in second.remarks[0]


def test_parse__card_that_nothing_computes_on__is_numbered_by_nobody(machine: AmdMachine) -> None:
    (machine.sys / "class/kfd/kfd/topology/nodes/1/gpu_id").write_text("0")
    (only,) = look(machine).gpus
    assert (only.slug, only.device.cdi, only.device.number) == ("rx-7900-xtx", "amd.com/gpu=0", FIRST_RENDER + 1)


def test_parse__ids_of_zeros__name_nothing(machine: AmdMachine) -> None:
    for one in machine.cards:
        one.unique_id = "0" * 16
    machine.write()
    assert all(one.uuid == "" and one.defects for one in look(machine).gpus)


@pytest.mark.parametrize(
    ("chip", "slug"),
    [
        ("740f:02", "mi210"),
        ("7408:00", "mi250x"),
        ("74a1:00", "mi300x"),
        ("74a5:00", "mi325x"),
        ("75a3:00", "mi355x"),
        ("744c:c8", "rx-7900-xtx"),
        ("744c:cc", "rx-7900-xt"),
        ("7550:c0", "rx-9070-xt"),
        ("7448:00", "w7900"),
    ],
)
def test_find_model__chip__is_its_model(chip: str, slug: str) -> None:
    model = find_model(AMD, chip)
    assert model is not None and model.slug == slug


def test_probe__vendor_without_a_card__hides_no_other_and_one_that_fails_is_told(
    machine: AmdMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = GpuProbe((), reason="no driver of it", answers=False, absent=True)
    said = {"nvidia": GpuProbe((), reason="the NVIDIA driver shows no GPU"), "amd": look(machine)}
    monkeypatch.setattr(probing, "probe_of", lambda vendor: said[vendor.name])
    assert probing.probe() is said["amd"]
    said["nvidia"] = GpuProbe((), reason="it was upgraded", answers=False)
    assert probing.probe() is said["nvidia"]
    assert probing.probe([machine.cards[0].uuid]) is said["amd"]
    said.update(nvidia=none, amd=none)
    found = probing.probe()
    assert found.absent and found.reason == "no driver of it; no driver of it"


def test_pool_of__card_whose_number_is_anothers__is_given_to_no_job_from_the_start(
    machine: AmdMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = machine.cards
    monkeypatch.setattr(probing, "probe_of", lambda vendor: look(machine))
    monkeypatch.setattr(DockerRuntime, "gpu_refusals", lambda self, gpus: "")
    wrong = {first.uuid: "its CDI specification is an older one", second.uuid: ""}
    monkeypatch.setattr(DockerRuntime, "try_gpu", lambda self, gpu: wrong[gpu.uuid])
    node = build.node(1, runtimes=Runtime.DOCKER | Runtime.AMD, tier=445, gpu_count=1, vram_gib=24)
    pool = pool_of(told(tmp_path), node, {"docker": DockerRuntime("unix:///nowhere.sock")})
    assert {one.uuid: one.state for one in pool.states()} == {first.uuid: "gpu_engine", second.uuid: "free"}
