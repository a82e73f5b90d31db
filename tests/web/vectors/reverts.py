"""Reverts' return data and providers' errors, with the reason and the sentence that the library finds in them."""

from __future__ import annotations

import random
from typing import Any

from hearth.base.errors import RefusedError
from hearth.chain.answers import _reason_in_text, _revert_data, failure_of
from hearth.chain.port import _ERROR, _PANIC, _REFUSED, refused, revert_reason
from hearth.protocol.reasons import REASONS
from tests.web.vectors import _chance

REASON_DATA = _REFUSED + (1037).to_bytes(32, "big")
LONG = _ERROR + (32).to_bytes(32, "big") + (570).to_bytes(32, "big") + ("x" * 490 + "\N{GRINNING FACE}" * 20).encode()


def cases() -> Any:
    """Return what data, errors' shapes, messages and whole errors come to."""
    return {
        "data": [{"data": "0x" + data.hex(), "reason": revert_reason(data)} for data in _data(_chance.source(5))],
        "refused": [_refused(reason, label) for reason in _reasons() for label in ("", "jobs.post", "token.approve")],
        "shapes": [{"raw": raw, "data": "0x" + _revert_data(raw).hex()} for raw in _shapes()],
        "texts": [{"text": text, "reason": _reason_in_text(text)} for text in _texts()],
        "errors": [{"error": error, **_error(error)} for error in _errors()],
    }


def _data(draw: random.Random) -> list[bytes]:
    word = lambda number: number.to_bytes(32, "big")  # noqa: E731
    refusals = [
        _REFUSED + word(number)
        for number in (*_chance.some(draw, sorted(REASONS), 30), 0, 999, 2000, 2099, 2**32, 2**64 + 1000, 2**256 - 1)
    ]
    panics = [_PANIC + word(code) for code in (0, 1, 0x11, 0x12, 0x21, 0x32, 0x100, 2**200)]
    said = [
        *(b"", b"token: paused", "caf\N{LATIN SMALL LETTER E WITH ACUTE} \N{GRINNING FACE}".encode()),
        *(b"\xef\xbb\xbfmark", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xff\xfe ok", b"\xc3(", b"\xe2\x82", b"\xc0\x80"),
        *(draw.randbytes(draw.randrange(1, 24)) for _ in _chance.rows(10)),
    ]
    texts = [_ERROR + word(32) + word(len(text)) + text + bytes(-len(text) % 32) for text in said]
    wild = [_ERROR + word(32) + word(length) + b"four" for length in (0, 3, 4, 5, 2**64, 2**256 - 1)]
    cut = [
        data[:length]
        for data in (REASON_DATA, panics[1], texts[1])
        for length in (0, 1, 3, 4, 5, 35, 36, 67, 68, 69, 71)
    ]
    return [*refusals, *panics, *texts, *wild, *cut, draw.randbytes(68), REASON_DATA + b"more"]


def _reasons() -> list[str]:
    return [
        "",
        "jobs: paused",
        "jobs: not open",
        "escrow: short",
        "nodes",
        "odd",
        "__proto__: x",
        ": x",
        "rules: \ud800",
    ]


def _refused(reason: str, label: str) -> dict[str, Any]:
    error = refused(reason, label=label)
    return {"reason": reason, "label": label, "message": error.message, "hint": error.hint}


def _shapes() -> list[Any]:
    data = "0x" + REASON_DATA.hex()
    return [
        *(None, "", 5, True, [data], "0x", "0X08", data, data.upper(), "0x" + data[2:].upper(), data[:-1], data + "g"),
        *(f"Reverted {data}", f"Reverted  {data}\n", f" {data}\u3000", f"\ufeff{data}", f"{data[:20]} {data[20:]}"),
        *(f"{data[:21]} {data[21:]}", f"{data} \t\r\n\f\v ", f"{data[:20]}\xa0{data[20:]}", "0x\u0660\u0661"),
        *({"data": data}, {"data": "", "result": data}, {"data": {}, "result": data}, {"data": [], "result": data}),
        *({"data": 0, "result": data}, {"data": {"data": data}}, {"result": data}, {}, {"message": "reverted"}),
    ]


def _texts() -> list[str]:
    return [
        *("", "execution reverted", "execution reverted: jobs: not open", "revert: x", "reverted x", "revertx y"),
        *("VM Exception while processing transaction: reverted with reason string 'jobs: paused'", "revert 'a' b"),
        *("reverted 'a'\n", "reverted 'a'\n\n", "reverted: a\n", "reverted: 'it's'", "revert revert: b", "REVERT: a"),
        *("Out of gas", "outofgas", "OUT OF GA\u017f", "gas required exceeds allowance (5)"),
        *("reverted with reason string x", "reverted:  ", "reverted\u00e9: a", "revert:a"),
    ]


def _errors() -> list[Any]:
    data = "0x" + REASON_DATA.hex()
    return [
        {"code": 3, "message": "execution reverted", "data": data},
        {"code": 3, "message": "anything", "data": None},
        {"code": -32000, "message": "execution reverted: token: paused"},
        {"code": -32000, "message": "execution reverted: rate limit", "data": {"data": data}},
        {"code": -32015, "message": "VM execution error.", "data": f"Reverted {data}"},
        {"code": 3, "message": "execution reverted", "data": "0x" + LONG.hex()},
        {"code": -32000, "message": "execution reverted: " + "x" * 470 + "\N{GRINNING FACE}" * 20},
        {"code": -32000, "message": "execution reverted: half \ud83d a pair"},
        {"code": -32000, "message": "x" * 600 + " execution reverted: late"},
        {"code": -32000, "message": "invalid opcode: INVALID"},
        {"code": -32000, "message": "out of gas"},
        {"code": -32000, "message": "nothing that is known"},
        {"code": -32005, "message": "limit exceeded"},
        {"message": "no code"},
        {"code": "3", "message": "no number"},
        {},
    ]


def _error(error: Any) -> dict[str, Any]:
    found = failure_of(error, "eth_call")
    if not isinstance(found, RefusedError):
        return {"refusal": None}
    said = {name: found.details[name] for name in ("reason", "data")}
    return {"refusal": {"message": found.message, "hint": found.hint, **said}}
