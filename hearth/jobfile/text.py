"""Read the text of a spec, YAML 1.2 or JSON, into plain values that know their lines.

The reader is strict where YAML is generous, because a spec carries ids, digests and money: a value that YAML would
turn into a number other than a plain integer must be quoted, a key stands once, anchors, aliases, tags and more than
one document are refused, and size and nesting are bounded. Source: YAML 1.2.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hearth.base.errors import SpecError
from hearth.base.untrusted_json import refuse_deep
from hearth.jobfile import rules
from hearth.jobfile.examples import EXAMPLES
from hearth.jobfile.problems import Location, Problem, Source

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_VALUES = 100_000

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
# What YAML 1.1 or 1.2 makes a number of, beyond plain integers: decimals, exponents, hex, octal, leading zeros.
_NUMBER = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?"
    r"|\.(inf|Inf|INF))|\.(nan|NaN|NAN)"
)
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{[^}]*\}?")


_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows in a string and YAML's reader does not take as they are."""


def escape_unprintable(text: str) -> str:
    """Return quoted text with the characters written as \\uXXXX that YAML has only in this form."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not been read; `key` waits for its value."""

    where: Location
    items: dict[str, Any] | list[Any]
    key: str | None = None


def read_text(raw: bytes, name: str, *, variables: Mapping[str, str] | None = None) -> tuple[Any, Source]:
    """Return the value that `raw` holds, with `${NAME}` replaced, and where each part of it stands.

    A replaced value is always a string, and is not searched again; `$${` stands for a literal `${`. Text that starts
    with "{" must be JSON. Raises SpecError for everything else, with file and line.
    """
    if len(raw) > MAX_BYTES:
        raise _refuse(name, None, f"has {len(raw)} bytes; a spec has at most {MAX_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refuse(name, raw[: error.start].count(b"\n") + 1, "is not UTF-8 text") from error
    is_json = text.lstrip(" \t\r\n").startswith("{")
    if is_json:
        _check_json(text, name)
        # Inside valid JSON a tab is white space only, which YAML's reader, used for the lines, does not always take.
        text = escape_unprintable(text.replace("\t", " "))
    value, source = _Builder(name, is_json).build(text)
    return _substitute(value, source, dict(variables or {})), source


def _check_json(text: str, name: str) -> None:
    try:
        refuse_deep(text.encode(), MAX_DEPTH)
        json.loads(text)
    except json.JSONDecodeError as error:
        raise _refuse(name, error.lineno, f"is not JSON: {error.msg}") from error
    except ValueError as error:
        raise _refuse(name, None, str(error).replace("it is ", "is ", 1)) from error


class _Builder:
    """Build plain values from YAML events; a stack of open collections stands in for recursion."""

    def __init__(self, name: str, is_json: bool) -> None:
        self._name = name
        self._is_json = is_json
        self._lines: dict[Location, int] = {}
        self._stack: list[_Open] = []
        self._values = 0
        self._root: Any = None

    def build(self, text: str) -> tuple[Any, Source]:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        documents = 0
        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                kind = type(event).__name__
                documents += kind == "DocumentStartEvent"
                if documents > 1:
                    raise self._refuse(event, "holds more than one document", "keep one job per file")
                self._take(kind, event)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark is not None else None
            # YAML and Python do not end a line at the same characters, and an error may stand behind the last line.
            there = "".join(text.splitlines()[line - 1 : line]) if line else ""
            hint = 'quote "${NAME}" inside [] and {}' if "${" in there else ""
            raise _refuse(self._name, line, f"is not YAML: {error.problem or error.context}", hint) from error
        except YAMLError as error:
            raise _refuse(self._name, None, f"is not YAML: {error}") from error
        except (ValueError, OverflowError) as error:  # "\U00110000" is beyond Unicode, which the reader leaves to chr()
            raise _refuse(self._name, None, "is not YAML: it holds an escape that is no character") from error
        if not isinstance(self._root, dict):
            raise _refuse(
                self._name,
                None,
                "holds no job spec: its top level is not a mapping",
                "hearth init writes a job file to start from",
            )
        return self._root, Source(self._name, self._lines)

    def _take(self, kind: str, event: Any) -> None:
        if getattr(event, "anchor", None):  # an alias has one too
            raise self._refuse(event, "uses an anchor or alias, which a spec may not", "write the value out")
        if getattr(event, "tag", None):
            raise self._refuse(event, f"uses the tag {event.tag}, which a spec may not", "remove the tag")
        if kind == "ScalarEvent":
            if self._stack and isinstance(self._stack[-1].items, dict) and self._stack[-1].key is None:
                self._take_key(event)
            else:
                where = self._next_place(event)
                self._add(where, self._scalar(event, where))
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            if self._stack and isinstance(self._stack[-1].items, dict) and self._stack[-1].key is None:
                raise self._refuse(event, "has a key that is not text", "keys are words")
            where = self._next_place(event)
            if len(where) >= MAX_DEPTH:
                raise self._refuse(event, f"is nested deeper than {MAX_DEPTH}", "", where)
            items: dict[str, Any] | list[Any] = {} if kind == "MappingStartEvent" else []
            self._add(where, items)
            self._stack.append(_Open(where, items))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._stack.pop()

    def _take_key(self, event: Any) -> None:
        top = self._stack[-1]
        where = (*top.where, self._text(event, top.where))
        if event.style is None and (_NUMBER.fullmatch(event.value) or event.value in rules.CONSTANTS):
            hint = f'quote it: "{event.value}"' if event.value in rules.CONSTANTS else "keys are words"
            raise self._refuse(event, f"has the unquoted key {event.value}", hint)
        if where in self._lines:
            raise self._refuse(
                event, f"is given twice, first on line {self._lines[where]}", "remove one", where, "DUPLICATE_KEY"
            )
        self._lines[where] = event.start_mark.line + 1
        top.key = str(where[-1])

    def _next_place(self, event: Any) -> Location:
        """Return where the value that starts here goes, and note its line."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._refuse(event, f"holds more than {MAX_VALUES} values")
        if not self._stack:
            where: Location = ()
        elif isinstance(self._stack[-1].items, dict):
            where = (*self._stack[-1].where, self._stack[-1].key or "")
        else:
            where = (*self._stack[-1].where, len(self._stack[-1].items))
        self._lines.setdefault(where, event.start_mark.line + 1)
        return where

    def _add(self, where: Location, value: Any) -> None:
        if not self._stack:
            self._root = value
        elif isinstance(self._stack[-1].items, dict):
            self._stack[-1].items[str(where[-1])] = value
            self._stack[-1].key = None
        else:
            self._stack[-1].items.append(value)

    def _scalar(self, event: Any, where: Location) -> Any:
        if event.style is not None:
            return self._text(event, where)
        text: str = event.value
        if text in rules.CONSTANTS:
            return rules.CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            from hearth.jobfile.explain import unquoted

            if where[:1] == ("env",) and len(where) > len(("env", "NAME")):
                # Quoted, it would be refused all the same: the value of a variable is one text.
                kind = "a list" if isinstance(where[2], int) else "a mapping"
                raise self._refuse(event, f"must be text, not {kind}", rules.ONE_TEXT + EXAMPLES["env.*"], where[:2])
            told = unquoted(where, text)
            raise self._refuse(event, told.message, told.hint, where, told.code)
        return text

    def _text(self, event: Any, where: Location) -> str:
        text: str = event.value
        if self._is_json:
            # JSON writes a character above U+FFFF as two escapes, which YAML's reader leaves apart.
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise self._refuse(event, "holds half a surrogate pair, which is no text", "", where)
        return text

    def _refuse(
        self, event: Any, message: str, hint: str = "", where: Location = (), code: str = "BAD_SPEC"
    ) -> SpecError:
        line = event.start_mark.line + 1
        return Source(self._name, {where: line}).refuse([Problem(where, message, hint, code)])


def _substitute(value: Any, source: Source, variables: dict[str, str]) -> Any:
    problems: list[Problem] = []
    used: set[str] = set()

    def fill(text: str, where: Location) -> str:
        def one(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            name = match[1]
            if name is None:
                problems.append(
                    Problem(where, f'"{match[0]}" names no variable', "write $${ to leave it to the job", "MISSING_VAR")
                )
                return ""
            if name not in variables:
                problems.append(
                    Problem(
                        where,
                        f"${{{name}}} has no value",
                        f"pass --var {name}=..., or write $${{{name}}} to leave it to the job",
                        "MISSING_VAR",
                    )
                )
                return ""
            used.add(name)
            return variables[name]

        return _VARIABLE.sub(one, text)

    def walk(node: Any, where: Location) -> Any:
        if isinstance(node, str):
            return fill(node, where)
        if isinstance(node, dict):
            return {key: walk(item, (*where, key)) for key, item in node.items()}
        if isinstance(node, list):
            return [walk(item, (*where, index)) for index, item in enumerate(node)]
        return node

    filled = walk(value, ())
    for name in sorted(set(variables) - used):
        problems.append(
            Problem((), f"does not use the variable {name}", f"write ${{{name}}} where its value goes", "UNUSED_VAR")
        )
    if problems:
        raise source.refuse(problems)
    return filled


def _refuse(name: str, line: int | None, message: str, hint: str = "") -> SpecError:
    return Source(name, {} if line is None else {(): line}).refuse([Problem((), message, hint)])
