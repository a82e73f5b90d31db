"""The library's face: what a client and each of its public methods does with arguments of a wrong type, with files that
the system refuses, and with errors that name an option of the command line.

The commands call the same methods, and speak of options: a session says who reads its errors (`Session.program`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar

from hearth.base.errors import HearthError
from hearth.base.files import refusal_of
from hearth.protocol.units import near_duration, near_rate, near_size

Class = TypeVar("Class", bound=type)
Given = ParamSpec("Given")
Returned = TypeVar("Returned")

ARGUMENTS: Final[Mapping[str, tuple[str, type]]] = {
    "--account": ("account", str),
    "--after": ("after", list),
    "--again": ("again", bool),
    "--all": ("everyone", bool),
    "--allow-outside": ("allow_outside", bool),
    "--allow-private": ("allow_private", bool),
    "--anyway": ("anyway", bool),
    "--attesters": ("attesters", str),
    "--cancel": ("cancel", bool),
    "--code": ("code", str),
    "--coin": ("coin", str),
    "--count": ("count", int),
    "--cpus": ("cpus", int),
    "--days": ("days", int),
    "--finish": ("finish", bool),
    "--gpu": ("gpu", int),
    "--kwh": ("kwh", str),
    "--limit": ("limit", int),
    "--max-rate": ("max_rate", str),
    "--max-total": ("max_total", str),
    "--memory": ("memory", str),
    "--network": ("network", str),
    "--old-password-file": ("old_password_file", str),
    "--password-file": ("password_file", str),
    "--print-tx": ("print_tx", bool),
    "--results": ("results", str),
    "--rpc": ("rpc", str),
    "--runtime": ("runtime", str),
    "--stake": ("stake", str),
    "--tier": ("tier", str),
    "--timeout": ("timeout", str),
    "--unit": ("units", list),
    "--use-credit": ("use_credit", bool),
    "--var": ("variables", dict),
    "--vram": ("vram", str),
    "--wait": ("wait", bool),
    "--watts": ("watts", int),
    "-e": ("env", dict),
    "-i": ("inputs", list),
    "-o": ("outputs", list),
}
"""What a program writes in place of an option, and as what: arguments of a client and of its methods.

