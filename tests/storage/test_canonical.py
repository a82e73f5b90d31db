"""Canonical JSON: RFC 8785 against an independent implementation, strict reading, and the limits."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import BadCid, BadDocument, TooLarge
from hearth.storage import canonical, cid
from tests.kit.require import require

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-canonical.MAX_INTEGER, canonical.MAX_INTEGER) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def test_encode__rfc_8785_sorting_example__the_order_of_the_rfc() -> None:
    # RFC 8785 section 3.2.3: names sort by UTF-16 code units, so the surrogate pair comes before U+FB33.
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    expected = ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical.encode(dict.fromkeys(names, 0)))) == expected


@pytest.mark.parametrize("raw", [b'{"\\ud800":1.5}', b'{"\\udfff":{"a":9007199254740993}}', b'["\\ud800"]'])
def test_decode__half_a_surrogate_pair__is_refused_in_words_that_can_be_written(raw: bytes) -> None:
    with pytest.raises(BadDocument) as caught:
        canonical.decode(raw)
    assert caught.value.message.encode()
    assert canonical._shown(("\ud800", 0)) == "\\ud800.0"


def test_encode__strings__escaped_as_the_rfc_says() -> None:
    # RFC 8785 section 3.2.2.2.
    assert canonical.encode('\u20ac$\x0f\nA\'B"\\\\"/') == b'"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'


@given(documents)
def test_decode__what_encode_gives__the_same_document(document: Any) -> None:
    data = canonical.encode(document)
    assert canonical.decode(data) == document
    assert canonical.digest(document) == hashlib.sha256(data).digest()


@given(documents)
def test_decode__any_other_spelling__refused(document: Any) -> None:
    data = canonical.encode(document)
    for other in (json.dumps(document).encode(), json.dumps(document, indent=1).encode(), b" " + data, data + b"\n"):
        if other != data:
            with pytest.raises(BadDocument):
                canonical.decode(other)


def test_encode__random_documents__equal_to_javascript() -> None:
    node = shutil.which("node")
    require("node", node is not None, "no node on PATH")
    made: list[Any] = []

    @given(documents)
    def make(document: Any) -> None:
        made.append(document)

    make()
    script = """
        const sorted = v => Array.isArray(v) ? v.map(sorted)
          : v && typeof v === 'object'
            ? '{' + Object.keys(v).sort().map(k => JSON.stringify(k) + ':' + text(v[k])).join(',') + '}' : null
        const text = v => Array.isArray(v) ? '[' + v.map(text).join(',') + ']'
          : v && typeof v === 'object' ? sorted(v) : JSON.stringify(v)
        const lines = require('fs').readFileSync(0, 'utf8').split('\\n')
        process.stdout.write(lines.map(l => text(JSON.parse(l))).join('\\n'))
    """
    lines = "\n".join(json.dumps(document) for document in made)
    answer = subprocess.run([str(node), "-e", script], input=lines.encode(), capture_output=True, check=True).stdout
    assert answer.split(b"\n") == [canonical.encode(document) for document in made]
    assert len(made) > 50


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (1.5, "float"),
        ({"a": [0.0]}, r"a\.0 is the float"),
        (float("nan"), "float"),
        ({1: 2}, "not a string"),
        ({"a": {None: 2}}, "not a string"),
        (2**53, r"2\^53"),
        ([-(2**53)], r"2\^53"),
        ({"a": b"bytes"}, "no canonical form"),
        ({"a": {1, 2}}, "no canonical form"),
        ("\ud800", "no canonical form"),
        ({"\udfff": 1}, "no canonical form"),
    ],
)
def test_encode__what_has_no_canonical_form__refused_with_the_place(document: Any, why: str) -> None:
    with pytest.raises(BadDocument, match=why) as caught:
        canonical.encode(document)
    assert (caught.value.exit_code, caught.value.code) == (9, "BAD_DOCUMENT")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"1.0",
        b"1e3",
        b"-0",
        b"01",
        b"NaN",
        b"Infinity",
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b'"\\u0041"',
        b'"\\ud800"',
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"9007199254740992",
        b"1" * 5000,
        b"[" * 100_000,
        b"[" * 66 + b"]" * 66,
    ],
)
def test_decode__not_canonical__refused(data: bytes) -> None:
    with pytest.raises(BadDocument):
        canonical.decode(data)


def test_encode__depth_at_and_above_the_limit__taken_and_refused() -> None:
    document: Any = 0
    for _ in range(canonical.MAX_DEPTH):
        document = [document]
    assert canonical.decode(canonical.encode(document)) == document
    with pytest.raises(BadDocument, match="deeper"):
        canonical.encode([document])


@pytest.mark.parametrize("empty", [[], {}, ()])
def test_encode__empty_value_at_and_above_the_limit__what_is_written_can_be_read(empty: Any) -> None:
    document: Any = empty
    for _ in range(canonical.MAX_DEPTH - 1):
        document = [document]
    assert canonical.encode(canonical.decode(canonical.encode(document))) == canonical.encode(document)
    with pytest.raises(BadDocument, match="deeper"):
        canonical.encode([document])


def test_encode__size_at_and_above_the_limit__taken_and_refused() -> None:
    document = "x" * (canonical.MAX_DOCUMENT_BYTES - 2)
    assert len(canonical.encode(document)) == canonical.MAX_DOCUMENT_BYTES
    with pytest.raises(TooLarge):
        canonical.encode(document + "x")
    with pytest.raises(TooLarge):
        canonical.decode(canonical.encode(document) + b" ")


@given(st.binary(min_size=32, max_size=32))
def test_cid_of_digest__any_digest__there_and_back(digest: bytes) -> None:
    name = canonical.cid_of_digest(digest)
    assert (name.version, name.codec, name.hash_code) == (1, cid.RAW, cid.SHA2_256)
    assert canonical.digest_of_cid(name) == digest


def test_digest_of_cid__no_document__refused() -> None:
    for name in (cid.of(b"\x0a\x02\x08\x01", cid.DAG_PB), cid.Cid(1, cid.RAW, cid.BLAKE3, bytes(32))):
        with pytest.raises(BadCid):
            canonical.digest_of_cid(name)
    with pytest.raises(BadCid):
        canonical.cid_of_digest(bytes(31))
