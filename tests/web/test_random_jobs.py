"""Jobs drawn at random become the same words, or the same refusal, in the library and in the page."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.node import WEB, require_web
from tests.web.vectors import spec

COUNT = 500


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "spec.json").write_text(json.dumps(spec.drawn("jobs at random", COUNT)), encoding="utf-8")
    return folder


def run(vectors: Path) -> tuple[int, int, str]:
    """Return how many of the drawn jobs passed in the page's code, how many failed, and what was printed."""
    report = vectors / "report.json"
    command = [str(require_web()), "node_modules/vitest/vitest.mjs", "run", "test/spec.test.ts", "--reporter=json"]
    done = subprocess.run(
        [*command, f"--outputFile={report}", "--testNamePattern=^a job file"],
        cwd=WEB,
        env={**os.environ, "HEARTH_VECTORS": str(vectors)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert report.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    rows = [one for file in found["testResults"] for one in file["assertionResults"]]
    failed = ["\n".join([one["fullName"], *one["failureMessages"]]) for one in rows if one["status"] == "failed"]
    passed = sum(one["status"] == "passed" for one in rows)
    return passed, len(failed), "\n".join(failed)[:4000]


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
