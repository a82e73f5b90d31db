"""Content identifiers: parse, print, verify.

The text forms (multibase) are libipld's; the bytes are read here, because libipld ignores bytes after the digest.
Source: the CID and multihash specifications, https://github.com/multiformats/cid.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

import libipld

from hearth.base.errors import BadCid, BlockCorrupt, TooLarge

RAW = 0x55
DAG_PB = 0x70
DAG_CBOR = 0x71
CODECS = {RAW: "raw", DAG_PB: "dag-pb", DAG_CBOR: "dag-cbor"}

IDENTITY = 0x00
"""No hash: the block itself stands in its name, as `ipfs add --inline` writes it."""
SHA2_256 = 0x12
BLAKE3 = 0x1E
HASHES = {IDENTITY: "identity", SHA2_256: "sha2-256", BLAKE3: "blake3"}
DIGEST_BYTES = 32
MAX_INLINE_BYTES = 128
"""The longest block that a name may hold, as in Kubo."""
MAX_BLOCK_BYTES = 2 * 2**20
"""The largest block that is read or written, as in bitswap and the trustless gateway specification."""

_V0_PREFIX = bytes((SHA2_256, DIGEST_BYTES))
_MAX_TEXT = 256
_HINT = "a CID looks like bafybei... or Qm...; copy it again from where it was printed"


@dataclass(frozen=True, slots=True)
class Cid:
    """Name a block by its codec and the hash of its bytes.

    `version` 0 or 1, `codec` one of CODECS, `hash_code` one of HASHES, `digest` 32 bytes, or for IDENTITY the block.
    """

    version: int
    codec: int
    hash_code: int
    digest: bytes

    def __bytes__(self) -> bytes:
        if self.version == 0:
            return _V0_PREFIX + self.digest
        return bytes((1, self.codec, self.hash_code)) + _length(self.digest) + self.digest

    def __str__(self) -> str:
        if self.hash_code == IDENTITY:
            # libipld prints no digest above 64 bytes.
            return "b" + base64.b32encode(bytes(self)).decode().rstrip("=").lower()
        return str(libipld.encode_cid(bytes(self)))

    def verify(self, data: bytes) -> bytes:
        """Return `data` if it hashes to this CID.

        Raises TooLarge above MAX_BLOCK_BYTES and BlockCorrupt when the hash differs.
        """
        check_block_size(data)
        if _hash(self.hash_code, data) != self.digest:
            raise BlockCorrupt(
                f"block {self}: the {len(data)} bytes received do not hash to it",
                hint="hearth doctor",
                cid=str(self),
            )
        return data


def of(data: bytes, codec: int = RAW) -> Cid:
    """Return the CIDv1 (sha2-256) of a block."""
    check_block_size(data)
    return Cid(1, codec, SHA2_256, hashlib.sha256(data).digest())


def of_root(digest: bytes) -> Cid:
    """Return the CIDv1 of a UnixFS root that is named by the sha2-256 digest of its dag-pb block alone, as on chain."""
    return Cid(1, DAG_PB, SHA2_256, digest)


def parse(text: str) -> Cid:
    """Read a CID from its text: v0 in base58, v1 in any multibase.

    Raises BadCid for everything that is not exactly one CID of a listed codec and hash.
    """
    if not text or len(text) > _MAX_TEXT:
        raise BadCid(f"a CID has 1 to {_MAX_TEXT} characters, this text has {len(text)}", hint=_HINT)
    try:
        _, raw = libipld.decode_multibase("z" + text if len(text) == 46 and text.startswith("Qm") else text)
    except ValueError as error:
        raise BadCid(f"{text!r} is no CID: {error}", hint=_HINT) from error
    return from_bytes(raw, text)


def from_start(raw: bytes) -> tuple[Cid, int]:
    """Read the CID that some bytes begin with; return it and where it ends. Raises BadCid."""
    if raw[:2] == _V0_PREFIX:
        end = 2 + DIGEST_BYTES
    elif len(raw) > 4 and raw[3] >= 0x80:
        end = 5 + (raw[3] & 0x7F | raw[4] << 7)
    else:
        end = 4 + (raw[3] if len(raw) > 3 else 0)
    return from_bytes(raw[:end]), end


def from_bytes(raw: bytes, shown: str | None = None) -> Cid:
    """Read a CID from its bytes; `shown` is the text to name in errors."""
    name = repr(shown) if shown is not None else f"0x{raw[:80].hex()}"
    if raw[:2] == _V0_PREFIX and len(raw) == 2 + DIGEST_BYTES:
        return Cid(0, DAG_PB, SHA2_256, raw[2:])
    # Every version, codec and hash on our lists is below 128, so each varint but the length is one byte long.
    if len(raw) < 4 or raw[0] != 1:
        raise BadCid(f"{name} is no CID of version 0 or 1", hint=_HINT)
    _, codec, hash_code, first = raw[:4]
    if codec not in CODECS:
        raise BadCid(f"{name}: codec 0x{codec:x} is not one of {', '.join(CODECS.values())}", hint=_HINT)
    if hash_code not in HASHES:
        raise BadCid(f"{name}: hash 0x{hash_code:x} is not one of {', '.join(HASHES.values())}", hint=_HINT)
    digest = raw[4:] if first < 0x80 else raw[5:]
    if hash_code == IDENTITY and len(digest) > MAX_INLINE_BYTES:
        raise BadCid(f"{name}: it holds a block of more than {MAX_INLINE_BYTES} bytes", hint=_HINT)
    if hash_code != IDENTITY and len(digest) != DIGEST_BYTES:
        raise BadCid(f"{name}: the digest is not exactly {DIGEST_BYTES} bytes long", hint=_HINT)
    if raw[3 : len(raw) - len(digest)] != _length(digest):
        raise BadCid(f"{name}: the digest is not as long as it says", hint=_HINT)
    return Cid(1, codec, hash_code, digest)


def parse_uri(text: str) -> tuple[Cid, str]:
    """Split `ipfs://CID/path`, `/ipfs/CID/path` or a bare CID into the CID and the path, without outer slashes."""
    for prefix in ("ipfs://", "/ipfs/"):
        if text.startswith(prefix):
            cid, _, path = text[len(prefix) :].partition("/")
            return parse(cid), path.strip("/")
    return parse(text), ""


def check_block_size(data: bytes) -> None:
    """Refuse a block above MAX_BLOCK_BYTES."""
    if len(data) > MAX_BLOCK_BYTES:
        raise TooLarge(
            f"a block has at most {MAX_BLOCK_BYTES} bytes, this one has {len(data)}",
            hint="hearth doctor",
        )


def _length(digest: bytes) -> bytes:
    """Return a digest's length as a varint: one byte, two for the longest block that a name may hold."""
    size = len(digest)
    return bytes((size,)) if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7))


def _hash(hash_code: int, data: bytes) -> bytes:
    if hash_code == IDENTITY:
        return data
    if hash_code == SHA2_256:
        return hashlib.sha256(data).digest()
    import blake3

    return blake3.blake3(data).digest()
