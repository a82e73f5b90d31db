"""Documents with their canonical bytes and digests, what has no canonical form, and bytes that are none."""

from __future__ import annotations

import json
import random
from typing import Any

from hearth.storage import canonical
from tests.web.refused import code_of
from tests.web.vectors import _chance

_TEXTS = (
    ("", "a", "b", "aa", "z", "1", "10", "2", "-", "\r", "\x00", "\x1f", "\x7f", "\x80", '"', "\\", "/", "\b\t\n\f\r")
    + ("__proto__", "constructor", "toString", "hasOwnProperty", "\u00f6", "\u20ac", "\ufb33", "\U0001f600", "\ufeff")
    + ("\u2028", "\uffff", "\ue000", "\U00010000", "\U0010ffff", "\u00df\u1e9e", "\u202e")
)
_NUMBERS = (0, 1, -1, 9, 10, 2**31, -(2**31), 2**53 - 1, 1 - 2**53, 10**15)
_PIECES = (b" ", b",", b":", b'"', b"\\", b"[", b"]", b"{", b"}", b"0", b"-", b".0", b"e1", b"\\u0041", b"\xff")


def cases() -> dict[str, Any]:
    """Return the vectors: `text` is JSON of the document, in any key order."""
    chance = _chance.source("canonical")
    documents = [_document(chance, 0) for _ in _chance.rows(40)]
    spelled = [canonical.encode(one) for one in documents]
    return {
        "documents": [_written(one, chance) for one in documents],
        "refused": [{"text": text, "code": code_of(canonical.encode, json.loads(text))} for text in _refused()],
        "bytes": [{"bytes": f"0x{raw.hex()}", "code": code_of(canonical.decode, raw)} for raw in _raw()]
        + [_mutated(chance.choice(spelled), chance) for _ in _chance.rows(60)],
        "made": [_made(*one) for one in _large()],
    }


def _document(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(8 if depth < 4 else 4)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind == 1:
        return chance.choice((*_NUMBERS, chance.randrange(-(2**53) + 1, 2**53)))
    if kind in (2, 3):
        return _text(chance)
    if kind in (4, 5):
        return [_document(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {_text(chance): _document(chance, depth + 1) for _ in range(chance.randrange(5))}


def _text(chance: random.Random) -> str:
    return "".join(chance.choices(_TEXTS, k=chance.randrange(1, 4)))


def _written(document: Any, chance: random.Random) -> dict[str, Any]:
    raw = canonical.encode(document)
    text = json.dumps(_shuffled(document, chance))
    return {"text": text, "bytes": f"0x{raw.hex()}", "digest": f"0x{canonical.digest(document).hex()}"}


def _shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: _shuffled(value[key], chance) for key in keys}
    return value


def _refused() -> list[str]:
    """Return JSON of values without a canonical form; no float that is whole, which JavaScript cannot tell apart."""
    deep = ["[" * 65 + "]" * 65, '{"a":' * 64 + "{}" + "}" * 64, "[" * 65 + "0" + "]" * 65]
    numbers = ["1.5", "[0.1]", '{"a":[1e-7]}', "9007199254740992", "[-9007199254740992]", "1e400", "-0.5", "1e300"]
    halves = ['"\\ud800"', '"a\\udc00"', '{"\\udfff":1}', '["\\ude00\\ud83d"]', '{"\\ud800":1.5}']
    return [*numbers, *halves, *deep]


def _raw() -> list[bytes]:
    """Return bytes by hand: canonical ones at the edge of what is taken, and others just beyond it."""
    taken = [b"0", b"-1", b'""', b"[]", b"{}", b"null", b"true", b"false", b'"\\u000b"', b'"\x7f"', b'{"":0,"a":1}']
    taken += [b"9007199254740991", b"-9007199254740991", b'"\\u0000"', '"\u2028\U0001f600"'.encode(), b'"/"']
    taken += [b"[" * 64 + b"]" * 64, b"[" * 64 + b"0" + b"]" * 64, b'{"__proto__":{"a":1},"constructor":null}']
    taken += ['{"\U0001f600":1,"\ufb33":2}'.encode(), b'"\\b\\t\\n\\f\\r\\"\\\\"', '"\ufeff"'.encode()]
    refused = [b"", b" ", b"{", b"1.0", b"1e3", b"1E3", b"-0", b"01", b"-01", b"+1", b".5", b"1.", b"-", b"0x1", b"1_0"]
    refused += [b"NaN", b"Infinity", b"-Infinity", b"nul", b"True", b"undefined", b"'a'", b"1" * 400, b"[" * 66]
    refused += [b'{"a":1,"a":1}', b'{"a":1,"a":2}', b'{"b":1,"a":1}', b'{"a":1,}', b'{"a" :1}', b'{"a":}', b"{a:1}"]
    refused += [b'{"__proto__":1,"__proto__":1}', '{"\ufb33":2,"\U0001f600":1}'.encode(), b"{1:2}", b'{"a"}', b"{,}"]
    refused += [b"[1,]", b"[,1]", b"[1 ]", b"[1]]", b"[1", b"1 ", b"\n1", b"1\x00", b"{} {}", b"\xef\xbb\xbf{}", b"//"]
    refused += [b'"\\u0041"', b'"\\u000A"', b'"\\u000a"', b'"\\u001F"', b'"\\/"', b'"\\u0022"', b'"\\u007f"', b'"\\x"']
    refused += [b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\u00"', b'"\\', b'"', b'"\x1f"', b'"\n"', b'"\\u005c"', b'"\\u"']
    refused += [b"\xff", b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"9007199254740992"]
    refused += [b"-9007199254740992", b"9007199254740993", b"10000000000000000", b"[" * 65 + b"]" * 65, b"\xd9\xa1"]
    return taken + refused


def _mutated(raw: bytes, chance: random.Random) -> dict[str, Any]:
    """Change a canonical document in one or two places; some remain canonical."""
    data = bytearray(raw)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del data[at : at + chance.randrange(1, 4)]
        elif kind == 1:
            data[at:at] = chance.choice(_PIECES)
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        else:
            begin = chance.randrange(len(data) + 1)
            data[at:at] = data[begin : begin + chance.randrange(1, 8)]
    return {"bytes": f"0x{data.hex()}", "code": code_of(canonical.decode, bytes(data))}


def _large() -> list[tuple[str, str, int, str]]:
    most = canonical.MAX_DOCUMENT_BYTES
    return [
        ('"', "x", most - 2, '"'),
        ('"', "x", most - 1, '"'),
        ('"', "\u20ac", (most - 2) // 3, '"'),
        ('"', "\u20ac", (most - 2) // 3 + 1, '"'),
        ("", "[", 100_000, ""),
        ("[0", ",0", most // 2 - 2, "]"),
        ("[0", ",0", most // 2 - 1, "]"),
        ("", " ", most + 1, ""),
        ("", "1", 5000, ""),
    ]


def _made(before: str, repeated: str, count: int, after: str) -> dict[str, Any]:
    """Describe a text too long to be written down, and say whether its bytes are a document."""
    text = before + repeated * count + after
    code = code_of(canonical.decode, text.encode())
    return {"before": before, "repeated": repeated, "count": count, "after": after, "code": code}
