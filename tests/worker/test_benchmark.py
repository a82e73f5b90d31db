"""worker.benchmark: what a program gets of a GPU, on an engine that injects devices and a driver that is played."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from hearth.base.errors import ConfigError
from hearth.client.nodes.manifests import figures_in_words
from hearth.protocol.gpu_tiers import NVIDIA
from tests.kit.played_gpu import GIB, HOST, PlayedMachine, card, played_machine
from tests.worker.test_doctor import told
from tools.services.base import cache_folder, locked
from worker import benchmark as subject
from worker import doctor, gateway
from worker.gpu import probing
from worker.gpu.figures import FILE, Incapable, Unmeasured, keep_measured, read_lines, read_measured
from worker.gpu.locks import Locks
from worker.runtimes.base import Check, Level
from worker.runtimes.docker import DockerRuntime

TEXT: Final = subject.FOLDER / "rate.ptx"
SAID: Final = "capability 89\nmemory 25350373376\nfrom_host 25000000152\nwithin 950000037415\nhalf 149999997346764\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedMachine]:
    """A machine with two RTX 4090, which this process runs on."""
    with played_machine(card(persistence=1), card(persistence=1)) as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


def rows_of(home: Path) -> list[Check]:
    """Measure every GPU of this machine."""
    return list(subject.benchmark(DockerRuntime(HOST), home, probing.probe().gpus))


def test_benchmark__two_gpus__figures_are_kept_and_doctor_and_manifest_say_them(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    machine.change(1, half="20e12", within="500e9")
    first, second = rows_of(tmp_path)
    assert (first.name, first.level) == ("gpu 0", Level.PASS)
    assert first.detail.startswith("NVIDIA GeForce RTX 4090: 150 TFLOP/s, 950 GB/s, 25 GB/s from the host, 23.")
    assert (second.name, second.level) == ("gpu 1", Level.WARN)
    assert "20 TFLOP/s of the 165 that are usual for rtx-4090" in second.detail
    settings = told(tmp_path, home=tmp_path)
    rows = {row.name: row for row in doctor.look_at_gpus(settings, 31337)}
    assert rows["gpu 0"].level is Level.PASS and "; measured 150 TFLOP/s" in rows["gpu 0"].detail
    assert rows["gpu 1"].level is Level.WARN and "20 TFLOP/s of the 165" in rows["gpu 1"].fix
    listed = gateway.manifest_of(settings).gpus
    assert [one.measured and one.measured.half_gflops for one in listed] == [149_999, 19_999]
    # Another driver is another measurement.
    machine.change(driver="580.1")
    assert [one.measured for one in gateway.manifest_of(settings).gpus] == [None, None]


@pytest.mark.parametrize(
    ("says", "level", "detail", "fix"),
    [
        ({"memfault": 1}, Level.FAIL, "its memory does not keep what is written: piece 1 of", "leave it out"),
        ({"sumfault": 1}, Level.FAIL, "it computes wrongly: 67108864 of 134217728", "leave it out"),
        ({"cc": "6.1"}, Level.PASS, "no units for matrices, 950 GB/s", ""),
        ({"cc": "9.0", "half": "70e12"}, Level.PASS, "70 TFLOP/s", ""),
        ({"cc": "10.0", "half": "70e12"}, Level.PASS, "70 TFLOP/s", ""),
        ({"used": 6 * GIB}, Level.WARN, "a program gets 17.6 GiB of the 24 that are offered", "again"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, dict) else "",
)
def test_benchmark__gpu_that_is_not_as_it_should_be__is_told(
    machine: PlayedMachine, tmp_path: Path, says: dict[str, Any], level: Level, detail: str, fix: str
) -> None:
    machine.change(0, **says)
    row = rows_of(tmp_path)[0]
    assert row.level is level and detail in row.detail and fix in row.fix, row
    assert (machine.cards[0].uuid in read_measured(tmp_path)) is (level is not Level.FAIL)


def test_benchmark__driver_that_gives_containers_no_cuda__fails(machine: PlayedMachine, tmp_path: Path) -> None:
    machine.change(cuinit=803)
    row = rows_of(tmp_path)[0]
    assert row.level is Level.FAIL and "cuInit says 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in row.detail, row
    machine.change(cuinit=None)
    spec = machine.spec()
    spec["containerEdits"]["mounts"] = [
        one for one in spec["containerEdits"]["mounts"] if "libcuda" not in one["containerPath"]
    ]
    machine.publish(spec)
    row = rows_of(tmp_path)[0]
    assert row.level is Level.FAIL and "has no driver library: libcuda.so.1" in row.detail
    assert "nvidia-ctk cdi generate" in row.fix


def test_register__gpu_that_no_job_computes_with__is_refused_and_one_that_does_is_measured_once(
    machine: PlayedMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = told(tmp_path, home=tmp_path, docker={"host": HOST})
    machine.change(0, sumfault=1)
    with pytest.raises(ConfigError) as refused:
        subject.refuse_incapable(settings)
    assert refused.value.code == "GPU_NOT_GIVEN" and "it computes wrongly" in refused.value.message
    machine.change(0, sumfault=None)
    subject.refuse_incapable(settings)
    assert set(read_measured(tmp_path)) == {one.uuid for one in machine.cards}
    monkeypatch.setattr(subject, "_measure", None)
    subject.refuse_incapable(settings)


def test_benchmark__gpu_that_a_job_has__is_left_alone(machine: PlayedMachine, tmp_path: Path) -> None:
    taken = machine.cards[0].uuid
    script = (
        "import sys; from worker.gpu.locks import Locks as All; held = All(); print(held.take(sys.argv[1]), flush=True)"
    )
    script += "; input()"
    command = [sys.executable, "-c", script, taken]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        first, second = rows_of(tmp_path)
        other.communicate("\n")
    assert first.level is Level.WARN and first.detail.endswith("not measured: a job has it now")
    assert second.level is Level.PASS
    assert all(Locks().take(one.uuid) for one in machine.cards)


def test_benchmark__home_that_takes_nothing__says_the_figures_and_that_they_are_not_kept(
    machine: PlayedMachine, tmp_path: Path
) -> None:
    home = tmp_path / "state"
    home.write_text("no folder")
    row = rows_of(home)[0]
    assert row.level is Level.WARN and "150 TFLOP/s" in row.detail and "not kept: " in row.detail


@pytest.mark.parametrize(
    "text",
    [
        "",
        "capability 89\n",
        SAID.replace("within 950000037415\n", ""),
        SAID + "half 1\n",
        SAID.replace("149999997346764", "-1"),
        SAID.replace("149999997346764", "²"),
        SAID.replace("149999997346764", "9" * 40),
        SAID.replace("149999997346764", "0"),
        "fault \x1b[31mred\n",
        "hello\n",
    ],
)
def test_read_lines__what_the_program_does_not_say__is_no_figure(text: str) -> None:
    with pytest.raises(Unmeasured) as refused:
        read_lines(text, "570", 1)
    assert str(refused.value).isprintable()


def test_read_lines__what_it_says__is_kept_as_it_is(tmp_path: Path) -> None:
    found = read_lines(SAID, "570", 1_796_000_000)
    keep_measured(tmp_path, "GPU-1", found)
    assert read_measured(tmp_path) == {"GPU-1": found}
    assert figures_in_words(found.figures) == "150 TFLOP/s, 950 GB/s, 25 GB/s from the host, 23.6 GiB on 2026-11-30"
    with pytest.raises(Incapable) as refused:
        read_lines("capability 89\nwrong its memory lies\n", "570", 1)
    assert refused.value.wrong
    for damaged in (
        "",
        "[]",
        "null",
        '{"a": 1}',
        '{"a": {"driver": 1}}',
        '{"a": {"figures": {}, "driver": "", "x": 1}}',
    ):
        (tmp_path / FILE).write_text(damaged)
        assert read_measured(tmp_path) == {}


def test_rate_ptx__each_instruction_by_its_meaning__stores_what_the_program_expects() -> None:
    """The text is run as the manual says: nothing here knows what it is for."""
    for thread, block, rounds in ((0, 0, 1), (31, 2, 3), (255, 7, 5)):
        stored = _run_ptx(TEXT.read_text(), {"sums": 1 << 40, "rounds": rounds}, thread=thread, block=block, size=256)
        assert stored == {(1 << 40) + 4 * (block * 256 + thread): 512.0 * rounds}


def _run_ptx(text: str, given: dict[str, int], *, thread: int, block: int, size: int) -> dict[int, float]:
    """Run one thread of a kernel whose threads all hold the same, and return what it stores."""
    body = re.sub(r"//.*", "", text).partition("{")[2].rpartition("}")[0]
    lines = [one.strip() for one in re.split(r";|(?<=:)\s", body) if one.strip()]
    labels = {one[:-1]: place for place, one in enumerate(lines) if one.endswith(":")}
    held: dict[str, Any] = {"%ctaid.x": block, "%ntid.x": size, "%tid.x": thread}
    stored: dict[int, float] = {}

    def value(name: str) -> Any:
        if name.startswith("0f"):
            return float(int(name[2:], 16))
        return held[name] if name in held else int(name, 0)

    at = 0
    while lines[at] != "ret":
        line, at = lines[at], at + 1
        if line.startswith(".reg") or line.endswith(":"):
            continue
        if guarded := re.fullmatch(r"@(%\w+) bra (\w+)", line):
            at = labels[guarded[2]] if held[guarded[1]] else at
            continue
        name, rest = line.split(None, 1)
        if name.startswith("wmma.mma"):
            into, left, right, plus = (
                [one.strip() for one in part.split(",")] for part in re.findall(r"{(.*?)}", rest)
            )
            # Two halves a register, 1.0 is 0x3c00: all elements are ones, and a product sums 16.
            assert {held[one] for one in (*left, *right)} == {0x3C003C00} and {len(left), len(right), len(into)} == {8}
            held |= {one: held[other] + 16.0 for one, other in zip(into, plus, strict=True)}
            continue
        into, *words = (one.strip() for one in rest.split(","))
        if name.startswith("st.global"):
            stored[held[into.strip("[]")]] = held[words[0]]
        elif name.startswith("ld.param"):
            held[into] = given[words[0].strip("[]")]
        else:
            held[into] = _MEANINGS[name.partition(".")[0]](*map(value, words))
    return stored


_MEANINGS: Final[dict[str, Any]] = {
    "cvta": lambda one: one,
    "mov": lambda one: one,
    "mad": lambda one, two, three: one * two + three,
    "mul": lambda one, two: one * two,
    "add": lambda one, two: one + two,
    "sub": lambda one, two: one - two,
    "setp": lambda one, two: one != two,
}


@pytest.mark.deep
@pytest.mark.parametrize("capability", sorted({10 * a + b for a, b, *_ in (one.generation for one in NVIDIA.models)}))
def test_rate_ptx__nvidias_own_assembler__takes_it_for_each_generation(capability: int, tmp_path: Path) -> None:
    # Of CUDA 12 for those that CUDA 13 knows no more.
    assembler = _assemblers() / "nvidia" / ("cuda_nvcc" if capability < 75 else "cu13") / "bin" / "ptxas"
    assembler.chmod(0o755)
    target = tmp_path / "rate.cubin"
    done = subprocess.run(
        [assembler, "-v", f"-arch=sm_{capability}", "-o", target, TEXT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and target.stat().st_size, done.stderr
    assert "0 bytes spill stores" in done.stderr


def _assemblers() -> Path:
    """Return the folder with two of NVIDIA's ptxas, fetched on the first call by their lock."""
    lock = Path(__file__).parent / "ptxas.lock"
    folder = cache_folder() / "ptxas" / sha256(lock.read_bytes()).hexdigest()[:16]
    folder.parent.mkdir(exist_ok=True)
    with locked(folder.with_name("lock")):
        if not folder.exists():
            fetched = folder.with_name("part")
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--require-hashes",
                "--target",
                fetched,
            ]
            subprocess.run([*command, "-r", lock], check=True)
            fetched.rename(folder)
    return folder
