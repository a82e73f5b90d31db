"""docs/ARCHITECTURE.md, "Where a change goes": every file that it names is there, and every name in it.

Two of its rows have lists beside them, which a new hold or a new failpoint must be in.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from tests.chaos import kills
from tests.kit.evm import ROOT
from worker.decide import BEATS_ON, Reason
from worker.gpu.port import Fault
from worker.holds import Holds
from worker.journal import Moment

PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
DEFINED = r"^\s*(?:async )?(?:def|class) {0}\b|^{0}\b.*="


def rows(page: str) -> list[tuple[str, str]]:
    """Return the rows of the table: a change, and the files that it takes."""
    section = page.split("## Where a change goes\n")[1]
    lines = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [(change.strip(), files.strip()) for change, files in lines[2:]]


def faults(files: str) -> Iterator[str]:
    """Yield what a row names that is not there."""
    folder, text = ROOT, ""
    for word in re.findall(r"`([^`]+)`", files):
        if word.startswith("--"):
            continue
        if " " in word:
            yield from _command_faults(word)
            continue
        path, _, name = word.partition(":")
        if re.fullmatch(r"\w+", path):
            path, name = "", path
        if path:
            places = [place / path for place in (folder, ROOT, ROOT / "hearth")]
            found = next((place for place in places if place.exists()), None)
            if found is None:
                yield f"{path} is not there"
                return
            folder = found if found.is_dir() else found.parent
            text = "" if found.is_dir() else found.read_text(encoding="utf-8")
        if name and not re.search(DEFINED.format(re.escape(name)), text, re.MULTILINE):
            yield f"{word}: nothing of that name"
    prose = re.sub(r"`[^`]+`", "", files)
    pages = {f"{word}.md" for word in re.findall(r"\b[A-Z]{3,}\b", prose)} | set(re.findall(r"\b[\w.-]+\.md\b", prose))
    yield from (f"docs/{name} is not there" for name in sorted(pages) if not (ROOT / "docs" / name).exists())


def _command_faults(command: str) -> Iterator[str]:
    """Yield what is wrong with a command: a module or a target of make that is not there."""
    words = command.split()
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        if not re.search(rf"^{re.escape(words[1])}:", makefile, re.MULTILINE):
            yield f"{command}: no such target"
    elif words[0] == "python" and "-m" in words:
        module = ROOT / words[words.index("-m") + 1].replace(".", "/")
        if not (module.with_suffix(".py").exists() or (module / "__main__.py").exists()):
            yield f"{command}: no such module"
    else:
        yield f"{command}: neither make nor a module"


@pytest.mark.parametrize(("change", "files"), rows(PAGE), ids=[change for change, _ in rows(PAGE)])
def test_where_a_change_goes__what_a_row_names__is_there(change: str, files: str) -> None:
    assert "`" in files and list(faults(files)) == []


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ("`worker/decide/configuration.py`", "worker/decide/configuration.py is not there"),
        ("`worker/decide/policy.py:Config`", "worker/decide/policy.py:Config: nothing of that name"),
        ("`worker/reason_texts.py:REASON_TEXTS`, and there `_WORDS`", "_WORDS: nothing of that name"),
        ("`worker/take.py`, `policy.py`", "policy.py is not there"),
        ("`worker/take.py`, ROOMS", "docs/ROOMS.md is not there"),
        ("`make artefacts`", "make artefacts: no such target"),
        ("`python -m tools.lane`", "python -m tools.lane: no such module"),
    ],
)
def test_faults__row_that_names_what_is_not_there__says_so(files: str, fault: str) -> None:
    assert list(faults(files)) == [fault]


SILENT_ON = {Reason.PAUSED, Reason.DRAINING, Reason.OUTSIDE_SCHEDULE, Reason.NOT_READY, Reason.OTHER_OWNER}
"""The holds in which an idle node does not beat: its owner wishes them, or its key has no coin for a beat."""
ELSEWHERE = {
    *("m7.replaced", "owner.taken", "owner.mined", "deploy.recorded", "deploy.checked", "deploy.written"),
    *("c1.copied", "c2.stored", "c3.offered"),
}
"""Failpoints that no campaign meets: where a transaction is replaced, of the owner's requests, of a deployment, of
checkpoints (tests/e2e/test_checkpoints.py)."""


def test_holds__each__says_whether_an_idle_node_beats() -> None:
    returned = {Reason[name] for name in re.findall(r"Reason\.(\w+)", inspect.getsource(Holds._why))}
    returned |= {Reason(fault) for fault in Fault}  # where no slot has its GPUs
    assert returned == BEATS_ON | SILENT_ON and not BEATS_ON & SILENT_ON


def test_failpoints__each__is_met_by_the_kills_of_a_campaign_or_named_elsewhere() -> None:
    sources = [path for folder in ("hearth", "worker", "keeper") for path in (ROOT / folder).rglob("*.py")]
    written = {name for path in sources for name in re.findall(r'\bfp\("([^"]+)"', path.read_text(encoding="utf-8"))}
    points = (*kills.WORKER_LIFE, *kills.WORKER_FINAL, *kills.KEEPER_POINTS, *kills.SUBMITTER_POINTS)
    assert written | set(Moment) == {point.partition("@")[0] for point in points} | ELSEWHERE
