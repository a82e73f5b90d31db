"""Texts of job files, and what the library reads in them: a value, or a refusal.

`fixed` are written by hand; `narrow` says that the page refuses what the library reads. `random` are made by a grammar
that likes the corners of YAML: the page reads each as the library does, or refuses it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hearth.base.errors import SpecError
from hearth.jobfile.text import MAX_DEPTH, read_text
from tests.jobfile.test_wrong_types import PLACES, WRITTEN, file_with
from tools.vyper_files import ROOT

_NAME = "job.yaml"

READ = [
    "image: x\n",
    "image: x",
    "\ufeffimage: x\n",
    "a: 1\nb: -1\nc: 0\nd: -0\ne: 999999999999999999\n",
    "a: true\nb: True\nc: FALSE\nd: ~\ne: null\nf:\ng: Null\nh: yes\ni: no\nj: on\nk: nUll\n",
    "a: '1'\nb: \"true\"\nc: ''\nd: \"\"\n",
    "a: 1:30\nb: 2020-01-01\nc: 1.2.3\nd: 1x\ne: 0x\nf: 1e\ng: v1.5\nh: '1.5'\ni: 1.20/h\nj: 6h\nk: 0.60 ETH\n",
    "a: b # c\nd: e#f\ng: '#h'\n",
    "a:\n- b\n- c\nd:\n  - e\n  -   f\n  - - g\n    - h\n  - i: j\n    k: l\n  -\n    m: n\n",
    "a:\n  b:\n    c: d\n    e: [f, {g: h}]\n",
    "a: [b, c,]\nd: {e: f,}\ng: []\nh: {}\ni: [[], {}]\n",
    "a: [x:y, http://u:80/v, a#b, -c, a b  c]\n",
    "a: {b, c: 1, d: , 'e': f, \"g\": h}\n",
    'a: {"b":1, "c":"d", "e":[1,2]}\n',
    "a: [\n  b,\n  c # d\n]\n",
    "a: {\n  b: c,\n  d:\n    e\n}\n",
    "a: b\n  c\n\n  d\ne: f\n",
    "a: \"b\n  c\n\n  d\\\n  e\"\nf: 'g\n  h'\n",
    "a: |\n  b\n   c\n\n  d\n\ne: >\n  f\n  g\n\n  h\n   i\n  j\nk: |-\n  l\nm: |+\n  n\n\no: >-\n  p\n",
    'a: "\\0\\a\\b\\t\\n\\v\\f\\r\\e\\"\\/\\\\\\N\\_\\L\\P\\x41\\u00e9\\U0001f525\\ "\n',
    "a: 'it''s'\nb: ''''\nc: '\"'\n",
    "'a b': c\n\"d\": e\nf g: h\n\u00e9: \U0001f525\n",
    '"1": a\n\'null\': b\n"": c\n',
    "__proto__: a\nconstructor: {__proto__: b}\ntoString: c\n",
    "<<: {a: b}\n",
    "---\na: b\n",
    "---\na: b\n...\n",
    "# only a comment before\n\n\na: b\n\n\n# and after\n",
    "a: b\r\nc:\r\n  - d\r\n  - |\r\n    e\r\n    f\r\n",
    "a: ...\nb: ---\nc: -\nd: --- e\nf: a-b\n",
    "a: -b\n",
    "a: b!\nc: d&e\nf: g*h\ni: j%k\nl: m@n\no: p|q\nr: s>t\n",
    "b: 'x'\na: 'y'\nz: 1\n",
    "a: \xa0b\xa0\n",
    '{"a": "b"}',
    ' \n\t{"a":1,\r"b":[true,false,null,-3,0],"c":{"d":{}}}\n',
    '{\r\n"a": "\\ud83d\\udd25 \\u00e9 / \\/ \\u2028 \u2028 \x7f \x85 \ufeff",\r\n\t"b": [\n]}',
    '{"' + "k" * 1021 + '": 1}',
    '{"__proto__": {"a": 1}, "constructor": 2}',
    '{\n\t"a": {\n\t\t"b"\t:\t1\n\t}\t}\t',
    "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1),
    "a: $${b} $b '{c}'\n",
]
"""Read alike by the page and the library."""

NARROW = [
    "a: \"b\tc\"\nd: 'e\tf' # g\th\n",
    "a: |\n  b\tc\n  d # e\n  - f\n",
    "a: >-\n  b\n  c",
    "a: |+\n  b",
    "a: |\n  b",
    "%YAML 1.2\n---\na: b\n",
    "? a\n: b\n",
    "a: [b: c]\n",
    "a: [?b]\n",
    "a: ?b\n",
    "a: :b\n",
    "a: [b:]\n",
    "a: [x,\ty]\n",
    "a: b # c\td\n",
    "a: |2\n   b\n",
    "a: |\n  b\n    \n  c\n",
    "a: |\n  b\n  \nc: d\n",
    "a:\n  b: |\n    c\n  \n",
    "a: >\n  b\n  \n",
    "a: b\rc: d\n",
    "a: b\u2028c\n",
    "a: b\x85\n",
    "a: b\ufeffc\n",
]
"""Read by the library alone: the page says YAML_SUBSET."""

REFUSED = [
    "",
    "# nothing\n",
    "just words\n",
    "- a\n",
    "[]\n",
    "---\n",
    "a: b\n---\nc: d\n",
    "a: b\na: c\n",
    "a:\n  b: 1\n  c: {d: 1, d: 2}\n",
    '{"a": 1,\n"b": {"c": 1, "c": 2}}',
    "a: 1.5\n",
    "price:\n  max_total: 0.60\n",
    "a: [1, 0x1F]\n",
    "a: 010\n",
    "a: 1_000\n",
    "a: 1e5\n",
    "a: +1\n",
    "a: .5\n",
    "a: .inf\n",
    "a: -.INF\n",
    "a: .NaN\n",
    "a: 0o17\n",
    "a: 1.\n",
    "a: 1000000000000000000\n",
    "version: 1.0\narray: {units: 1e3}\n",
    "array: {units: 1e3}\nretry: {attempts: 1.5}\n",
    "verify: {replicas: 0x2}\n",
    '{"a": 1.5}',
    '{"a":\n [1e5]}',
    "1: a\n",
    "a: {true: b}\n",
    "~: a\n",
    "1.5: a\n",
    ": a\n",
    "a: &b c\n",
    "a: &b {c: d}\n",
    "&a b: c\n",
    "a: *b\n",
    "a: !b c\n",
    "a: !!str c\n",
    "a: !!map {b: c}\n",
    "!a b: c\n",
    "[a]: b\n",
    "{a: b}: c\n",
    "a: {[b]: c}\n",
    "{a: b}",
    '{"a": 1,}',
    '{"a": 1} x',
    '{"a"\n: 1}',
    '{"' + "k" * 1030 + '": 1}',
    '{"a": "\\ud800"}',
    '{"a": "\\udd25\\ud83d"}',
    'a: "\\ud800"\n',
    'a: "\\ud83d\\udd25"\n',
    'a: "\\U00110000"\n',
    'a: "\\q"\n',
    'a: "b\n',
    "a: 'b\n",
    "a: 'b''\n",
    "a: 'b''",
    'a: "b\\"',
    'a: ["b" "c", 1.5]\n',
    'a: "b\\"\n',
    "a: [b\n",
    "a: {b: c\n",
    "a: [b]]\n",
    "a: [,]\n",
    "a: {,}\n",
    'a: ["b" "c"]\n',
    "a: b: c\n",
    "a: - b\n",
    "a: b\n  c: d\n",
    "a:\n  b: c\n d: e\n",
    "a: @b\n",
    "a: `b`\n",
    "a: %b\n",
    "a: \x00\n",
    "a: \x07\n",
    "a: \x1b[1m\n",
    "a: \x7f\n",
    "a: \uffff\n",
    "\ta: b\n",
    "a:\n\tb: c\n",
    "a:\tb\n",
    "a: b\t\n",
    "a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH,
    "a: " + "[" * 40,
    '{"a":' * 40,
    '{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
    "a: &x [1]\nb: &y [*x, *x]\nc: [*y, *y]\n",
    "\ufeff\ufeffa: b: c\n",
]
"""Refused by both, with the same code."""

VARIABLES: list[tuple[str, dict[str, str]]] = [
    ("a: ${X}\n", {"X": "1"}),
    ("a: ${X}\nb: [${X}, '${Y}']\n", {"X": "x", "Y": "null\nimage: y"}),
    ("a: '${X}${Y}'\nb: \"${X}\"\nc: |\n  ${X}\n", {"X": "$${Y}", "Y": "${X}"}),
    ("a: $${X} $X ${_a1}\n", {"_a1": ""}),
    ("a: ${X}\n", {}),
    ("a: ${X}\nb: '${Y}'\n", {"Z": "", "A": ""}),
    ("a: b\n", {"X": "1", "\U0001f525": "", "\uffff": ""}),
    ("a: '${X:-y}'\n", {}),
    ("a: '${'\n", {}),
    ("a: '${} ${X'\nb: 1\n", {"X": ""}),
    ("${X}: a\n", {}),
    ('{"a": "${X}", "b": ["${X}", 1]}', {"X": '"'}),
    ("a: $${\n", {}),
    ("a: '${X }'\n", {"X": ""}),
]


def cases() -> dict[str, Any]:
    """Return the fixed texts with what they hold, and a few random ones."""
    return {
        "fixed": [
            *(_case(text, _named(text)) for text in READ),
            *({**_case(text), "narrow": True} for text in NARROW),
            *(_case(text) for text in REFUSED),
            *(_case(file_with(PLACES[0], written)) for written in WRITTEN),
            *(_case(text, given) for text, given in VARIABLES),
        ],
        **drawn("yaml", 30),
    }


def drawn(seed: str, count: int) -> dict[str, Any]:
    """Return texts drawn at random from a seed, with what they hold."""
    paths = [*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("hearth/local/templates/*/job.yaml")]
    texts = [path.read_text(encoding="utf-8") for path in sorted([*paths, *ROOT.glob("tests/data/peers/*.yaml")])]
    return {"random": list(_random(random.Random(seed), texts, count))}


def _named(text: str) -> dict[str, str]:
    return dict.fromkeys(sorted(set(re.findall(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}", text))), "V")


def _case(text: str, variables: dict[str, str] | None = None) -> dict[str, Any]:
    case: dict[str, Any] = {"text": text, **({"variables": variables} if variables else {})}
    try:
        value, _ = read_text(text.encode(), _NAME, variables=variables)
    except SpecError as error:
        return {**case, "code": error.code}
    return {**case, "value": told(value)}


def told(value: Any) -> Any:
    """Return a value as JSON that keeps whole numbers of any size and the order of mappings."""
    if isinstance(value, dict):
        return {"map": [[key, told(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return [told(item) for item in value]
    return {"whole": str(value)} if isinstance(value, int) and not isinstance(value, bool) else value


_PLAIN = ("a", "b", "name", "x y", "-1", "0", "true", "null", "yes", "-x", "a:b", "a#b", "http://x:80/y", "a  b", "a-")
_QUOTED = ("'s'", '"a b"', '"\\n"', '"\\u0041"', '""', "''", "'it''s'", '"a\n          b"', "'a\n\n          b'", '"#"')
_ODD = (
    *("-", "?", ":", "#", "1", "007", "1.5", "0x1", "1e3", "~", ".inf", "?x", ":x", "a #b", "[a]", "[a, b]", "{a: 1}"),
    *('{"a":1}', "[]", "{}", ">", ">-", "&x", "*x", "!t", "@a", "`a`", "%a", "\u00e9", "\U0001f525", "a\\b", "a,b"),
    *("a]b", "--- ", "...", "- a", '"', "'", "{", "}", "[", "]", ",", "=", "<<", "a?", "a:", '"a": b', '"a":b', " #c"),
)
_WORDS = (*_PLAIN * 4, *_QUOTED * 3, *_ODD)
_KEYS = (
    *("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "name", '"q"', "'s'", "x y", "-a", "a#b"),
    *("?a", "1", "null", "\u00e9", '"a\\n"', "a,b", "[a]", "{a}", "a ", "<<", "\U0001f525"),
)
_LINES = ("x", "x y", "- a", "a: b", "# c", "", "", "x\ty", "x ", "  y", "x", "y", " ")


def _random(source: random.Random, texts: list[str], count: int) -> Iterable[dict[str, Any]]:
    """Yield texts of a grammar of YAML's corners, and job files with characters taken out or put in."""
    grammar = _Grammar(source)
    made = 0
    while made < count:
        draw = source.random()
        if draw < 0.6:
            text = grammar.mapping(0, 0)
        elif draw < 0.8:
            text = _spoil(source, grammar.mapping(0, 0))
        else:
            text = _spoil(source, source.choice([text for text in texts if len(text) < 900]))
        if source.random() < 0.2:
            text = text.rstrip("\n")
        made += 1
        yield _case(text, _named(text))


