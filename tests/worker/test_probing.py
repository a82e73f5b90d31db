"""The look at a machine's GPUs, by the real pynvml and a driver library that plays the machine."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hearth.protocol.gpu_tiers import NVIDIA
from tests.kit.played_gpu import GIB, PlayedMachine, card, played_machine
from worker.gpu.nvidia import DRIVER
from worker.gpu.probing import Looks, one_look, probe, probe_of


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedMachine]:
    """A machine with a 4090 and a 3060, which this process runs on."""
    with played_machine(card(), card("NVIDIA GeForce RTX 3060", 12, cc="8.6")) as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


def test_probe__two_cards__named_sized_and_fit(machine: PlayedMachine) -> None:
    found = probe()
    assert [(one.uuid, one.slug, one.vram_gib, one.problems) for one in found.gpus] == [
        (machine.cards[0].uuid, "rtx-4090", 24, ()),
        (machine.cards[1].uuid, "rtx-3060", 12, ()),
    ]
    assert (found.driver, found.reason) == ("570.133.20", "")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"init": 9}, "Driver Not Loaded"),
        ({"init": 18}, "restart this machine"),
        ({"init": 13}, "Function Not Found"),
        ({"init": 999}, "Unknown Error"),
        ({"count": 999}, "it does not say how many GPUs there are"),
        ({"count": 15}, "it does not say how many GPUs there are"),
        ({"crash": 1}, "its library ended the process that asked it: signal 6"),
    ],
    ids=lambda one: "-".join(f"{key}{value}" for key, value in one.items()) if isinstance(one, dict) else "",
)
def test_probe__driver_that_fails__no_gpu_and_why_until_it_works_again(
    machine: PlayedMachine, fault: dict[str, int], says: str
) -> None:
    machine.change(None, **fault)
    found = probe()
    assert found.gpus == () and says in found.reason
    machine.change(None, **dict.fromkeys(fault))
    assert len(probe().gpus) == 2


@pytest.mark.parametrize("fault", [{"sysdriver": 15}, {"syscuda": 999}, {"shutdown": 999}], ids=str)
def test_probe__question_that_no_job_depends_on_fails__the_gpus_are_there(
    machine: PlayedMachine, fault: dict[str, int]
) -> None:
    machine.change(None, **fault)
    assert len(probe().gpus) == 2


@pytest.mark.parametrize("fault", [{"handle": 15}, {"lost": 15}, {"lost": 16}, {"handle": 999}], ids=str)
def test_probe__one_card_lost__the_other_is_there(machine: PlayedMachine, fault: dict[str, int]) -> None:
    machine.change(0, **fault)
    found = probe()
    assert [one.uuid for one in found.gpus if not one.problems] == [machine.cards[1].uuid]
    machine.change(0, handle=None, lost=None)
    assert len(probe().gpus) == 2


def test_probe__driver_that_hangs__told_within_the_limit_and_asked_again_once_it_works(machine: PlayedMachine) -> None:
    looks = Looks(DRIVER, seconds=1.0)
    machine.change(None, hang=1)
    began = time.monotonic()
    assert looks.probe().reason == "no NVIDIA driver: it does not answer within 1 s"
    assert time.monotonic() - began < 60
    machine.change(None, hang=None)
    assert [one.vram_bytes for one in Looks(DRIVER).probe().gpus] == [24 * GIB, 12 * GIB]


@pytest.mark.parametrize("said", [b"", b"loading a library\n{}", b"\xff"])
def test_probe__process_that_says_something_else__no_gpu_and_why(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(subprocess.Popen, "communicate", lambda *_, **__: (said, b""))
    monkeypatch.setattr(subprocess.Popen, "returncode", 0, raising=False)
    assert Looks(DRIVER).probe().reason == "no NVIDIA driver: the process that asked it said no answer"


def test_probe__no_process_can_be_started__says_nothing_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refused)
    found = Looks(DRIVER).probe()
    assert (found.asked, found.answers, found.gpus) == (False, False, ())


def test_probe__process_that_a_driver_holds__is_waited_for_by_no_second_one(machine: PlayedMachine) -> None:
    looks = Looks(DRIVER)
    with pytest.MonkeyPatch.context() as patch:
        # SIGKILL does not end what the kernel holds.
        patch.setattr("worker.gpu.probing._end", lambda child: held.append(child))
        held: list = []
        machine.change(None, hang=1)
        looks._seconds = 0.5
        looks.probe()
        machine.change(None, hang=None)
        looks._seconds = 60.0
        assert "has not answered an earlier question yet" in looks.probe().reason
    held[0].kill()
    held[0].communicate()
    assert len(looks.probe().gpus) == 2


def test_probe__gpu_in_mig_slices__each_is_one_of_no_model_whose_memory_decides(machine: PlayedMachine) -> None:
    slices = [f"MIG-{number:08d}-1111-2222-3333-444444444444" for number in range(2)]
    says = [f"{slices[0]}:1g.5gb:{5 * GIB}", f"{slices[1]}:2g.10gb:{10 * GIB}"]
    machine.change(0, name="NVIDIA A100-SXM4-40GB", cc="8.0", mig=1, slice=says, proc=f"{os.getpid()}:1")
    first, second, whole = probe().gpus
    assert [(one.label, one.uuid, one.vram_gib, one.slug, one.problems) for one in (first, second)] == [
        ("0.0", slices[0], 5, "tier-1", ()),
        ("0.1", slices[1], 10, "tier-1", ()),
    ]
    assert (first.name, second.device.cdi) == ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", f"nvidia.com/gpu={slices[1]}")
    assert (whole.label, whole.slug) == ("1", "rtx-3060")
    machine.change(0, sproc=f"{os.getpid()}:1")
    first, second, _ = probe().gpus
    assert first.users == () and len(second.users) == 1
    # Slices are what jobs get, whatever the driver says of the mode: never the whole besides.
    said = json.loads(subprocess.run([sys.executable, "-m", DRIVER.program], capture_output=True, check=True).stdout)
    said["devices"][0]["mig"] = None
    assert [one.label for one in DRIVER.parse(said).gpus] == ["0.0", "0.1", "1"]
    # What fails in the whole fails in each slice.
    machine.change(0, uncorrected=2)
    assert ["uncorrected memory errors" in "".join(one.defects) for one in probe().gpus] == [True, True, False]


def test_one_look__several_questions__ask_each_driver_once_and_the_next_command_anew(
    machine: PlayedMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    popen = subprocess.Popen

    def noted(command: list[str], **more: Any) -> Any:
        asked.append(command[-1])
        return popen(command, **more)

    monkeypatch.setattr(subprocess, "Popen", noted)
    with one_look():
        assert len(probe().gpus) == len(probe_of(NVIDIA).gpus) == 2
        machine.change(1, lost=15)
        assert len(probe().gpus) == 2 and asked == ["worker.gpu.nvml"]
    assert len(probe().gpus) == 1
