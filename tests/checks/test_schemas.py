"""The exported schemas are made from the types, and each way to differ is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.schemas import main, reports


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with every schema, freshly written."""
    assert main(["--schemas", str(tmp_path / "schemas")]) == 0
    return tmp_path / "schemas"


def test_write__any_folder__holds_one_valid_document_for_each_report(folder: Path) -> None:
    documents = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert len(documents) == len(reports())
    assert all(one["$schema"] == "https://json-schema.org/draft/2020-12/schema" for one in documents)
    assert json.loads((folder / "jobs.json").read_text())["properties"]["schema"]["const"] == "hearth.jobs/1"
    devnet = json.loads((folder / "devnet.json").read_text())
    assert {one["$ref"] for one in devnet["anyOf"]} == {"#/$defs/DevnetUp", "#/$defs/DevnetDown"}


def test_check__equal_changed_missing_and_stale_files__are_told_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--check", "--schemas", str(folder)]
    assert main(command) == 0
    (folder / "job.json").unlink()
    (folder / "net.json").write_text("{}")
    (folder / "old.json").write_text("{}")
    capsys.readouterr()
    assert main(command) == 1
    told = capsys.readouterr().err
    assert told.splitlines() == [
        "job.json is missing; run: make schemas",
        "net.json differs from its type; run: make schemas",
        "old.json has no type; run: make schemas",
    ]
    assert main(["--schemas", str(folder)]) == 0
    assert main(command) == 0 and not (folder / "old.json").exists()
