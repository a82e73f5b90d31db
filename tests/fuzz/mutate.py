"""Seeded mutations of inputs: of bytes, of JSON by its values, of YAML and TOML by their lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from tests.fuzz.target import MAX_BYTES, Kind

Mutate = Callable[[bytes, Random, Sequence[bytes]], bytes]
"""An input, the source of chance, and inputs to take parts of; returns another input of at most MAX_BYTES."""

_BYTES: Final = (b"\0", b"\xff", b"\x7f", b"\x80", b"\x80" * 9 + b"\1", b"\xff" * 32, b"\0" * 32, b"\r\n", b"/", b"..")
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53, 2**53 - 1, 2**63, 2**64, 2**256, 1.5, 1e308, 10**4400),
    *("", "0x", "0x0", "0x1", "0x" + "f" * 64, "0x" + "f" * 63, "0x" + "0" * 40, "-1", "1e9", "\ud800", "\0", "a\nb"),
    *(
        "\x1b[2J",
        "\u202e",
        "..",
        "/",
        "../x",
        "/out",
        "x" * 5000,
        "9" * 5000,
        "\u0661",
        "NaN",
        "true",
        [],
        {},
        [[]],
        [0],
    ),
)
_KEYS: Final = ("", "removed", "error", "message", "data", "code", "cid", "size", "x", "\ud800", "a.b", "k" * 300)
_TOKENS: Final = (
    *(
        "- ",
        ": ",
        "? ",
        "| ",
        "> ",
        "&a ",
        "*a",
        "!!int ",
        "!x ",
        "<<: *a",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "#",
        '"',
        "'",
    ),
    *(
        "[",
        "]",
        "{",
        "}",
        ",",
        "[[a]]\n",
        "a = ",
        "'''",
        '"""',
        "\\u0000",
        "\\",
        "\t",
        "\r",
        "\u2028",
        "\ufeff",
        "\x85",
    ),
    *(
        "null",
        "true",
        "0x1F",
        "1e400",
        "9" * 5000,
        "-0",
        "0o7",
        ".inf",
        "nan",
        "1979-05-27T07:32:00Z",
        "1.5GiB",
        "2h30m",
    ),
    *("${NAME}", "$${", "${", "/in/../x", "docker.io/a@sha256:" + "0" * 64, "bafkqaaa"),
)


def of_bytes(data: bytes, draw: Random, others: Sequence[bytes]) -> bytes:
    """Change, drop, repeat or take over some bytes."""
    made = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(made))
        end = min(len(made), at + draw.choice((1, 1, 2, 4, 32, 200)))
        how = draw.randrange(6)
        if how == 0 and at < len(made):
            made[at] ^= 1 << draw.randrange(8)
        elif how == 1:
            del made[at:end]
        elif how == 2:
            made[at:end] = draw.choice(_BYTES)
        elif how == 3:
            made[at:at] = made[at:end] * draw.choice((1, 2, 50))
        elif how == 4:
            made[at:end] = draw.randbytes(end - at)
        else:
            other = draw.choice(others)
            start = draw.randint(0, len(other))
            made[at:end] = other[start : start + draw.choice((4, 32, 200))]
    if made and draw.randrange(50) == 0:
        at = draw.randrange(len(made))
        part = bytes(made[at : at + draw.choice((1, 3, 40))])
        made[at:at] = part * (MAX_BYTES // len(part))
    return bytes(made[:MAX_BYTES])


def of_json(data: bytes, draw: Random, others: Sequence[bytes]) -> bytes:
    """Change one to three values, or where it is no JSON its bytes; written in canonical form, mostly."""
    if draw.randrange(5) == 0:
        return of_bytes(data, draw, others)
    try:
        value, donor = json.loads(data), json.loads(draw.choice(others))
    except (ValueError, RecursionError):
        return of_bytes(data, draw, others)
    for _ in range(draw.randint(1, 3)):
        value = _changed(value, draw, donor)
    if draw.randrange(50) == 0:
        value = [value] * draw.choice((3, 300))
    try:
        text = json.dumps(value, ensure_ascii=draw.randrange(10) == 0, separators=(",", ":"), sort_keys=True)
    except ValueError:  # an integer of more digits than Python prints
        return of_bytes(data, draw, others)
    return text.encode("utf-8", "surrogatepass")[:MAX_BYTES]


def _changed(value: Any, draw: Random, donor: Any) -> Any:
    """Return a value with one part of it replaced, dropped, doubled or moved in from elsewhere."""
    places = list(_places(value))
    holder, key = draw.choice(places) if places else (None, None)
    new = draw.choice(_VALUES) if draw.randrange(3) else _part(donor, draw)
    if holder is None:
        return new
    how = draw.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif how == 1:
        holder[draw.choice(_KEYS)] = holder[key]
    elif how == 2:
        old = holder[key]
        for _ in range(draw.choice((1, 2, 70))):
            old = [old]
        holder[key] = old
    elif how == 3 and isinstance(holder[key], str):
        holder[key] = _text(holder[key], draw)
    elif how == 3 and type(holder[key]) is int:
        holder[key] += draw.choice((-1, 1, 2**32, -(2**53)))
    else:
        holder[key] = new
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return (holder, key) of every value within one, of the first 2,000."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 2_000:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        found += [(one, key) for key in keys]
        waiting += [one[key] for key in keys]
    return found


def _part(value: Any, draw: Random) -> Any:
    places = _places(value)
    if not places:
        return value
    holder, key = draw.choice(places)
    return holder[key]


def _text(text: str, draw: Random) -> str:
    at = draw.randint(0, len(text))
    new = draw.choice(("", text[at : at + 3] * 2, "\x00", "0", "f", "/", "\u00e9", " ", "A"))
    return text[:at] + new + text[at + draw.randint(0, 3) :]


def of_text(data: bytes, draw: Random, others: Sequence[bytes]) -> bytes:
    """Change, drop, double, move or take over lines, and words in them."""
    if draw.randrange(8) == 0:
        return of_bytes(data, draw, others)
    lines = data.decode(errors="replace").splitlines(keepends=True) or [""]
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        line = lines[at]
        how = draw.randrange(8)
        if how == 0 and len(lines) > 1:
            del lines[at]
        elif how == 1:
            lines.insert(at, line)
        elif how == 2:
            lines.insert(draw.randrange(len(lines)), lines[at])
        elif how == 3:
            lines[at] = " " * draw.randrange(5) + line.lstrip(" ")
        elif how == 4:
            head, colon, _ = line.partition(draw.choice((":", "=")))
            lines[at] = f"{head}{colon} {draw.choice(_TOKENS)}\n"
        elif how == 5:
            other = draw.choice(others).decode(errors="replace").splitlines(keepends=True) or [""]
            start = draw.randrange(len(other))
            lines[at:at] = other[start : start + draw.randint(1, 4)]
        else:
            place = draw.randint(0, len(line))
            lines[at] = line[:place] + draw.choice(_TOKENS) + line[place + draw.randint(0, 4) :]
        if not lines:
            lines = [""]
    if draw.randrange(50) == 0:
        at = draw.randrange(len(lines))
        lines[at : at + 1] = [lines[at]] * (1 + 20_000 // (1 + len(lines[at])))
    return "".join(lines).encode("utf-8", "surrogatepass")[:MAX_BYTES]


MUTATE: Final[dict[Kind, Mutate]] = {"bytes": of_bytes, "json": of_json, "text": of_text, "disk": of_bytes}
