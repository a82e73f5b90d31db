"""Our ABI coders stay strict where another library of the process has loosened eth_abi's."""

from __future__ import annotations

import subprocess
import sys

import pytest
from eth_abi.exceptions import DecodingError

from hearth.base import abi

BESIDE_APE = """
from eth_abi.abi import decode
import ape.utils.abi
from eth_abi.exceptions import DecodingError
from hearth.base.errors import ChainError
from hearth.market.abi import codec

assert decode(["uint256"], b"") == (0,), "ape no longer loosens eth_abi: this test shows nothing"
try:
    print("read", codec("Escrow").decode_output("credit", 1, b""))
except ChainError as error:
    print("refused", error.code)
try:
    print("read", codec("NodeRegistry").decode_input(codec("NodeRegistry").selector("beat") + bytes([1])))
except ValueError as error:
    print("refused", error)
"""


def test_decode__in_a_process_that_imported_ape__still_refuses_short_data() -> None:
    ran = subprocess.run([sys.executable, "-c", BESIDE_APE], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["refused WRONG_CONTRACTS", "refused NodeRegistry.beat: malformed calldata"]


@pytest.mark.parametrize(
    "kind", ["uint256", "int8", "bool", "address", "bytes32", "bytes", "string", "uint8[]", "(bool,uint8)"]
)
def test_decode__every_kind_of_type__refuses_data_cut_by_a_byte(kind: str) -> None:
    value = {"address": "0x" + "ab" * 20, "bytes32": b"\1" * 32, "bytes": b"\1" * 32, "string": "a" * 32}
    made = {"bool": True, "uint8[]": (1, 2), "(bool,uint8)": (True, 3)} | value
    data = abi.encode([kind], [made.get(kind, 7)])
    assert abi.decode([kind], data) == (made.get(kind, 7),)
    with pytest.raises(DecodingError):
        abi.decode([kind], data[:-1])


def test_decode__string_that_is_no_text__is_refused_as_any_other_answer() -> None:
    word = (32).to_bytes(32, "big") + (1).to_bytes(32, "big") + b"\x80" + bytes(31)
    with pytest.raises(DecodingError, match="no text"):
        abi.decode(["string"], word)
