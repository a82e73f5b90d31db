"""Calldata and answers of every function in the page's ABI, with arguments by chance, encoded by the library."""

from __future__ import annotations

import random
import re
from typing import Any

from hearth.base.abi import encode
from hearth.market.abi import codec, type_of
from hearth.market.calls import token_call
from tests.web.vectors import _chance
from tools.web_tables import _abi


def cases() -> Any:
    """Return by constant and function draws of arguments and answer with their bytes; events; the refusal."""
    draw = _chance.source(20)
    wanted = {
        _abi.constant_of(contract, what): (contract, names)
        for what, table in (("READS", _abi.READ), ("CALLS", _abi.SIGNED))
        for contract, names in table.items()
    }
    functions = {
        constant: [_case(contract, one, draw) for _ in _chance.rows(1) for one in _abi.functions_of(contract, names)]
        for constant, (contract, names) in wanted.items()
    }
    return {"functions": functions, "events": _abi.events(), "refusal": _abi.refusal()}


def _case(contract: str, entry: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    name = entry["name"]
    args = [_value(type_of(p), draw) for p in entry["inputs"]]
    kinds = [type_of(p) for p in entry["outputs"]]
    answer = [_value(kind, draw) for kind in kinds]
    data = token_call(name, *args) if contract == _abi.TOKEN else codec(contract).encode(name, *args)
    return {
        "name": name,
        "args": [_said(value) for value in args],
        "data": "0x" + data.hex(),
        "answer": [_said(value) for value in answer],
        "answer_data": "0x" + encode(kinds, answer).hex(),
    }


def _value(kind: str, draw: random.Random) -> Any:
    """Return a value of an ABI type, by chance."""
    if array := re.fullmatch(r"(.*)\[(\d*)\]", kind):
        return [_value(array[1], draw) for _ in range(int(array[2] or draw.randrange(3)))]
    if kind.startswith("("):
        return tuple(_value(part, draw) for part in _parts(kind[1:-1]))
    if kind == "address":
        return f"0x{draw.getrandbits(160):040x}"
    if kind == "bytes32":
        return draw.randbytes(32)
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "string":
        return draw.choice(["", "jobs: not open", "reason \N{SNOWMAN}"])
    bits = int(kind.removeprefix("uint"))
    return draw.choice([0, 1, 2**bits - 1, draw.getrandbits(bits), draw.getrandbits(bits // 4)])


def _parts(kinds: str) -> list[str]:
    """Split a tuple's types at its own commas."""
    parts, depth = [""], 0
    for one in kinds:
        depth += {"(": 1, ")": -1}.get(one, 0)
        if one == "," and not depth:
            parts.append("")
        else:
            parts[-1] += one
    return parts


def _said(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list | tuple):
        return [_said(item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
