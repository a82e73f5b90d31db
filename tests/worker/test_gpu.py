"""GPU probing from recorded machines, the tier table, and the versions that are refused."""

from __future__ import annotations

import json
import math
import re
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import gpu_tiers, words
from hearth.protocol.gpu_tiers import NVIDIA, Vendor
from worker.gpu import nvml
from worker.gpu.nvidia import UUID, parse
from worker.gpu.port import GpuProbe
from worker.gpu.probing import probe

DATA = Path(__file__).resolve().parents[1] / "data"
GIB = 1 << 30


def recorded(name: str) -> GpuProbe:
    """Return what is known of a machine whose driver's answers were recorded."""
    return parse(json.loads((DATA / f"nvml_{name}.json").read_text()))


# -- probe ------------------------------------------------


def test_probe__two_4090__named_sized_and_one_in_use() -> None:
    found = recorded("rtx4090_pair")
    first, second = found.gpus
    assert (first.slug, first.tier, first.vram_gib, first.compute) == ("rtx-4090", 472, 24, (8, 9))
    assert first.uuid.startswith("GPU-") and first.uuid != second.uuid
    assert first.problems == ()
    assert second.problems == ("process 4242 uses it: one tenant per GPU at a time",)
    assert (found.driver, found.reason) == ("570.133.20", "")


def test_probe__h200__healthy() -> None:
    (card,) = recorded("h200").gpus
    assert (card.slug, card.vram_gib, card.problems) == ("h200", 141, ())


def test_probe__mig_on__not_offered_whole() -> None:
    (card,) = recorded("a100_mig").gpus
    assert card.slug == "a100-40gb"
    assert any("MIG" in problem for problem in card.problems)


def test_probe__memory_errors_and_a_lost_gpu__each_named() -> None:
    found = recorded("a100_sick")
    pending, failed = found.gpus
    assert pending.problems == (
        "2 uncorrected memory errors since the driver started",
        "a memory row waits to be remapped: reset the GPU",
    )
    assert failed.problems == ("a memory row could not be remapped: replace the GPU",)
    assert found.reason == "GPU 2 does not answer: GPU is lost"


@pytest.mark.parametrize(("name", "word"), [("no_driver", "Driver Not Loaded"), ("no_device", "shows no GPU")])
def test_probe__nothing_there__empty_with_a_reason(name: str, word: str) -> None:
    found = recorded(name)
    assert found.gpus == ()
    assert word in found.reason


def test_probe__this_machine__never_raises() -> None:
    found = probe()
    assert found.gpus or found.reason


