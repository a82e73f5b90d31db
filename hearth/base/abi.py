"""ABI encoding and decoding with eth_abi's coders, looked up in a registry of our own.

eth_abi's `decode` reads a registry that the whole process shares, and a library may change it: ape, once imported,
replaces the decoder of unsigned integers by one that pads short data. In such a process the empty answer of an address
without a contract would read as zero. Source of the coding: the Solidity contract ABI specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from eth_abi import decoding, encoding
from eth_abi.codec import ABICodec
from eth_abi.exceptions import DecodingError
from eth_abi.registry import ABIRegistry, BaseEquals, has_arrlist, is_base_tuple


def _registry() -> ABIRegistry:
    made = ABIRegistry()  # type: ignore[no-untyped-call]
    is_base: Callable[..., Callable[[Any], bool]] = BaseEquals  # which has no types
    coders = (
        (is_base("uint"), encoding.UnsignedIntegerEncoder, decoding.UnsignedIntegerDecoder, "uint"),
        (is_base("int"), encoding.SignedIntegerEncoder, decoding.SignedIntegerDecoder, "int"),
        (is_base("address"), encoding.AddressEncoder, decoding.AddressDecoder, "address"),
        (is_base("bool"), encoding.BooleanEncoder, decoding.BooleanDecoder, "bool"),
        (is_base("bytes", with_sub=True), encoding.BytesEncoder, decoding.BytesDecoder, "bytes<M>"),
        (is_base("bytes", with_sub=False), encoding.ByteStringEncoder, decoding.ByteStringDecoder, "bytes"),
        (is_base("string"), encoding.TextStringEncoder, decoding.StringDecoder, "string"),
        (has_arrlist, encoding.BaseArrayEncoder, decoding.BaseArrayDecoder, "has_arrlist"),
        (is_base_tuple, encoding.TupleEncoder, decoding.TupleDecoder, "is_base_tuple"),
    )
    for lookup, encoder, decoder, label in coders:
        made.register(lookup, encoder, decoder, label=label)
    return made


_CODEC: Final = ABICodec(_registry())

encode: Final = _CODEC.encode
"""Encode values by their types: `encode(types, values)`. Raises eth_abi's EncodingError."""


def decode(types: Iterable[str], data: bytes) -> tuple[Any, ...]:
    """Decode bytes by their types. Raises eth_abi's DecodingError, or OverflowError."""
    try:
        return _CODEC.decode(types, data)
    except UnicodeDecodeError as error:
        raise DecodingError(f"a string that is no text: {error}") from error
