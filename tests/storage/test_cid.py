"""CIDs: known names, exact parsing, and the refusal of everything that is not exactly one."""

from __future__ import annotations

import hashlib

import libipld
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import BadCid, BlockCorrupt, TooLarge
from hearth.storage import cid
from hearth.storage.cid import Cid

# Known from other tools: the empty raw block and the empty UnixFS directory, in both versions.
EMPTY_RAW = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
EMPTY_DIRECTORY = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354"
EMPTY_DIRECTORY_V0 = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"

cids = st.builds(
    Cid,
    st.just(1),
    st.sampled_from(sorted(cid.CODECS)),
    st.sampled_from((cid.SHA2_256, cid.BLAKE3)),
    st.binary(min_size=32, max_size=32),
) | st.builds(
    Cid,
    st.just(1),
    st.sampled_from(sorted(cid.CODECS)),
    st.just(cid.IDENTITY),
    st.binary(max_size=cid.MAX_INLINE_BYTES),
)


def test_of__known_blocks__known_names() -> None:
    assert str(cid.of(b"")) == EMPTY_RAW
    assert str(cid.of(b"\x0a\x02\x08\x01", cid.DAG_PB)) == EMPTY_DIRECTORY


def test_parse__version_0__same_block_as_version_1() -> None:
    old = cid.parse(EMPTY_DIRECTORY_V0)
    assert (old.version, old.codec) == (0, cid.DAG_PB)
    assert old.digest == cid.parse(EMPTY_DIRECTORY).digest
    assert str(old) == EMPTY_DIRECTORY_V0
    assert old.verify(b"\x0a\x02\x08\x01") == b"\x0a\x02\x08\x01"


@given(cids, st.sampled_from("bzfku"))
def test_parse__any_multibase__round_trip(name: Cid, base: str) -> None:
    assert cid.parse(libipld.encode_multibase(base, bytes(name))) == name
    assert cid.parse(str(name)) == name
    assert str(name).startswith("b")


@pytest.mark.parametrize("codec", sorted(cid.CODECS))
def test_str__block_of_any_length_that_a_name_may_hold__is_read_back(codec: int) -> None:
    for size in range(cid.MAX_INLINE_BYTES + 1):
        name = Cid(1, codec, cid.IDENTITY, bytes(range(size)))
        assert str(name) == libipld.encode_multibase("b", bytes(name))
        assert cid.parse(str(name)) == name


@given(st.text(max_size=70) | st.text("bafkreidyzQm123456 ", max_size=70))
def test_parse__any_text__a_cid_or_bad_cid(text: str) -> None:
    try:
        name = cid.parse(text)
    except BadCid as error:
        assert error.exit_code == 9
        assert error.hint
    else:
        assert cid.parse(str(name)) == name


@given(st.binary(max_size=80))
def test_from_bytes__any_bytes__the_same_bytes_or_bad_cid(raw: bytes) -> None:
    try:
        name = cid.from_bytes(raw)
    except BadCid:
        return
    assert bytes(name) == raw


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (bytes(cid.of(b"")) + b"\0", "digest"),  # libipld takes this one
        (bytes(cid.of(b""))[:-1], "digest"),
        (b"\x01\x55\x12\x00", "digest"),
        (b"\x01\x55\x00\x81\x01" + bytes(129), "more than 128 bytes"),
        (b"\x01\x55\x00\x02" + bytes(3), "as long as it says"),
        (b"\x01\x55\x00\x03" + bytes(2), "as long as it says"),
        (b"\x01\x55\x00\x82\x00" + bytes(2), "as long as it says"),  # a varint longer than needed
        (b"\x01\x55\x13\x40" + bytes(64), "hash 0x13"),
        (b"\x01\x55\x11\x14" + bytes(20), "hash 0x11"),
        (b"\x01\x72\x12\x20" + bytes(32), "codec 0x72"),
        (b"\x81\x00\x55\x12\x20" + bytes(32), "version"),  # a varint longer than needed
        (b"\x02\x55\x12\x20" + bytes(32), "version"),
        (b"\x00", "version"),
    ],
)
def test_from_bytes__not_on_our_lists__refused_with_the_reason(raw: bytes, why: str) -> None:
    with pytest.raises(BadCid, match=why):
        cid.from_bytes(raw)


