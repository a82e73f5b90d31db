"""worker.benchmark: what a program gets of a GPU, on an engine that injects devices and a driver that is played."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from struct import unpack
from typing import Any, Final

import pytest

from hearth.base.errors import ConfigError
from hearth.client.nodes.manifests import figures_in_words
from hearth.market.manifest import Figures
from hearth.protocol.gpu_tiers import NVIDIA
from hearth.storage import canonical
from tests.kit.build import node as plain_node
from tests.kit.evm import ROOT
from tests.kit.played_gpu import GIB, HOST, PlayedMachine, card, played_machine
from tests.kit.running import wait
from tests.worker.test_doctor import ETH, told
from tests.worker.test_gpu import recorded
from tools.services.base import cache_folder, locked
from worker import benchmark as subject
from worker import build, doctor, gateway
from worker.gpu import probing
from worker.gpu.figures import (
    Incapable,
    Measurement,
    Unmeasured,
    keep_measured,
    lacking_figures,
    measured_now,
    read_lines,
    shortfalls,
)
from worker.gpu.locks import Locks
from worker.runtimes.base import Check, Level
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_request import LABEL
from worker.settings import probe_offer

TEXT: Final = subject.FOLDER / "kernels.ptx"
SAID: Final = "memory_mib 24176\nfrom_host_mb_s 25000\nmemory_mb_s 950000\nhalf_gflops 149999\ndone\n"


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
    assert [one.measured and one.measured.half_gflops for one in listed] == [150_000, 20_000]
    # Another driver is another measurement.
    machine.change(driver="580.1")
    assert [one.measured for one in gateway.manifest_of(settings).gpus] == [None, None]


@pytest.mark.parametrize(
    ("says", "level", "detail", "fix"),
    [
        ({"memfault": 1}, Level.FAIL, "its memory does not keep what is written: ", "leave it out"),
        ({"sumfault": 1}, Level.FAIL, "it computes wrongly: 67108864 of 134217728", "leave it out"),
        ({"flaky": 1}, Level.FAIL, "it computes wrongly: 67108864 of 134217728", "leave it out"),
        ({"cc": "6.1"}, Level.WARN, "its generation, 6.1, has no units for matrices", "once that is mended"),
        ({"integrated": 1}, Level.WARN, "its memory is this machine's own", "once that is mended"),
        ({"cucrash": 1}, Level.WARN, "its program ended after 'memory_mb_s 950000'", "once that is mended"),
        ({"cc": "9.0", "half": "45e12"}, Level.WARN, "45 TFLOP/s of the 99 that", "hearth worker benchmark"),
        ({"cc": "10.0", "half": "70e12"}, Level.PASS, "70 TFLOP/s", ""),
        ({"spill": 64 * GIB}, Level.PASS, " 24.0 GiB on ", ""),
        (
            {"used": 6 * GIB},
            Level.WARN,
            "a program gets 17.6 GiB of the 24 that are offered",
            "hearth worker benchmark",
        ),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, dict) else "",
)
def test_benchmark__gpu_that_is_not_as_it_should_be__is_told(
    machine: PlayedMachine, tmp_path: Path, says: dict[str, Any], level: Level, detail: str, fix: str
) -> None:
    gpu = probing.probe().gpus[0]
    machine.change(0, **says)
    row = rows_of(tmp_path)[0]
    assert row.level is level and detail in row.detail and fix in row.fix, row
    # What is found wrong is kept too: nobody is told the figures of before.
    kept = measured_now(gpu, tmp_path)
    assert (kept is None) is ("not measured" in row.detail)
    assert kept is None or (kept.figures is None) is (level is Level.FAIL)


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


def test_benchmark__gpu_on_which_no_program_ends__fails_and_leaves_no_container_when_it_is_killed(
    machine: PlayedMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docker

    machine.change(cuhang=1)
    monkeypatch.setattr(subject, "LIMITS", replace(subject.LIMITS, wall_seconds=3))
    row = rows_of(tmp_path)[0]
    assert row.level is Level.FAIL and "does not end, here within 3 s" in row.detail, row
    script = "from tests.worker.test_benchmark import *; rows_of(Path('/nowhere'))"
    unit = f"benchmark-{machine.cards[0].uuid}"
    with docker.APIClient(base_url=HOST, version="auto") as api:

        def running() -> list[dict[str, Any]]:
            return list(api.containers(filters={"label": f"{LABEL}={unit}"}))

        with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as killed:
            wait(running, "the benchmark's container runs")
            killed.kill()
        assert running()
        machine.change(cuhang=None)
        assert [one.level for one in rows_of(tmp_path)] == [Level.PASS] * 2
        assert not running() and not api.images(name=f"hearth-{unit.lower()}")


def test_register__gpu_that_no_job_computes_with__is_refused_and_one_that_does_is_measured_once(
    machine: PlayedMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = told(tmp_path, home=tmp_path, docker={"host": HOST})
    rows_of(tmp_path)
    assert lacking_figures(probing.probe().gpus, tmp_path) == []
    # The figures of before go with what is found now.
    machine.change(0, sumfault=1)
    assert [one.level for one in rows_of(tmp_path)] == [Level.FAIL, Level.PASS]
    with pytest.raises(ConfigError) as refused:
        subject.refuse_incapable(settings)
    assert refused.value.code == "GPU_NOT_GIVEN" and "it computes wrongly" in refused.value.message
    row = next(one for one in doctor.look_at_gpus(settings, 31337) if one.name == "gpu 0")
    assert row.level is Level.FAIL and "it computes wrongly" in row.detail
    assert [one.measured is None for one in gateway.manifest_of(settings).gpus] == [True, False]
    # A worker that runs gives it to no job either, and a manifest lists what is offered alone.
    offer = probe_offer(told(tmp_path, home=tmp_path, offer__slots=2), ETH)
    broken, well = probing.probe().gpus
    node = plain_node(1, offer=offer)
    assert build._lack_of(settings, node, broken) == "it computes wrongly: 67108864 of 134217728"
    assert build._lack_of(settings, node, well) == ""
    one = told(tmp_path, home=tmp_path, offer__gpus=[well.uuid])
    assert [each.measured is None for each in gateway.manifest_of(one).gpus] == [False]
    machine.change(0, sumfault=None)
    subject.refuse_incapable(settings)
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
    assert first.level is Level.WARN and first.detail.endswith("not measured: a job or another benchmark has it now")
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
        "done",
        "memory_mib 1\ndone",
        SAID.replace("memory_mb_s 950000\n", ""),
        SAID.replace("\ndone", ""),
        SAID.replace("\ndone", "\nhalf_gflops 1\ndone"),
        SAID.replace("\ndone", "\nat 1\ndone"),
        SAID.replace("\ndone", "\nlater 1\ndone"),
        *(SAID.replace("149999", odd) for odd in ("-1", "²", "9" * 40, "9" * 5_000, "0")),
        "fault \x1b[31mred\n",
        "hello\n",
    ],
)
def test_read_lines__what_the_program_does_not_say__is_no_figure(text: str) -> None:
    with pytest.raises(Unmeasured) as refused:
        read_lines(text, 1)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 300


GPU: Final = replace(recorded("rtx4090_pair").gpus[0], driver="570")


def test_measured__what_is_kept__is_read_again_and_nothing_else_is(tmp_path: Path) -> None:
    figures = read_lines(SAID, 1_796_000_000)
    assert figures_in_words(figures) == "150 TFLOP/s, 950 GB/s, 25 GB/s from the host, 23.6 GiB on 2026-11-30"
    for kept in (Measurement("570", figures), Measurement("570", None, "it computes wrongly")):
        keep_measured(tmp_path / "home", GPU, kept)
        assert measured_now(GPU, tmp_path / "home") == kept
    # The worker refuses a home that others may enter.
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert measured_now(replace(GPU, driver="580"), tmp_path / "home") is None
    file = tmp_path / "home" / "gpus" / f"{GPU.uuid}.json"
    whole = {"driver": "570", "figures": asdict(figures), "why": ""}
    late, neither = {**whole, "figures": {**asdict(figures), "at": 1 << 40}}, {**whole, "figures": None}
    odd = (
        late,
        neither,
        {**whole, "why": "both"},
        {**whole, "why": 1},
        {**whole, "figures": [1]},
        {"driver": "570"},
        [],
    )
    # A process whose limit of recursion was raised would end by the deep one: it is refused before it is read.
    for damaged in (b"", b"null", b"[" * 100_000, b'{"driver":1e999}', b"\xff", *map(canonical.encode, odd)):
        file.write_bytes(damaged)
        assert measured_now(GPU, tmp_path / "home") is None
    file.write_bytes(canonical.encode(whole))
    assert measured_now(GPU, tmp_path / "home") == Measurement("570", figures)
    with pytest.raises(Incapable) as refused:
        read_lines("memory_mib 1\nwrong its memory lies\n", 1)
    assert refused.value.wrong


def test_shortfalls__just_below_and_above_what_is_usual__are_told() -> None:
    whole = Figures(1, 24 << 10, 1, 1, 83_000)
    assert GPU.slug == "rtx-4090" and shortfalls(GPU, whole) == []
    (low,) = shortfalls(GPU, replace(whole, half_gflops=82_000))
    assert low.startswith("it makes 82 TFLOP/s of the 165 that are usual for rtx-4090: ")
    # Ten percent of Hopper's published rate are told, and a third is not: one instruction reaches three fifths of it.
    hopper = replace(GPU, compute=(9, 0))
    assert shortfalls(hopper, replace(whole, half_gflops=50_000)) == []
    assert len(shortfalls(hopper, replace(whole, half_gflops=49_000))) == 1
    # What drivers and error correction keep of cards as they are sold: CUDA's totals less a context's 450 MiB.
    for offered, cuda in ((24, 23.52), (40, 39.39), (80, 79.1), (80, 79.15), (141, 139.8), (180, 178.35)):
        sold = replace(GPU, vram_gib=offered)
        assert shortfalls(sold, replace(whole, memory_mib=int(cuda * 1024) - 450)) == []
    (short,) = shortfalls(GPU, replace(whole, memory_mib=22 << 10))
    assert short == "a program gets 22.0 GiB of the 24 that are offered"


def test_archive__machine_without_the_program_or_gnus_library__is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject.platform, "machine", lambda: "riscv64")
    with pytest.raises(Unmeasured, match=r"there is no program for riscv64$"):
        subject._archive()
    monkeypatch.undo()
    monkeypatch.setattr(subject, "_libraries", lambda: {"libc.musl-x86_64.so.1": Path("/lib/libc.so")})
    with pytest.raises(Unmeasured, match="C library is not GNU's"):
        subject._archive()


def test_kernels__each_instruction_by_its_meaning__do_what_the_program_expects() -> None:
    """The text is run as NVIDIA's manual says, one thread after the other."""
    text, piece, words = TEXT.read_text(), 1 << 40, 1_000
    memory: dict[int, float] = {}
    for block, thread in product(range(2), range(32)):
        _run_ptx(text, "fill", {"piece": piece, "words": words, "salt": 7}, (block, thread), memory)
    assert memory == {piece + 4 * at: ((at * 0x9E3779B1) & 0xFFFFFFFF) ^ 7 for at in range(words)}
    memory |= {piece + 4 * 999: 0, piece: 8, 1: 0}
    for block, thread in product(range(2), range(32)):
        _run_ptx(text, "wrong", {"piece": piece, "words": words, "salt": 7, "count": 1}, (block, thread), memory)
    assert memory[1] == 2
    for block, thread, rounds in ((0, 0, 1), (1, 31, 5)):
        stored: dict[int, float] = {}
        _run_ptx(text, "rate", {"sums": piece, "rounds": rounds}, (block, thread), stored)
        assert stored == {piece + 4 * (block * 32 + thread): 512.0 * rounds}


