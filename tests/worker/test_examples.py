"""The examples as a user would get them: built from their sources, run on the real engine, right in what they say."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import runpy
import struct
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from hearth.jobfile import FUEL_PER_SECOND
from hearth.jobfile.load import load_spec
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.wasm import WasmRuntime

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MIB = 1 << 20
UNITS = 24


def run(root: Path, module: str, data: str | None = None, **changes: object) -> RunResult:
    for name in ("in", "job", "out"):
        (root / name).mkdir(parents=True)
    if data:
        source = EXAMPLES / data
        (root / "in" / source.name).write_bytes(source.read_bytes())
    values: dict[str, object] = {
        "unit": root.name,
        "command": (),
        "job_dir": root / "job",
        "in_dir": root / "in",
        "out_dir": root / "out",
        "limits": SandboxLimits(wall_seconds=60, memory_bytes=64 * MIB, out_bytes=2 * MIB, fuel=60 * 10**9),
        "module": EXAMPLES / module,
        **changes,
    }
    return WasmRuntime(root).run(RunRequest(**values), threading.Event())  # type: ignore[arg-type]


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_build__check__modules_are_what_their_sources_compile_to() -> None:
    subprocess.run([sys.executable, str(EXAMPLES / "build.py"), "--check"], check=True)


def test_build__check_with_an_altered_module__names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = load("build.py")
    (tmp_path / "failing").mkdir()
    (tmp_path / "failing" / "failing.c").write_bytes((EXAMPLES / "failing" / "failing.c").read_bytes())
    module = bytearray((EXAMPLES / "failing" / "failing.wasm").read_bytes())
    module[-1] ^= 1
    (tmp_path / "failing" / "failing.wasm").write_bytes(module)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "PROGRAMS", ("failing/failing",))
    monkeypatch.setattr(sys, "argv", ["build.py", "--check"])
    assert build.main() == 1


@pytest.mark.parametrize(
    ("path", "digest"),
    [
        ("digits/digits.csv", "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"),
        ("wordcount-array/text.txt", "ca524e8f532244e5b99617cd69d224e732809d2e6970492f711d1d88ebd65a01"),
    ],
)
def test_data__files__are_those_that_source_names(path: str, digest: str) -> None:
    assert hashlib.sha256((EXAMPLES / path).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", ["digits", "wordcount-array", "newcomers", "failing", "numpy-train"])
def test_job_yaml__each_example__is_a_spec_whose_files_are_there(name: str) -> None:
    variables = {"IMAGE": f"registry.example/numpy@sha256:{'ab' * 32}"} if name == "numpy-train" else None
    file = "wordcount-array/newcomers.yaml" if name == "newcomers" else f"{name}/job.yaml"
    loaded = load_spec(EXAMPLES / file, variables)
    assert loaded.spec.name == name
    name = file.partition("/")[0]
    named = [loaded.spec.module, loaded.spec.workdir, *(item.src for item in loaded.spec.inputs)]
    assert all((EXAMPLES / name / path).exists() for path in named if path)


def test_digits__trained_from_scratch__reads_nine_of_ten_unseen_digits_and_is_reproducible(tmp_path: Path) -> None:
    rules = (OutputRule("/out/weights.bin", True, 64 * 1024), OutputRule("/out/accuracy.json", True, 4096))
    runs = [
        run(tmp_path / name, "digits/digits.wasm", "digits/digits.csv", command=("--epochs", "20"), outputs=rules)
        for name in ("first", "second")
    ]
    assert [result.status for result in runs] == [RunStatus.OK, RunStatus.OK]
    report = json.loads((tmp_path / "first/out/accuracy.json").read_text())
    assert report["held_out"] == 360 and report["training_images"] == 1437
    assert report["correct"] / report["held_out"] >= 0.9
    assert report["accuracy"] == f"{report['correct'] / report['held_out']:.4f}"
    weights = (tmp_path / "first/out/weights.bin").read_bytes()
    assert len(weights) == 4 * (32 * 64 + 32 + 10 * 32 + 10)
    assert weights == (tmp_path / "second/out/weights.bin").read_bytes()
    assert runs[0].fuel_used == runs[1].fuel_used
    assert runs[0].fuel_used < 6 * FUEL_PER_SECOND  # a tenth of what the spec allows
    assert runs[0].stdout == runs[1].stdout and b"epoch 20 of 20" in runs[0].stdout
    assert recount(weights) == report["correct"]


def recount(blob: bytes) -> int:
    """Measure the weights file in Python, independently of the program that wrote it."""
    values = struct.unpack(f"<{len(blob) // 4}f", blob)
    w1, b1 = values[:2048], values[2048:2080]
    w2, b2 = values[2080:2400], values[2400:2410]
    right = 0
    rows = [[int(x) for x in line.split(",")] for line in (EXAMPLES / "digits/digits.csv").read_text().splitlines()]
    for row in rows[::5]:
        hidden = [max(0.0, b1[h] + sum(w1[64 * h + i] * row[i] / 16 for i in range(64))) for h in range(32)]
        scores = [b2[d] + sum(w2[32 * d + h] * hidden[h] for h in range(32)) for d in range(10)]
        right += scores.index(max(scores)) == row[64]
    return right


def test_digits__broken_row__says_where_and_exits_2(tmp_path: Path) -> None:
    root = tmp_path / "unit"
    result = run(root, "digits/digits.wasm")
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 2)
    assert b"/in/digits.csv" in result.stderr
    (root / "in" / "digits.csv").write_text("1,2,x\n")
    request_again = run(tmp_path / "again", "digits/digits.wasm", in_dir=root / "in")
    assert b"line 1, column 3" in request_again.stderr


def test_wordcount__units_reduced__equal_to_a_count_of_the_whole_text(tmp_path: Path) -> None:
    """Control inside: 24 parts by the program, one count by Python over the whole text; every word must agree."""
    for unit in range(UNITS):
        result = run(
            tmp_path / str(unit),
            "wordcount-array/wordcount.wasm",
            "wordcount-array/text.txt",
            index=unit,
            units=UNITS,
            outputs=(OutputRule("/out/counts.tsv", True, MIB),),
            limits=SandboxLimits(wall_seconds=20, memory_bytes=32 * MIB, out_bytes=MIB, fuel=20 * 10**9),
        )
        assert result.status is RunStatus.OK, result
    total, parts = load("wordcount-array/reduce.py").reduce(tmp_path)
    text = (EXAMPLES / "wordcount-array/text.txt").read_text(encoding="utf-8")
    assert parts == UNITS
    assert total == Counter(re.findall(r"[a-z]+", re.sub(r"[^\x00-\x7f]", " ", text).lower()))
    assert total.total() > 50_000 and len(text) > 200_000


def test_reduce__prints__totals_and_top_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for unit, lines in enumerate(["a\t2\nb\t1\n", "b\t3\n"]):
        (tmp_path / str(unit)).mkdir()
        (tmp_path / str(unit) / "counts.tsv").write_text(lines)
    monkeypatch.setattr(sys, "argv", ["reduce.py", str(tmp_path), "--top", "1"])
    runpy.run_path(str(EXAMPLES / "wordcount-array/reduce.py"), run_name="__main__")
    assert capsys.readouterr().out.split("\n")[:2] == ["       4 b", "       6 words, 2 different, from 2 parts"]


def test_failing__run__exit_3_with_its_last_words(tmp_path: Path) -> None:
    result = run(tmp_path / "unit", "failing/failing.wasm", outputs=(OutputRule("/out", required=False),))
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 3)
    assert result.stderr == b"failing: the input has no rows to train on\n"
