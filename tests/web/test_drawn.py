"""What is drawn at random is the same in the library and in the page: jobs, texts of YAML, and the rows of vectors.

The files of tests/data/web hold few rows of what chance makes; here are more of them, from other seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.node import WEB, require_web
from tests.web.vectors import _chance, names, spec, written, yaml

# Random rows of the first seed are in tests/data/web, which `make test` reads.
pytestmark = pytest.mark.deep

COUNT = 500
VECTORS = Path(__file__).parent / "vectors"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "spec.json").write_text(json.dumps(spec.drawn("jobs at random", COUNT)), encoding="utf-8")
    return folder


def run(vectors: Path, tests: Sequence[str] = ("spec",), rows: str = "^a job file") -> tuple[int, int, str]:
    """Return how many of the drawn rows passed in the page's code, how many failed, and what was printed."""
    report = vectors / "told.by.vitest"
    command = [str(require_web()), "node_modules/vitest/vitest.mjs", "run", *(f"test/{name}.test.ts" for name in tests)]
    done = subprocess.run(
        [*command, "--reporter=json", f"--outputFile={report}", f"--testNamePattern={rows}"],
        cwd=WEB,
        env={**os.environ, "HEARTH_VECTORS": str(vectors)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert report.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    rows_of = [one for file in found["testResults"] for one in file["assertionResults"]]
    failed = ["\n".join([one["fullName"], *one["failureMessages"]]) for one in rows_of if one["status"] == "failed"]
    unread = [file["message"] for file in found["testResults"] if file["status"] == "failed" and not failed]
    passed = sum(one["status"] == "passed" for one in rows_of)
    return passed, len([*failed, *unread]), "\n".join([*failed, *unread])[:4000]


def test_jobs__drawn_at_random__are_the_same_in_both_implementations(drawn: Path) -> None:
    passed, failed, said = run(drawn)

    assert (passed, failed) == (COUNT, 0), said


def test_jobs__one_word_altered__are_told_apart(drawn: Path, tmp_path: Path) -> None:
    given = json.loads((drawn / "spec.json").read_text(encoding="utf-8"))
    planned = next(one for one in given["cases"] if isinstance(one.get("terms"), list))
    planned["terms"][0] = hex(int(planned["terms"][0], 16) ^ 1)
    (tmp_path / "spec.json").write_text(json.dumps(given), encoding="utf-8")

    passed, failed, _ = run(tmp_path)

    assert (passed, failed) == (COUNT - 1, 1)


def test_texts__of_yaml_at_random__are_never_read_differently(tmp_path: Path) -> None:
    (tmp_path / "yaml.json").write_text(json.dumps(yaml.drawn("texts at random", COUNT)), encoding="utf-8")

    assert run(tmp_path, ["yaml"], "is never read differently")[:2] == (1, 0)


def test_texts__of_which_one_is_read_otherwise__are_told_apart(tmp_path: Path) -> None:
    given = yaml.drawn("texts at random", COUNT)
    next(one for one in given["random"] if one["text"] == "a: b\n" or "value" in one)["value"] = {"map": []}
    (tmp_path / "yaml.json").write_text(json.dumps(given), encoding="utf-8")

    assert run(tmp_path, ["yaml"], "is never read differently")[:2] == (0, 1)


def test_vectors__more_rows_from_other_seeds__are_the_same_in_both(tmp_path: Path) -> None:
    with _chance.anew("another", 4):
        for name in names():
            (tmp_path / f"{name}.json").write_text(written(name), encoding="utf-8")
    drawn = [name for name in names() if "_chance." in Path(VECTORS, f"{name}.py").read_text(encoding="utf-8")]
    tests = [
        path.name.removesuffix(".test.ts")
        for path in sorted((WEB / "test").glob("*.test.ts"))
        if any(f'("{name}")' in path.read_text(encoding="utf-8") for name in drawn)
    ]

    passed, failed, said = run(tmp_path, tests, ".")

    assert failed == 0, said
    assert passed > 1_000


def test_vectors__of_money__one_amount_altered__are_told_apart(tmp_path: Path) -> None:
    with _chance.anew("another", 2):
        given = json.loads(written("money"))
    given["cases"][-1]["out"][1] = "1" + str(given["cases"][-1]["out"][1])
    (tmp_path / "money.json").write_text(json.dumps(given), encoding="utf-8")

    assert run(tmp_path, ["money"], ".")[1] > 0