def _run_ptx(text: str, kernel: str, given: dict[str, int], place: tuple[int, int], memory: dict[int, float]) -> None:
    """Run one thread, of 32 in each of two blocks, of a kernel; the threads of a warp hold the same fragments."""
    body = re.sub(r"//.*", "", text).partition(f".entry {kernel}(")[2].partition("{")[2].partition("\n}")[0]
    lines = [one.strip() for one in re.split(r";|(?<=:)\s", body) if one.strip()]
    labels = {one[:-1]: at for at, one in enumerate(lines) if one.endswith(":")}
    held: dict[str, Any] = {"%ctaid.x": place[0], "%ntid.x": 32, "%tid.x": place[1], "%nctaid.x": 2}

    def value(name: str) -> Any:
        if name.startswith("0f"):
            return unpack(">f", bytes.fromhex(name[2:]))[0]
        return held[name] if name in held else int(name, 0)

    at = 0
    while lines[at] != "ret":
        line, at = lines[at], at + 1
        if line.startswith(".reg") or line.endswith(":"):
            continue
        if guard := re.match(r"@(!?)(%\w+) ", line):
            if held[guard[2]] is bool(guard[1]):
                continue
            line = line[guard.end() :]
        name, rest = line.split(None, 1)
        if name == "bra":
            at = labels[rest]
        elif name.startswith("wmma.mma"):
            into, left, right, plus = (
                [one.strip() for one in part.split(",")] for part in re.findall(r"{(.*?)}", rest)
            )
            # Two halves a register, 1.0 is 0x3c00: all elements are ones, and a product sums 16.
            assert {held[one] for one in (*left, *right)} == {0x3C003C00} and {len(left), len(right), len(into)} == {8}
            held |= {one: held[other] + 16.0 for one, other in zip(into, plus, strict=True)}
        else:
            into, *others = (one.strip() for one in rest.split(","))
            into = into.strip("[]")
            if name.startswith("st.global"):
                memory[held[into]] = held[others[0]]
            elif name.startswith("red.global.add"):
                memory[held[into]] += value(others[0])
            elif name.startswith("ld."):
                source = others[0].strip("[]")
                held[into] = given[source] if ".param" in name else memory[held[source]]
            else:
                (meaning,) = (does for prefix, does in _MEANINGS.items() if name.startswith(prefix))
                held[into] = meaning(*map(value, others))


