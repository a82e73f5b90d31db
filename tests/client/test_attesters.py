"""hearth.client.judges.attester_files: what strangers write is read or refused by name, and never crashes a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import HearthError, SpecError, UsageError
from hearth.client.judges import attester_files
from hearth.client.judges.attester_files import load_attestation, load_set, row_of, set_beside
from hearth.protocol.attest import AttesterSet, Result
from hearth.protocol.types import JobId, Outcome

KEYS = tuple(f"0x{number:02x}" + "5b" * 19 for number in (1, 2, 3))
SET = AttesterSet(KEYS, 2)
JOB = "0x" + "07" * 32
RESULT = Result(JobId(b"\x07" * 32), 4, b"\x02" * 32, b"\x03" * 32, Outcome.EXIT, 9)
ROW = row_of(RESULT, (28, 5, 6))
DOCUMENT: dict[str, Any] = {"schema": "hearth.attestation/1", "job": JOB, "signer": KEYS[0], "results": [ROW]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"keys": KEYS, "quorum": 2}),
        json.dumps({"quorum": 2, "keys": KEYS[::-1]}),
        "keys:\n" + "".join(f'- "{key}"\n' for key in KEYS) + "quorum: 2\n",
        "keys: [" + ", ".join(f"'0x{key[2:].upper()}'" for key in KEYS) + "]\nquorum: 2\n",
    ],
)
def test_load_set__yaml_or_json_in_any_order__is_the_set(file: Path, text: str) -> None:
    file.write_text(text)
    assert load_set(file) == SET


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "keys and quorum"),
        ("[]", ""),
        ('{"keys": []}', "keys and quorum"),
        ('{"keys": [], "quorum": 0}', "0 keys"),
        ('{"keys": [], "quorum": 1, "more": 1}', "nothing else"),
        ('{"keys": "0x", "quorum": 1}', "no list"),
        ('{"keys": [1], "quorum": 1}', "no list"),
        ('{"keys": ["0x12"], "quorum": 1}', "no address"),
        (json.dumps({"keys": ["0x" + "00" * 20], "quorum": 1}), "zero address"),
        (json.dumps({"keys": [KEYS[0], KEYS[0].upper().replace("X", "x")], "quorum": 1}), "twice"),
        (json.dumps({"keys": ["0x5B" + "5b" * 19], "quorum": 1}), "mistyped"),
        (json.dumps({"keys": KEYS, "quorum": 4}), "quorum 4"),
        (json.dumps({"keys": KEYS, "quorum": True}), "whole number"),
        (json.dumps({"keys": KEYS, "quorum": "2"}), "whole number"),
        (json.dumps({"keys": [f"0x{n:040x}" for n in range(1, 18)], "quorum": 1}), "17 keys"),
        (f"keys: [{KEYS[0]}]\nquorum: 1\n", "quote"),
        ("keys: [", "YAML"),
        ("\xff", ""),
    ],
)
def test_load_set__anything_else__is_refused_with_the_form(file: Path, text: str, why: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(SpecError) as caught:
        load_set(file)
    assert caught.value.code == "BAD_ATTESTERS" and caught.value.hint
    assert why in caught.value.message + caught.value.hint


def test_load_set__file_too_large_or_gone__is_refused(file: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_set(file)
    assert caught.value.code == "NO_ATTESTERS" and str(file) in caught.value.message
    file.write_text(json.dumps({"keys": KEYS, "quorum": 2}) + " " * attester_files.MAX_SET_BYTES)
    with pytest.raises(SpecError) as caught:
        load_set(file)
    assert caught.value.code == "BAD_ATTESTERS"


def test_set_beside__job_file__counts_paths_from_its_folder_and_names_the_field(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"keys": KEYS, "quorum": 2}))
    assert set_beside(tmp_path, "a.json") == set_beside(Path("/"), str(tmp_path / "a.json")) == SET
    for name, code in (("gone", "NO_ATTESTERS"), ("~nobody-here/a", "NO_ATTESTERS"), ("a\0b", "NO_ATTESTERS")):
        with pytest.raises(SpecError) as caught:
            set_beside(tmp_path, name)
        assert (caught.value.code, caught.value.details["field"]) == (code, "verify.attesters")


def test_load_attestation__what_attest_writes__is_read(file: Path) -> None:
    file.write_text(json.dumps(DOCUMENT))
    found = load_attestation(file, JOB)
    assert (found.signer, found.vrs(4)) == (KEYS[0], (28, 5, 6))
    assert ROW["signature"] == "0x" + "00" * 31 + "05" + "00" * 31 + "06" + "1c"
    assert (ROW["outcome"], ROW["fuel_seconds"], ROW["result"]) == ("exit", 9, "03" * 32)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": "hearth.attestation/2"}, "schema"),
        ({"job": "0x07"}, "malformed"),
        ({"job": "0x" + "08" * 32}, "attests job 0x080808080808, not 0x070707070707"),
        ({"signer": None}, "malformed"),
        ({"results": []}, "empty"),
        ({"results": {}}, "no list"),
        ({"results": [1]}, "names no unit"),
        ({"results": [ROW, ROW]}, "one twice"),
        ({"results": [{**ROW, "unit": -1}]}, "names no unit"),
        ({"results": [{**ROW, "unit": True}]}, "names no unit"),
        ({"results": [{**ROW, "unit": 1 << 24}]}, "names no unit"),
        ({"results": [{**ROW, "signature": "0x12"}]}, "65 bytes"),
        ({"results": [{"unit": 4}]}, "65 bytes"),
    ],
)
def test_load_attestation__anything_else__is_refused(file: Path, change: dict[str, Any], why: str) -> None:
    file.write_text(json.dumps({**DOCUMENT, **change}))
    with pytest.raises(UsageError) as caught:
        load_attestation(file, JOB)
    assert caught.value.code == "BAD_ATTESTATION" and why in caught.value.message


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"schema": NaN}', b'{"schema": 1e999}'])
def test_load_attestation__no_json__is_refused(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    with pytest.raises(UsageError):
        load_attestation(file, JOB)


def test_load_attestation__file_too_large_or_gone__is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        load_attestation(file, JOB)
    assert (caught.value.message, caught.value.details["file"]) == (f"{file} cannot be read", str(file))
    file.write_text(json.dumps(DOCUMENT))
    monkeypatch.setattr(attester_files, "MAX_ATTESTATION_BYTES", file.stat().st_size)
    assert load_attestation(file, JOB).rows
    monkeypatch.setattr(attester_files, "MAX_ATTESTATION_BYTES", file.stat().st_size - 1)
    with pytest.raises(UsageError):
        load_attestation(file, JOB)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["keys", "quorum", "results", "unit"]), inner),
    max_leaves=12,
)
MAYBE = st.fixed_dictionaries(
    {}, optional={name: st.just(value) | JSON for name, value in {**DOCUMENT, "keys": list(KEYS), "quorum": 2}.items()}
)


@given(MAYBE | JSON)
def test_files__any_json__are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_text(json.dumps(value))
    for read in (load_set, lambda path: load_attestation(path, JOB)):
        try:
            read(file)
        except HearthError as error:
            assert error.code in ("BAD_ATTESTERS", "BAD_ATTESTATION") and error.hint
