"""What is printed with --json has a type and an exported schema: every name, every event, every error."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from hearth.base import errors
from hearth.base.errors import HearthError
from hearth.chain.port import Log
from hearth.client.views import event_facts
from hearth.market.events import EVENTS, Event
from hearth.protocol.types import SENTINEL, Offer, Outcome, State, Unit, Verdict
from hearth.protocol.units import Asset
from hearth.protocol.words import pack_offer, pack_unit
from tools import schemas
from tools.vyper_files import ROOT
from worker.reports import EarningsReport
from worker.watch import Earnings

NAME = re.compile(r"hearth\.[a-z.]+/[0-9]+")
SOURCES = [path for part in ("hearth", "keeper", "worker") for path in sorted((ROOT / part).rglob("*.py"))]
TYPES = {Path(module.__file__ or "") for module in schemas.MODULES}
LOG = Log("0x" + "00" * 20, (), b"", 1, bytes(32), bytes([1]) * 32, 0)
LARGE = 1 << 160
RECORD = "hearth.deployment/1"
"""A file that only its own program reads, and no report."""
SMALL_FIELDS = {"at", "until", "due", "index", "node", "word"}
"""Numbers of an event that are no amounts: they never need a string."""


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in SOURCES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def _written() -> set[str]:
    """Return the schema names that the sources write, the reports' own modules left out."""
    return {
        node.value
        for path, tree in _trees()
        if path not in TYPES
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value)
    }


def test_names__of_the_sources__each_has_a_type_and_each_type_is_written() -> None:
    assert len(TYPES) == 4 and all(path in SOURCES for path in TYPES)
    assert _written() - {RECORD} == set(schemas.reports()) - {schemas.ERROR}
    assert len(_written()) >= 35


def test_names__exported_files__are_one_for_each_with_its_own_id() -> None:
    assert schemas.main(["--check"]) == 0
    files = {path.name: path.read_text() for path in schemas.SCHEMAS.glob("*.json")}
    assert set(files) == {schemas.file_name(name) for name in schemas.reports()}
    ids = set(re.findall(r'"\$id": "(urn:hearth:[^"]+)"', "".join(files.values())))
    assert len(ids) == len(files) and "urn:hearth:report:job:1" in ids and "urn:hearth:report:keeper.list:1" in ids
    assert all('"additionalProperties": false' in text for text in files.values())


def test_methods__public_ones_of_clients__return_no_bare_dict() -> None:
    places = ("hearth/client/", "hearth/local/market.py", "hearth/local/project.py")
    others = ("worker/manage.py", "worker/scaffold.py", "keeper/manage.py")
    bare = {
        f"{path.relative_to(ROOT)}:{node.name}"
        for path, tree in _trees()
        if str(path.relative_to(ROOT)).startswith((*places, *others))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.returns is not None
        and re.search(r"dict\[str, (Any|object)\]", ast.unparse(node.returns))
    }
    # The canonical spec is the document whose hash is on chain: what it holds is the protocol's, and no report.
    assert bare == {"hearth/client/job/results.py:spec", "hearth/client/job/job.py:spec"}


# ---- events and errors ----


def _samples(cls: type[Event]) -> Iterator[Event]:
    """Yield an event of a class with small numbers, and one with such that JSON's readers cannot hold."""
    word = pack_unit(Unit(state=State.SETTLED, outcome=Outcome.OK, attempts=1))
    for number in (7, LARGE):
        values: dict[str, Any] = {}
        for name, hint in get_type_hints(cls).items():
            if name == "log":
                values[name] = LOG
            elif name == "word":
                values[name] = word
            elif name == "verdict":
                values[name] = int(Verdict.REJECT if number == LARGE else Verdict.CONFIRM)
            elif name == "offer":
                values[name] = pack_offer(Offer(slots=2, ask=min(number, (1 << 80) - 1)))
            elif name == "terms":
                values[name] = ()
            elif hint is str:
                values[name] = "0x" + "22" * 20
            elif hint == tuple[int, ...]:
                values[name] = (number, 0)
            elif hint == tuple[bytes, ...]:
                values[name] = (bytes(32),)
            elif getattr(hint, "__supertype__", hint) is bytes:
                values[name] = bytes([9]) * 32
            else:
                assert getattr(hint, "__supertype__", hint) is int, f"{cls.__name__}.{name}: {hint}"
                # Of a change's operations one whose word is any number.
                values[name] = 2 if name == "op" else 7 if name in SMALL_FIELDS else number
        yield cls(**values)


@pytest.mark.parametrize("name", EVENTS)
def test_event__of_every_class__is_of_its_type(name: str) -> None:
    for event in _samples(EVENTS[name]):
        facts = event_facts(event, Asset("ETH", 18))
        assert facts["event"] == name and facts["text"]
        schemas.validate(facts)
        if hasattr(event, "index"):
            rest = event_facts(dataclasses.replace(event, index=SENTINEL), Asset("ETH", 18))
            assert rest["unit"] == "all"
            schemas.validate(rest)


@pytest.mark.parametrize(
    "cls", [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, HearthError)]
)
def test_error__of_every_class__is_of_its_type(cls: type[HearthError]) -> None:
    schemas.validate(cls("no", hint="hearth doctor", short_by="5", workers={"fits": 0}).as_dict())


def test_earnings__every_line_of_the_books__is_in_the_report() -> None:
    assert {field.name for field in dataclasses.fields(Earnings)} <= get_type_hints(EarningsReport).keys()


# ---- what is no report ----

GOOD = {"schema": "hearth.init/1", "template": "wasm", "written": ["a"], "kept": [], "dry_run": False}
DEVNET = {"schema": "hearth.devnet/1", "running": False, "stopped": True, "wiped": False}


def test_validate__reports_of_their_types__pass() -> None:
    for report in (GOOD, DEVNET, HearthError("no").as_dict()):
        schemas.validate(report)


@pytest.mark.parametrize(
    "report",
    [
        {**GOOD, "more": 1},
        {**GOOD, "dry_run": 0},
        {**GOOD, "written": [1]},
        {**GOOD, "written": ("a",)},
        {key: value for key, value in GOOD.items() if key != "kept"},
        {**DEVNET, "running": True},
        {**DEVNET, "url": "http://127.0.0.1:1"},
        {"error": {"code": "X"}},
        {**HearthError("no").as_dict(), "job": "0x01"},
        {"schema": "hearth.init/2", "written": [], "kept": [], "dry_run": False},
        {key: value for key, value in GOOD.items() if key != "schema"},
        {},
        [],
        None,
    ],
)
def test_validate__key_type_or_name_that_is_wrong__refused(report: Any) -> None:
    with pytest.raises(ValueError):
        schemas.validate(report)