What is not here is an option of a command alone.
"""
_OPTION: Final = re.compile(
    r"""
    \bhearth\ [a-z][^;,)]*                                                # a command of ours stays as it is
    | (?<![\w"-]) (--?[a-z][a-z-]*)                                      # an option, and its value where it has one
      (?: [ ] ( "[^"]*" | '[^']*' | [^\s;,)]*[./|:=][^\s;,)]+ | [A-Z][A-Z_]*\b | \d\w* | \w+(?=:[ ]) ) )?
    """,
    re.VERBOSE,
)

_WORDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "str": (lambda value: isinstance(value, str), "text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "float": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes"),
    "AnyPath": (lambda value: isinstance(value, str | os.PathLike), "a path"),
    "Tell": (callable, "a function"),
    "Callable[[str], str]": (callable, "a function"),
    "None": (lambda value: value is None, "None"),
}
_NEAR: Final[Mapping[str, Callable[[str], str]]] = {
    **dict.fromkeys(("runtime", "since", "time"), near_duration),
    **dict.fromkeys(("memory", "vram"), near_size),
    **dict.fromkeys(("max_price", "max_rate", "rate"), near_rate),
}
"""What a number may stand for, of arguments that need a unit."""
_PLAIN: Final = (str, bytes, bool, int, float, complex, list, dict, tuple, set, type(None))
"""What is no object of a class of ours."""


def refusing(cls: Class) -> Class:
    """Let a class and each of its public methods refuse what they cannot use as a program expects it.

    Arguments of a wrong type are a TypeError that names them; files that the system refuses are HearthErrors, as
    `refusal_of` words them; HearthErrors say which argument helps, not which option.
    """
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, _refusing(method))
    return cls


def require_types(where: str, named: Mapping[str, Any], annotations: Mapping[str, str]) -> None:
    """Refuse the first of some named values that is none of its annotation's types. Raises TypeError."""
    for name, value in named.items():
        fault = _fault(name, value, annotations[name])
        if fault:
            raise TypeError(f"{where}: {fault}")


def in_python(text: str) -> str:
    """Return what a text says to somebody at the command line for one who writes a program."""
    return _OPTION.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    option, value = found[1], found[2]
    if option not in ARGUMENTS:
        return found[0]
    name, kind = ARGUMENTS[option]
    if kind is bool:
        return f"{name}=True" + (f" {value}" if value else "")
    if not value:
        return name
    if kind is dict:
        key, _, rest = value.partition("=")
        return f'{name}={{"{key}": {rest or "..."}}}'
    # A value in capitals is a word for one.
    written = value[0] in "\"'" or value.isupper() or kind is int or option == "--unit"
    shown = value if written else f'"{value}"'
    return f"{name}=[{shown}]" if kind is list else f"{name}={shown}"


def _fault(name: str, value: Any, annotation: str) -> str:
    """Return how a value is none of its annotation's types, "" where it is one; of a list or mapping, which part is."""
    kinds = []
    for one in annotation.split(" | "):
        fits, words = _kind(one)
        if fits(value):
            return next(filter(None, (_fault(*part) for part in _parts(name, value, one))), "")
        kinds.append(words)
    text, whole = _WORDS["str"][1], _WORDS["int"][1]
    hint = ""
    if isinstance(value, int | float) and not isinstance(value, bool) and text in kinds and whole not in kinds:
        near = _NEAR.get(name, str)(str(value))
        hint = f': write "{near}"' if near else ""
    elif isinstance(value, set | frozenset) and any(words.startswith("a list") for words in kinds):
        hint = ": a set has no order"
    given = "None" if value is None else type(value).__name__
    return f"{name} is {' or '.join(kinds)}, not {given}{hint}"


def _parts(name: str, value: Any, annotation: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the parts of a list or mapping: what each is called, itself, and its annotation."""
    whole, _, inner = annotation.removesuffix("]").partition("[")
    if whole in ("Sequence", "tuple"):
        yield from ((f"{name}[{index}]", item, inner.removesuffix(", ...")) for index, item in enumerate(value))
    if whole == "Mapping":
        of_key, of_value = inner.split(", ")
        for key, item in value.items():
            yield f"a key of {name}", key, of_key
            yield f"{name}[{key!r}]", item, of_value


def _kind(annotation: str) -> tuple[Callable[[Any], bool], str]:
    """Return what says whether a value is of one type of an annotation, its parts aside, and that type in words."""
    if annotation in _WORDS:
        return _WORDS[annotation]
    whole, _, inner = annotation.partition("[")
    if whole == "Mapping":
        return lambda value: isinstance(value, Mapping), "a mapping"
    if whole in ("Sequence", "tuple"):
        words = _kind(inner.removesuffix("]").removesuffix(", ..."))[1]
        return (
            lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes),
            f"a list, of which each is {words}",
        )
    if whole == "AnyJob":
        return lambda value: True, ""  # `spec_of` refuses it
    return lambda value: not isinstance(value, _PLAIN), f"a {whole}"


def _refusing(method: Callable[Given, Returned]) -> Callable[Given, Returned]:
    types: dict[str, str] = {}
    where = method.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(method)
    def call(*given: Given.args, **named: Given.kwargs) -> Returned:
        if not types:
            types.update(_types_of(method))
        # Such as there are too many or too few of, Python refuses itself.
        arguments = {**dict(zip(types, given[1:], strict=False)), **named}
        require_types(where, {name: arguments[name] for name in types if name in arguments}, types)
        try:
            return method(*given, **named)
        except BrokenPipeError:
            # No file: whoever hears of progress has gone.
            raise
        except OSError as error:
            raise _spoken(refusal_of(error), given[0]) from error
        except HearthError as error:
            _spoken(error, given[0])
            raise

    return call


def _types_of(method: Callable[..., object]) -> dict[str, str]:
    """Return the annotations of a method's own arguments, in their order."""
    found = list(signature(method).parameters.values())[1:]
    return {one.name: one.annotation for one in found if one.kind is not one.VAR_KEYWORD}


def _spoken(error: HearthError, owner: Any) -> HearthError:
    # An owner without a session is a client in the making, of a program's.
    session = getattr(owner, "session", None)
    if session is None or getattr(session, "program", False):
        error.message, error.hint = in_python(error.message), in_python(error.hint)
        error.args = (error.message,)
    return error