def test_driver_nvml__values_of_the_library__in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pynvml module with its library calls answered as an RTX 3060 answers: ECC, MIG and rows unsupported."""
    import pynvml

    def unsupported(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def missing(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: b"535.183.01",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 12020,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(total=12 * GIB, used=1),
        "nvmlDeviceGetName": lambda handle: b"NVIDIA GeForce RTX 3060",
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlDeviceGetCudaComputeCapability": lambda handle: (8, 6),
        "nvmlDeviceGetMigMode": unsupported,
        "nvmlDeviceGetEccMode": unsupported,
        "nvmlDeviceGetTotalEccErrors": unsupported,
        "nvmlDeviceGetRemappedRows": missing,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 170_000,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [types.SimpleNamespace(pid=7, usedGpuMemory=None)],
    }
    for name, answer in answers.items():
        assert hasattr(pynvml, name)
        monkeypatch.setattr(pynvml, name, answer)
    found = parse(nvml.read())
    assert [card.uuid for card in found.gpus] == ["GPU-0", "GPU-1"]
    assert found.gpus[0].slug == "rtx-3060" and found.gpus[0].processes == ((7, None),)

    def lose_second(handle: int) -> int:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return handle

    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lose_second)
    found = parse(nvml.read())
    assert len(found.gpus) == 1 and "GPU 1" in found.reason


HEALTHY: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlSystemGetDriverVersion": "570.1",
    "nvmlSystemGetCudaDriverVersion_v2": 12080,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=24 * GIB, used=1),
    "nvmlDeviceGetName": "NVIDIA GeForce RTX 4090",
    "nvmlDeviceGetUUID": "GPU-00000001-1111-2222-3333-444444444444",
    "nvmlDeviceGetCudaComputeCapability": (8, 9),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
    "nvmlDeviceGetEnforcedPowerLimit": 450_000,
    "nvmlDeviceGetComputeRunningProcesses": [],
}
UNFIT = {
    "nvmlDeviceGetMemoryInfo": "how much memory",
    "nvmlDeviceGetUUID": "no UUID",
}
"""What a job cannot be promised without. A known name stands for a compute capability, and the other way round."""
ODD: dict[str, Any] = {
    "not supported": "NOT_SUPPORTED",
    "no such function": "FUNCTION_NOT_FOUND",
    "not for this user": "NO_PERMISSION",
    "unknown": "UNKNOWN",
    "none": None,
    "zero": 0,
    "minus one": -1,
    "a float": 1.5,
    "bytes": b"\xff\xfe\x00",
    "nothing": "",
    "a word": "garbage",
    "a list": [],
    "a list of nothing": [None, None, None, None],
    "an object": types.SimpleNamespace(total=None, used=None),
}


def answered(monkeypatch: pytest.MonkeyPatch, changed: str = "", odd: Any = None) -> GpuProbe:
    """Probe with the real pynvml module, whose library answers as a healthy card but for one call."""
    import pynvml

    for name, answer in HEALTHY.items():
        answer = odd if name == changed else answer
        code = getattr(pynvml, f"NVML_ERROR_{answer}", None) if isinstance(answer, str) and answer else None

        def call(*_: object, answer: Any = answer, code: int | None = code) -> Any:
            if code is not None:
                raise pynvml.NVMLError(code)
            return answer

        monkeypatch.setattr(pynvml, name, call)
    return parse(nvml.read())


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", HEALTHY)
def test_probe__one_answer_missing_or_garbled__no_crash_and_no_zero_taken_as_a_fact(
    monkeypatch: pytest.MonkeyPatch, name: str, odd: str
) -> None:
    (healthy,) = answered(monkeypatch).gpus
    assert healthy.problems == () and healthy.slug == "rtx-4090" and healthy.processes == ()
    found = answered(monkeypatch, name, ODD[odd])
    json.dumps([one.name for one in found.gpus], allow_nan=False).encode()
    fit = [one for one in found.gpus if not one.problems]
    assert all(one.vram_gib == 24 and one.compute == (8, 9) and one.tier and UUID.match(one.uuid) for one in fit)
    if not found.gpus:
        assert found.reason and name in ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
    elif name in UNFIT:
        assert fit == [] and UNFIT[name] in found.gpus[0].problems[0]
    elif name == "nvmlDeviceGetComputeRunningProcesses" and odd not in ("a list", "a list of nothing"):
        assert fit[0].processes is None
    else:
        assert fit or odd == "a list of nothing"


def test_probe__neither_name_nor_generation__is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEALTHY, "nvmlDeviceGetName", "NVIDIA Thing")
    (card,) = answered(monkeypatch, "nvmlDeviceGetCudaComputeCapability", (0, 0)).gpus
    assert "compute capability" in card.problems[0]


def test_probe__lost_while_it_is_asked__is_told_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(monkeypatch, "nvmlDeviceGetTotalEccErrors", "GPU_IS_LOST")
    assert found.gpus == () and "GPU 0 does not answer" in found.reason


# -- tiers ------------------------------------------------


@pytest.mark.parametrize("vendor", gpu_tiers.VENDORS.values(), ids=gpu_tiers.VENDORS)
def test_models__table__keys_rise_with_the_rate_and_fit_ten_bits(vendor: Vendor) -> None:
    keys = [model.tier for model in vendor.models]
    assert keys == sorted(set(keys))
    assert keys[0] > gpu_tiers.OTHER_TIER and keys[-1] <= gpu_tiers.MAX_TIER
    assert 1 << words.width_of(words.NEEDS, "tier") == gpu_tiers.MAX_TIER + 1
    off = {model.slug: model.tier - 64 * math.log2(model.tflops) for model in vendor.models}
    # Models of one rate have neighbouring keys: the last of four is three above its rate.
    assert all(-0.5 <= each < 5 for each in off.values()), off


def test_models__slugs_of_all_vendors__are_unique() -> None:
    slugs = [model.slug for vendor in gpu_tiers.VENDORS.values() for model in vendor.models]
    assert len(set(slugs)) == len(slugs) == len(gpu_tiers.TIERS)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA GeForce RTX 3060", "rtx-3060"),
        ("NVIDIA GeForce RTX 3060 Ti", "rtx-3060-ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb"),
        # What was guessed too high, or as another card, by memory and generation.
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA H800", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA A30", "a30"),
        ("NVIDIA A800-SXM4-80GB", "a100-80gb"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("Quadro RTX 8000", "rtx-8000"),
        ("NVIDIA A2", "a2"),
        ("NVIDIA A16", "a16"),
        ("NVIDIA GeForce RTX 3050", "rtx-3050"),
        ("NVIDIA RTX A2000 12GB", "rtx-a2000"),
        ("NVIDIA RTX A4500", "rtx-a4500"),
        ("NVIDIA L20", "l20"),
        ("NVIDIA RTX 4000 Ada Generation", "rtx-4000-ada"),
        ("NVIDIA RTX 5000 Ada Generation", "rtx-5000-ada"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "rtx-4060-laptop"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "rtx-5090-laptop"),
        ("NVIDIA GeForce RTX 5070 Laptop GPU", "rtx-5070-laptop"),
        ("NVIDIA RTX PRO 4000 Blackwell", "rtx-pro-4000"),
        ("NVIDIA RTX PRO 4500 Blackwell", "rtx-pro-4500"),
        ("NVIDIA RTX PRO 2000 Blackwell", "rtx-pro-2000"),
        ("NVIDIA RTX PRO 5000 Blackwell", "rtx-pro-5000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA Thor", "jetson-thor"),
        ("Orin (nvgpu)", "jetson-orin"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA A100-SXM-64GB", "a100-64gb"),
        ("NVIDIA A100X", "a100-80gb"),
        ("NVIDIA PG509-210", "a100-80gb"),
    ],
)
def test_tier_of__known_name__its_own_key(name: str, slug: str) -> None:
    model = gpu_tiers.find_model(NVIDIA, name)
    assert model is not None and model.slug == slug
    assert gpu_tiers.slug_of(NVIDIA, gpu_tiers.tier_of(NVIDIA, name)) == slug
    bare = name.removeprefix("NVIDIA ").removeprefix("GeForce ").removeprefix("Tesla ").removeprefix("Quadro ")
    assert [one.slug for one in NVIDIA.models if re.fullmatch(one.pattern, bare)] == [slug]


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 3060 Laptop GPU",
        "NVIDIA RTX 4500 Ada Generation",
        "NVIDIA GeForce RTX 5080 with Max-Q Design",
        "NVIDIA GeForce GTX 1650",
        "NVIDIA CMP 170HX",
        "NVIDIA Thing Of Tomorrow",
        "NVIDIA H100 CNX",
        "GRID A100-20C",
        "NVIDIA RTX6000-Ada-24Q",
        "NVIDIA A100-1-5CME",
        "NVIDIA A40-2B4",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb",
    ],
)
def test_tier_of__unknown_name_or_part_of_a_gpu__its_memory_decides(name: str) -> None:
    assert gpu_tiers.find_model(NVIDIA, name) is None
    assert gpu_tiers.tier_of(NVIDIA, name) == gpu_tiers.OTHER_TIER
    assert gpu_tiers.is_part(name) is any(part in name for part in ("-20C", "-24Q", "5CME", "2B4", "MIG"))


@given(st.text(max_size=40))
def test_tier_of__anything__a_key_of_the_chain(name: str) -> None:
    assert 1 <= gpu_tiers.tier_of(NVIDIA, name) <= gpu_tiers.MAX_TIER


@pytest.mark.parametrize(
    ("mib", "gib"),
    [(24564, 24), (24576, 24), (81559, 80), (143771, 141), (12288, 12), (23034, 22), (15360, 15), (8191, 8), (0, 0)],
)
def test_vram_gib__what_drivers_report__what_cards_are_sold_as(mib: int, gib: int) -> None:
    assert gpu_tiers.vram_gib(mib << 20) == gib
