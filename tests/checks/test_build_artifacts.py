"""The committed artifacts are the sources compiled, and a stale or oversized one is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import build_artifacts
from tools.build_artifacts import main
from tools.reasons import MODULE as REASONS
from tools.vyper_files import ROOT

HEAD = "# pragma version 0.4.3\n# pragma evm-version cancun\n# pragma nonreentrancy on\n"
MODULE = "# pragma version 0.4.3\n\nSTEP: constant(uint256) = {step}\n"
CONTRACT = HEAD + "import counting\n\n\n@external\n@view\ndef step() -> uint256:\n    return counting.STEP\n"


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Return the arguments that point the tool at a contract, its module, a mock and an empty artifacts folder."""
    contracts = tmp_path / "contracts"
    (contracts / "mocks").mkdir(parents=True)
    (contracts / "Thing.vy").write_text(CONTRACT)
    (contracts / "counting.vy").write_text(MODULE.format(step=1))
    (contracts / "mocks" / "Token.vy").write_text(HEAD)
    return ["--contracts", str(contracts), "--artifacts", str(tmp_path / "artifacts")]


def _artifact(tmp_path: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((tmp_path / "artifacts" / "Thing.json").read_text())
    return loaded


def test_main__contract__writes_what_a_client_needs(tmp_path: Path, folders: list[str]) -> None:
    assert main(folders) == 0
    artifact = _artifact(tmp_path)
    assert sorted(path.name for path in (tmp_path / "artifacts").iterdir()) == ["Thing.json"]
    assert {key: artifact[key] for key in ("name", "compiler", "optimise", "evm")} == {
        "name": "Thing",
        "compiler": "0.4.3",
        "optimise": "gas",
        "evm": "cancun",
    }
    assert set(artifact["sources"]) == {"Thing.vy", "counting.vy"}  # type: ignore[call-overload]
    assert [entry["name"] for entry in artifact["abi"]] == ["step"]  # type: ignore[attr-defined]
    assert str(artifact["bytecode"]).startswith("0x")


def test_main__twice__writes_the_same_bytes(tmp_path: Path, folders: list[str]) -> None:
    main(folders)
    first = (tmp_path / "artifacts" / "Thing.json").read_bytes()
    main(folders)
    assert (tmp_path / "artifacts" / "Thing.json").read_bytes() == first
    assert main(["--check", *folders]) == 0


def test_main__contract_that_refuses_by_number__has_the_error_in_its_abi(tmp_path: Path, folders: list[str]) -> None:
    (tmp_path / "contracts" / REASONS.name).write_bytes((ROOT / REASONS).read_bytes())
    path = tmp_path / "contracts" / "Thing.vy"
    path.write_text(CONTRACT.replace("import counting\n", "import counting\nimport reasons\n"))
    assert main(folders) == 0
    entries = [entry for entry in _artifact(tmp_path)["abi"] if entry["type"] == "error"]  # type: ignore[attr-defined]
    assert entries == [{"type": "error", "name": "Refused", "inputs": [{"name": "reason", "type": "uint256"}]}]


def test_check__module_changed__is_stale(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(folders)
    (tmp_path / "contracts" / "counting.vy").write_text(MODULE.format(step=2))
    assert main(["--check", *folders]) == 1
    assert "Thing.json differs" in capsys.readouterr().err


def test_check__comment_changed__is_stale(tmp_path: Path, folders: list[str]) -> None:
    """The sources' hashes are part of the artifact, so that a reader can trust its docstrings too."""
    main(folders)
    (tmp_path / "contracts" / "Thing.vy").write_text(CONTRACT + "# a note\n")
    assert main(["--check", *folders]) == 1


def test_check__missing_and_surplus__are_named(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "Gone.json").write_text("{}")
    assert main(["--check", *folders]) == 1
    printed = capsys.readouterr().err
    assert "Thing.json is missing" in printed
    assert "Gone.json has no contract" in printed


def test_check__contract_over_its_size__exits_1(
    folders: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(folders)
    monkeypatch.setattr(build_artifacts, "SIZE_LIMIT", 20)
    assert main(["--check", *folders]) == 1
    assert "limit 20" in capsys.readouterr().err


def test_build__no_evm_version__is_refused(tmp_path: Path, folders: list[str]) -> None:
    path = tmp_path / "contracts" / "Thing.vy"
    path.write_text(CONTRACT.replace("# pragma evm-version cancun\n", ""))
    with pytest.raises(ValueError, match="no evm-version"):
        main(folders)
