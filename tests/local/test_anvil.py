"""Where anvil is looked for: npm links its command, or not, and unpacks the program beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hearth.local import devnet


def test_find_anvil__npm_that_links_no_command_of_a_dependency__the_program_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEARTH_ANVIL", raising=False)
    monkeypatch.setattr(devnet, "__file__", str(tmp_path / "clone" / "hearth" / "local" / "devnet.py"))
    program = tmp_path / "home" / "node_modules" / devnet._BINARY
    program.parent.mkdir(parents=True)
    program.touch()
    assert devnet.find_anvil(tmp_path / "home") == program
