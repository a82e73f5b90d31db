"""The table of reasons: what follows from it is written whole, and contracts, library and protocol.md agree on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from eth_utils import keccak

from hearth.chain.port import revert_reason
from hearth.market.abi import signature_of
from hearth.market.contracts import CONTRACTS
from hearth.protocol.reasons import GATE, REASONS, text_of
from hearth.protocol.types import Gate
from tests.kit.evm import ARTIFACTS
from tools.reasons import ERROR, MODULE, SIGNATURE, TEXTS, main
from tools.vyper_files import ROOT

FILES = [MODULE, TEXTS]
THOUSANDS = {"jobs": 1, "nodes": 2, "escrow": 3, "lens": 4, "rules": 5, "attesters": 6, "steward": 7}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the two files as they are committed."""
    (tmp_path / MODULE).parent.mkdir()
    for path in FILES:
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    return tmp_path


def test_check__committed_files__are_what_the_table_says() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (MODULE, "JOBS_PAUSED: constant(uint256) = 1001", "JOBS_PAUSED: constant(uint256) = 1002"),
        (TEXTS, "jobs: not open  ", "jobs: not shut  "),
        (TEXTS, "        row = reason - 1000\n", "        row = reason - 1001\n"),
    ],
    ids=["number", "text", "row"],
)
def test_check__one_thing_changed__names_the_file_and_writes_nothing(
    project: Path, path: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = project / path
    text = target.read_text(encoding="utf-8")
    assert text.count(old) == 1
    target.write_text(text.replace(old, new), encoding="utf-8")
    assert main(["--check", "--root", str(project)]) == 1
    assert capsys.readouterr().err == f"{path} differs from hearth/protocol/reasons.py; run: make reasons\n"
    assert target.read_text(encoding="utf-8") == text.replace(old, new)
    assert main(["--root", str(project)]) == 0
    assert target.read_bytes() == (ROOT / path).read_bytes()


def test_reasons__numbers__ascend_by_contract_and_a_gates_is_its_own() -> None:
    assert list(REASONS) == sorted(REASONS)
    for number, reason in REASONS.items():
        prefix = reason.text.partition(": ")[0]
        assert number // 1000 == THOUSANDS[prefix] and reason.name.startswith(f"{prefix.upper()}_"), reason
    # SUBMITTER and what follows it are gates of JobRegistry's, which has reasons of its own for them.
    gates = [gate for gate in Gate if Gate.FITS < gate < Gate.SUBMITTER]
    assert len(gates) == 16 and {GATE + gate for gate in gates} <= set(REASONS)
    assert not {number for number in REASONS if GATE + Gate.PROBATION < number < GATE + 100}


def test_reasons__names_and_texts__are_short_ascii_and_each_there_once() -> None:
    for column in zip(*REASONS.values(), strict=True):
        assert len(set(column)) == len(column)
    for reason in REASONS.values():
        assert re.fullmatch(r"[A-Z]+(_[A-Z]+)+", reason.name), reason
        assert re.fullmatch(r"[a-z]+: [\w ]+", reason.text, re.ASCII) and len(reason.text) <= 32, reason
        assert reason.text == reason.text.strip()


def test_text_of__unknown_number__is_that_number() -> None:
    assert text_of(1037) == "jobs: not open" and text_of(GATE + Gate.NO_SLOT) == "nodes: no free slot"
    assert text_of(999) == "refused with reason 999"
    assert text_of(2**256 - 1) == f"refused with reason {2**256 - 1}"


@pytest.mark.parametrize("contract", list(CONTRACTS))
def test_error__every_artifact__has_it_as_the_contract_reverts(contract: str) -> None:
    abi = json.loads((ARTIFACTS / f"{contract}.json").read_text(encoding="utf-8"))["abi"]
    assert [entry for entry in abi if entry["type"] == "error"] == [ERROR]
    assert signature_of(ERROR) == SIGNATURE


def test_error__selector__is_what_the_library_reads() -> None:
    selector = keccak(SIGNATURE.encode())[:4]
    assert revert_reason(selector + (1037).to_bytes(32, "big")) == "jobs: not open"