_MEANINGS: Final[dict[str, Any]] = {
    "cvta.": int,
    "cvt.u64": int,
    "cvt.u32": lambda one: one & 0xFFFFFFFF,
    "mov": lambda one: one,
    "mad.lo": lambda one, two, three: one * two + three & 0xFFFFFFFF,
    "mul.lo": lambda one, two: one * two & 0xFFFFFFFF,
    "mul.wide": lambda one, two: one * two,
    "xor": lambda one, two: one ^ two,
    "shl": lambda one, two: one << two,
    "add": lambda one, two: one + two,
    "sub": lambda one, two: one - two,
    "setp.ne": lambda one, two: one != two,
    "setp.eq": lambda one, two: one == two,
    "setp.lt": lambda one, two: one < two,
}


@pytest.mark.deep
@pytest.mark.parametrize("capability", sorted({10 * a + b for a, b, *_ in (one.generation for one in NVIDIA.models)}))
def test_kernels__nvidias_own_assembler__takes_it_for_each_generation(capability: int, tmp_path: Path) -> None:
    # Of CUDA 12 for those that CUDA 13 knows no more.
    assembler = _assemblers() / "nvidia" / ("cuda_nvcc" if capability < 75 else "cu13") / "bin" / "ptxas"
    assembler.chmod(0o755)
    target = tmp_path / "kernels.cubin"
    done = subprocess.run(
        [assembler, "-v", f"-arch=sm_{capability}", "-o", target, TEXT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and target.stat().st_size, done.stderr
    assert done.stderr.count("0 bytes spill stores") == 3


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
