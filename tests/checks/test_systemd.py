"""The units of docs/systemd: systemd reads every line of them, and finds them as closed as the pages say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.require import require

UNITS = sorted((Path(__file__).resolve().parents[2] / "docs" / "systemd").glob("*.service"))
THRESHOLD = 20
"""Tenths: 0 is closed, 100 open."""


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    require("systemd-analyze", program is not None, "no such command; on Debian: apt-get install systemd")
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, timeout=60, check=False, env={"SYSTEMD_COLORS": "0"}
    )


def verify(unit: Path, tmp_path: Path, text: str) -> str:
    """Return what systemd says of a unit whose program is one that is here."""
    file = tmp_path / unit.name
    assert text.count("ExecStart=/opt/hearth/bin/python ") == 1
    file.write_text(text.replace("/opt/hearth/bin/python", sys.executable))
    return analyze("verify", "--man=no", str(file)).stderr


def test_units__one_a_program() -> None:
    assert [unit.stem for unit in UNITS] == ["hearth-keeper", "hearth-worker"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit__verified__systemd_has_nothing_to_say(unit: Path, tmp_path: Path) -> None:
    assert verify(unit, tmp_path, unit.read_text()) == ""


def test_unit__misspelt__is_noticed(tmp_path: Path) -> None:
    text = UNITS[0].read_text().replace("NoNewPrivileges", "NoNewPrivilege")
    assert "NoNewPrivilege" in verify(UNITS[0], tmp_path, text)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit__security__is_at_most_what_the_pages_say(unit: Path) -> None:
    asked = ("security", "--offline=yes", "--no-pager", f"--threshold={THRESHOLD}", str(unit))
    told = analyze(*asked)
    assert told.returncode == 0, told.stdout[-500:]
    assert f"Overall exposure level for {unit.name}:" in told.stdout


def test_unit__without_its_protection__is_over_the_threshold(tmp_path: Path) -> None:
    file = tmp_path / UNITS[1].name
    file.write_text("\n".join(line for line in UNITS[1].read_text().splitlines() if not line.startswith("Protect")))
    assert analyze("security", "--offline=yes", "--no-pager", f"--threshold={THRESHOLD}", str(file)).returncode != 0


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit__key_and_password__are_handed_over_and_never_open_to_others(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    assert sum(line.startswith("LoadCredential=") for line in lines) == 2
    assert {"NoNewPrivileges=yes", "CapabilityBoundingSet=", "StateDirectoryMode=0700", "UMask=0077"} <= set(lines)
    assert ("DynamicUser=yes" in lines) != ("User=hearth" in lines)
