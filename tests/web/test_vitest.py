"""The page's own tests, run by its own runner; which of them failed is in the message."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.kit.node import WEB, require_web


def test_vitest__all_tests_of_the_page__pass(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [str(require_web()), "node_modules/vitest/vitest.mjs", "run", "--reporter=json", f"--outputFile={report}"]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=600)

    assert report.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    failed = [
        f"{one['fullName']}: {' '.join(one['failureMessages'])[:2000]}"
        for file in found["testResults"]
        for one in file["assertionResults"]
        if one["status"] == "failed"
    ]
    unread = [file["message"][:2000] for file in found["testResults"] if file["status"] == "failed"]
    assert (failed, done.returncode) == ([], 0), "\n".join([*failed, *unread, done.stderr[-2000:]])
    assert found["numPassedTests"] == found["numTotalTests"] > 0
    assert len(found["testResults"]) == len(list((WEB / "test").glob("*.test.ts")))