class _Grammar:
    """Makes the text of values: block and flow collections, scalars of each style, each of them odd at times."""

    def __init__(self, source: random.Random) -> None:
        self._pick: Callable[[Sequence[str]], str] = source.choice
        self._draw = source.random
        self._below = source.randrange

    def mapping(self, indent: int, depth: int) -> str:
        """Return the lines of a mapping."""
        return "".join(
            f"{' ' * indent}{self._pick(_KEYS)}:{self._node(indent, depth + 1)}" for _ in range(1 + self._below(3))
        )

    def _node(self, indent: int, depth: int) -> str:
        draw = self._draw()
        deeper = indent + 1 + self._below(4)
        if depth > 3 or draw < 0.45:
            return f" {self._pick(_WORDS)}{self._pick(('', '', '', ' ', ' # c'))}\n"
        if draw < 0.6:
            return f"\n{self.mapping(deeper, depth)}"
        if draw < 0.72:
            at = indent if self._below(2) else deeper
            return "\n" + "".join(f"{' ' * at}-{self._node(at + 2, depth + 1)}" for _ in range(1 + self._below(3)))
        if draw < 0.88:
            return f" {self._flow(depth)}\n"
        lines = "".join(f"{' ' * deeper}{self._pick(_LINES)}\n" for _ in range(self._below(5)))
        return f" {self._pick('|>')}{self._pick(('', '', '-', '+', '1', ' # c'))}\n{lines}"

    def _flow(self, depth: int) -> str:
        draw = self._draw()
        if depth > 4 or draw < 0.3:
            return self._pick(_WORDS)
        inner = [self._flow(depth + 1) for _ in range(self._below(4))]
        opening, closing = "[]" if draw < 0.65 else "{}"
        if opening == "{" or self._draw() < 0.1:
            inner = [f"{self._pick(_KEYS)}{self._pick((': ', ': ', ':', ' : '))}{item}" for item in inner]
        return (
            opening
            + self._pick((", ", ", ", ",", ",\n  ", "\n  , ")).join(inner)
            + self._pick(("", "", ",", "\n  "))
            + closing
        )


def _spoil(source: random.Random, text: str) -> str:
    """Return a text with a few characters taken out or put in."""
    characters = list(text)
    for _ in range(source.choice((1, 1, 2, 3))):
        at = source.randrange(len(characters) + 1)
        if source.random() < 0.4:
            del characters[at : at + source.choice((1, 1, 2, 5))]
        else:
            characters[at:at] = list(source.choice([*"\n\t:-?#\"'[]{},|>&*!%@\\", *_WORDS, "\r\n", "\n  ", "\n---\n"]))
    return "".join(characters)
