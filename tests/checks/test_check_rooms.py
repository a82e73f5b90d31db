"""The rule of arrows holds here, and each way to break it is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.check_rooms import ROOT, TIERS, WINGS, main, read, refused


def plan(tmp_path: Path, **files: str) -> list[str]:
    """Return what is refused in a project of these files ("hearth/chain/a" -> text)."""
    for name, text in files.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return refused(read(tmp_path, ("hearth", "keeper", "worker")))


GOOD = {
    "hearth/__init__": "from hearth.client import Client\n",
    "hearth/base/errors": "",
    "hearth/client/__init__": "from hearth.base.errors import HearthError\n",
    "worker/commands": "from hearth.cli.root import Group\nfrom hearth import Client\n",
    "hearth/cli/root": "import click\n",
}


def test_rule__this_project__is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(read(ROOT)) == []
    assert main([]) == 0
    assert re.search(r"[1-9]\d\d files, [1-9]\d+ arrows, .* 0 refused", capsys.readouterr().out)


def test_rule__arrows_down_and_to_the_face__pass(tmp_path: Path) -> None:
    assert plan(tmp_path, **GOOD) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("hearth/base/files", "from hearth.client import Client\n", "hearth.base may not know hearth.client"),
        ("hearth/chain/a", "import hearth.storage.b\n", "hearth.chain may not know hearth.storage"),
        ("hearth/client/b", "def late():\n    from worker import commands\n", "hearth.client may not know worker"),
        (
            "hearth/market/c",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hearth.jobfile.d import X\n",
            "hearth.market may not know hearth.jobfile",
        ),
        ("keeper/decide", "from worker.commands import x\n", "keeper may not know worker"),
        ("worker/decide", "from hearth.cli.root import Group\n", "join the command line"),
        ("hearth/attic/e", "", "hearth.attic is no room of the plan"),
        ("hearth/client/job/h", "from hearth.client.audit.i import X\n", "job may not know audit"),
        ("hearth/client/session", "from hearth.client.job import j\n", "session may not know job"),
        ("hearth/client/audit/k", "from hearth.client.nodes import l\n", "audit may not know nodes"),
        ("hearth/base/f", "from hearth.base import g\n", "circle: hearth.base.f -> hearth.base.g"),
    ],
)
def test_rule__each_breach__is_named(tmp_path: Path, name: str, text: str, told: str) -> None:
    others = {
        "hearth/storage/b": "",
        "hearth/jobfile/d": "",
        **{f"hearth/client/{wing}": "" for wing in ("audit/i", "job/j", "nodes/l")},
        "hearth/base/g": "from hearth.base import f\n" if name == "hearth/base/f" else "",
    }
    problems = plan(tmp_path, **GOOD, **others, **{name: text})
    assert len(problems) == 1 and told in problems[0], problems


def test_architecture__the_page__shows_the_tiers_of_the_rule() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- tiers -->\n```text\n(.*?)```", page, re.S)
    assert block is not None
    assert _tiers(block[1]) == TIERS
    wings = re.search(r"<!-- wings -->\n```text\n(.*?)```", page, re.S)
    assert wings is not None
    assert _tiers(wings[1])[:-1] == tuple(tier for tier in WINGS["hearth.client"])
    parts = {path.parent.name for path in (ROOT / "hearth/client").glob("*/__init__.py")}
    parts |= {path.stem for path in (ROOT / "hearth/client").glob("*.py")}
    assert parts == {part for tier in _tiers(wings[1]) for part in tier}


def _tiers(block: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(part.strip() for part in line.split("|")[0].split(",")) for line in block.splitlines())
