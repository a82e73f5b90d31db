"""Settings read again: whole or not at all, once the file stands still, with every key that needs a restart named."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import keeper.settings
import worker.settings
from hearth.base.errors import ConfigError
from hearth.config import sections
from hearth.config.sections import Section
from hearth.daemon import reload
from hearth.daemon.reload import STILL_SECONDS, Reloader, is_live, keys_of, merged


class Inner(Section):
    """A section."""

    live: int = 0
    fixed: int = 0


class Outer(Section):
    """Settings."""

    name: str
    rpc: tuple[str, ...] = ()
    some: Inner = Inner()
    all: Inner = Inner()


LIVE = frozenset({"rpc", "some.live", "all.*"})


class Rig:
    """A program with settings in a file, and a clock of the test's."""

    def __init__(self, folder: Path) -> None:
        self.home, self.file, self.now = folder, folder / "x.toml", 100.0
        self.file.write_text('name = "a"\n')
        self.in_force = self.load(self.file)
        self.reloader = Reloader(self.file, self.load, LIVE, lambda: self.now)
        self.fails = False

    def load(self, path: Path) -> Outer:
        return sections.check(Outer, sections.read_toml(path, start="look", then="look"), path, then="look")

    def adopt(self, new: Outer) -> None:
        if self.fails:
            raise ConfigError("the new rpc is of another chain", hint="hearth doctor")
        self.in_force = new

    def turn(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.reloader.turn(self.home, self.in_force, self.adopt)

    def reload(self) -> dict[str, Any]:
        signal.raise_signal(signal.SIGHUP)
        self.turn()
        self.turn(STILL_SECONDS)
        found: dict[str, Any] = json.loads((self.home / "reload.json").read_text())
        return found


@pytest.fixture
def rig(tmp_path: Path) -> Any:
    made = Rig(tmp_path)
    before = signal.getsignal(signal.SIGHUP)
    made.reloader.listen(lambda: None)
    yield made
    signal.signal(signal.SIGHUP, before)


def test_reload__keys_of_both_kinds__takes_up_what_is_live_and_names_the_rest(rig: Rig) -> None:
    rig.file.write_text('name = "b"\nrpc = ["http://x"]\n[some]\nlive = 1\nfixed = 1\n[all]\nlive = 2\nfixed = 2\n')
    told = rig.reload()
    assert (told["number"], told["error"]) == (1, None)
    assert told["applied"] == ["all.fixed", "all.live", "rpc", "some.live"] and told["restart"] == [
        "name",
        "some.fixed",
    ]
    assert (rig.in_force.name, rig.in_force.rpc) == ("a", ("http://x",))
    assert rig.in_force.some == Inner(live=1) and rig.in_force.all == Inner(live=2, fixed=2)
    assert rig.reload() == {"number": 2, "applied": [], "restart": ["name", "some.fixed"], "error": None}


@pytest.mark.parametrize(
    "text", ["name = ", 'name = "b"\nrcp = ["http://x"]', "rpc = []", "\xff", 'name = "b"\nrpc = 7']
)
def test_reload__file_that_is_refused__changes_nothing(rig: Rig, text: str) -> None:
    before = rig.in_force
    rig.file.write_text(text, encoding="latin-1")
    told = rig.reload()
    assert rig.in_force is before and (told["applied"], told["restart"]) == ([], [])
    assert told["error"]["code"] == "BAD_CONFIG" and str(rig.file) in told["error"]["message"] and rig.reloader.refused
    rig.file.write_text('name = "a"\n')
    assert rig.reload()["error"] is None and not rig.reloader.refused


def test_reload__file_that_is_gone_or_no_file__is_refused(rig: Rig) -> None:
    rig.file.unlink()
    assert rig.reload()["error"]["code"] == "NO_CONFIG"
    rig.file.mkdir()
    assert rig.reload()["error"]["code"] == "BAD_CONFIG"


def test_reload__program_cannot_take_it_up__is_refused_whole(rig: Rig) -> None:
    rig.fails = True
    rig.file.write_text('name = "a"\nrpc = ["http://x"]\n')
    told = rig.reload()
    assert told["error"]["message"] == "the new rpc is of another chain" and rig.in_force.rpc == ()


def test_reload__file_that_is_being_written__is_read_when_it_stands_still(rig: Rig) -> None:
    """Its first half is a settings file too, and would be taken for all of it."""
    whole = 'name = "a"\nrpc = ["http://x"]\n[some]\nlive = 7\n'
    rig.file.write_text(whole.partition("[some]")[0])
    rig.load(rig.file)
    signal.raise_signal(signal.SIGHUP)
    rig.turn()
    rig.turn(STILL_SECONDS / 2)
    rig.file.write_text(whole)
    rig.turn(STILL_SECONDS / 2 + 0.01)
    assert rig.in_force.rpc == () and rig.reloader.pending
    rig.turn(STILL_SECONDS)
    assert rig.in_force.some.live == 7 and not rig.reloader.pending


def test_turn__nobody_asked__reads_nothing(rig: Rig) -> None:
    rig.file.write_text("name = ")
    rig.turn(10)
    rig.turn(10)
    assert not (rig.home / "reload.json").exists() and not rig.reloader.refused


@pytest.mark.parametrize("program", [worker.settings, keeper.settings])
def test_live__of_a_program__names_keys_that_there_are(program: Any) -> None:
    keys = set()
    for name, field in program.Settings.model_fields.items():
        kinds = [kind for kind in getattr(field.annotation, "__args__", (field.annotation,)) if kind is not type(None)]
        section = kinds[0] if isinstance(kinds[0], type) and issubclass(kinds[0], Section) else None
        keys |= {name} if section is None else {f"{name}.{key}" for key in section.model_fields}
    for one in program.LIVE:
        assert one in keys or any(one == f"{key.partition('.')[0]}.*" for key in keys), one
    spec = (
        (Path(__file__).parents[2] / "docs" / "worker.md")
        .read_text()
        .partition("\n## Reload\n")[2]
        .partition("\n## ")[0]
    )
    row = next(line for line in spec.splitlines() if line.startswith(f"| {program.__name__.partition('.')[0]} |"))
    _, _, live, restart, _ = row.split("|")
    assert {part.strip(" `") for part in live.split(",")} == program.LIVE
    named = {part.strip(" `") for part in restart.split(",")}
    left = {key for key in keys if not is_live(key, program.LIVE)}
    assert {key if key in named else f"{key.partition('.')[0]}.*" for key in left} == named


def test_merged__section_that_may_be_left_out__stays_as_it_was() -> None:
    class May(Section):
        """Settings with a section that may be absent."""

        account: Inner | None = None
        rpc: int = 0

    found = merged(May(account=Inner(fixed=1)), May(rpc=2), frozenset({"rpc"}))
    assert found == May(account=Inner(fixed=1), rpc=2) and "account.fixed" in keys_of(found)


@pytest.mark.parametrize(("component", "code"), [("worker", "WORKER_SILENT"), ("keeper", "KEEPER_SILENT")])
def test_ask__program_does_not_answer__is_named_as_what_it_is(
    component: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(reload, "holder", lambda lock: os.getpid())
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append((pid, number)))
    with pytest.raises(ConfigError) as caught:
        reload.ask(tmp_path / "lock", tmp_path, component)
    assert told == [(os.getpid(), signal.SIGHUP)]
    assert (caught.value.code, caught.value.component) == (code, component)
    assert caught.value.hint == f"hearth {component} status"