@pytest.mark.parametrize(
    "text", ["", " ", "bafy", EMPTY_RAW + "\n", " " + EMPTY_RAW, EMPTY_RAW[:-1], EMPTY_RAW + "a", "Qm" + "1" * 44]
)
def test_parse__almost_a_cid__refused(text: str) -> None:
    with pytest.raises(BadCid):
        cid.parse(text)


def test_parse__endless_text__refused_before_it_is_decoded() -> None:
    with pytest.raises(BadCid, match="1 to 256 characters"):
        cid.parse("z" + "1" * 10**6)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (EMPTY_RAW, ""),
        (f"ipfs://{EMPTY_RAW}", ""),
        (f"ipfs://{EMPTY_RAW}/", ""),
        (f"/ipfs/{EMPTY_RAW}/a/b c", "a/b c"),
    ],
)
def test_parse_uri__each_form__cid_and_path(text: str, path: str) -> None:
    assert cid.parse_uri(text) == (cid.parse(EMPTY_RAW), path)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_verify__one_bit_flipped__block_corrupt(block: bytes, data: st.DataObject) -> None:
    name = cid.of(block)
    assert name.verify(block) == block
    bit = data.draw(st.integers(0, len(block) * 8 - 1))
    spoilt = bytearray(block)
    spoilt[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BlockCorrupt):
        name.verify(bytes(spoilt))


def test_verify__blake3__checked_with_its_own_hash() -> None:
    # The official BLAKE3 test vector for empty input.
    empty = bytes.fromhex("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262")
    name = Cid(1, cid.RAW, cid.BLAKE3, empty)
    assert name.verify(b"") == b""
    with pytest.raises(BlockCorrupt):
        name.verify(b"x")


def test_verify__identity__the_block_is_its_own_name() -> None:
    # Written by Kubo: `printf hello | ipfs add --inline --cid-version 1`, and the empty block.
    name = cid.parse("bafkqablimvwgy3y")
    assert (name.hash_code, name.digest, name.verify(b"hello")) == (cid.IDENTITY, b"hello", b"hello")
    assert cid.parse("bafkqaaa").digest == b""
    with pytest.raises(BlockCorrupt):
        name.verify(b"hullo")


def test_verify__block_above_two_mebibytes__refused_by_size() -> None:
    block = bytes(cid.MAX_BLOCK_BYTES + 1)
    with pytest.raises(TooLarge):
        Cid(1, cid.RAW, cid.SHA2_256, hashlib.sha256(block).digest()).verify(block)
    with pytest.raises(TooLarge):
        cid.of(block)
    assert cid.of(block[:-1]).verify(block[:-1])


@pytest.mark.parametrize(
    "name",
    [
        *(Cid(1, cid.RAW, cid.IDENTITY, bytes(size)) for size in (0, 1, 127, cid.MAX_INLINE_BYTES)),
        cid.of(b"x"),
        Cid(0, cid.DAG_PB, cid.SHA2_256, bytes(32)),
    ],
    ids=str,
)
@pytest.mark.parametrize("rest", [b"", b"\x01\x55", bytes(300)])
def test_from_start__name_before_other_bytes__ends_where_it_ends(name: Cid, rest: bytes) -> None:
    assert cid.from_start(bytes(name) + rest) == (name, len(bytes(name)))


@pytest.mark.parametrize("name", [Cid(1, cid.RAW, cid.IDENTITY, bytes(cid.MAX_INLINE_BYTES)), cid.of(b"x")], ids=str)
def test_from_start__cut_off_anywhere__refused(name: Cid) -> None:
    raw = bytes(name)
    for size in range(len(raw)):
        with pytest.raises(BadCid):
            cid.from_start(raw[:size])


@pytest.mark.parametrize("size", [cid.MAX_INLINE_BYTES + 1, 300])
def test_from_start__longer_than_a_name_may_hold__refused_by_that(size: int) -> None:
    raw = b"\x01\x55\x00" + bytes((size & 0x7F | 0x80, size >> 7)) + bytes(size)
    with pytest.raises(BadCid, match="holds a block of more than"):
        cid.from_start(raw)


def test_of_root__digest_on_chain__names_a_directorys_block() -> None:
    block = b"\x0a\x02\x08\x01"
    assert cid.of_root(hashlib.sha256(block).digest()) == cid.of(block, cid.DAG_PB)
