"""Contract artifacts, and the encoding and decoding of calls, constructors and return values.

The artifacts are committed (hearth/market/artifacts/<Name>.json, rebuilt and compared by `make check`), so that running
needs no compiler. They are read at first use. Arguments may be given by position or by parameter name; a constructor's
are always taken by name, so that a reordered signature cannot be filled wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from hearth.base.errors import ChainError, HearthError


@dataclass(frozen=True)
class Artifact:
    """A compiled contract: its ABI, its creation code, and the bytes of its runtime code without immutables."""

    name: str
    abi: tuple[dict[str, Any], ...]
    bytecode: bytes
    runtime_size: int

    @cached_property
    def runtime(self) -> bytes:
        """Return the runtime code without immutables. Vyper's metadata stands behind it, its length last."""
        end = len(self.bytecode) - int.from_bytes(self.bytecode[-2:], "big")
        return self.bytecode[end - self.runtime_size : end]

    @cached_property
    def codec(self) -> Codec:
        """Return the codec of this ABI."""
        return Codec(self.name, self.abi)


@cache
def artifact(name: str) -> Artifact:
    """Read a committed artifact. Raises HearthError where this installation lacks it."""
    file = resources.files("hearth.market") / "artifacts" / f"{name}.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise HearthError(
            f"this installation has no contract artifact {name}", code="NO_ARTIFACT", hint="hearth doctor"
        ) from error
    return Artifact(
        raw["name"], tuple(raw["abi"]), bytes.fromhex(raw["bytecode"].removeprefix("0x")), int(raw["runtime_size"])
    )


def codec(name: str) -> Codec:
    """Return the codec of a committed artifact."""
    return artifact(name).codec


def type_of(parameter: Mapping[str, Any]) -> str:
    """Return a parameter's canonical ABI type, tuples spelled out."""
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(type_of(component) for component in parameter["components"])
    return f"({inner}){kind.removeprefix('tuple')}"


def signature_of(entry: Mapping[str, Any]) -> str:
    """Return a function's or event's canonical signature, such as "beat(uint256)"."""
    return f"{entry['name']}({','.join(type_of(p) for p in entry['inputs'])})"


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    selector: bytes
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    payable: bool


class Codec:
    """Encode and decode what one contract understands. Knows nothing of a chain."""

    def __init__(self, name: str, abi: Sequence[Mapping[str, Any]]) -> None:
        from eth_utils.crypto import keccak

        self.name = name
        self.abi = abi
        self._functions: dict[tuple[str, int], _Function] = {}
        self._by_selector: dict[bytes, _Function] = {}
        for entry in abi:
            if entry["type"] != "function":
                continue
            function = _Function(
                name=entry["name"],
                selector=keccak(text=signature_of(entry))[:4],
                names=tuple(p["name"] for p in entry["inputs"]),
                inputs=tuple(type_of(p) for p in entry["inputs"]),
                outputs=tuple(type_of(p) for p in entry["outputs"]),
                payable=entry["stateMutability"] == "payable",
            )
            self._functions[function.name, len(function.inputs)] = function
            self._by_selector[function.selector] = function

    def functions(self) -> list[str]:
        """List the functions' names, each once."""
        return list(dict.fromkeys(name for name, _ in self._functions))

    def has(self, name: str, count: int) -> bool:
        """Say whether there is a function of this name with `count` arguments."""
        return (name, count) in self._functions

    def selector(self, name: str) -> bytes:
        """Return a function's four bytes, those of its longest form."""
        forms = [f for (n, _), f in self._functions.items() if n == name]
        if not forms:
            raise ValueError(f"{self.name} has no function {name}")
        return max(forms, key=lambda f: len(f.inputs)).selector

    def _function(self, name: str, count: int) -> _Function:
        try:
            return self._functions[name, count]
        except KeyError:
            raise ValueError(f"{self.name} has no function {name} of {count} arguments") from None

    def encode(self, name: str, *args: Any, **named: Any) -> bytes:
        """Return calldata. Raises ValueError for arguments that do not fit the signature."""
        from eth_abi.exceptions import EncodingError

        from hearth.base.abi import encode

        function = self._function(name, len(args) + len(named))
        values = [*args, *self._named(function.names[len(args) :], named, name)]
        try:
            return function.selector + encode(function.inputs, values)
        except EncodingError as error:
            raise ValueError(f"{self.name}.{name}: {error}") from error

    def _named(self, names: Sequence[str], named: Mapping[str, Any], what: str) -> list[Any]:
        missing = [n for n in names if n not in named]
        unknown = [n for n in named if n not in names]
        if missing or unknown:
            raise ValueError(f"{self.name}.{what}: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}")
        return [named[n] for n in names]

    def constructor_parameters(self) -> tuple[str, ...]:
        """Return the constructor's parameter names in order."""
        entry = next((e for e in self.abi if e["type"] == "constructor"), None)
        return () if entry is None else tuple(p["name"] for p in entry["inputs"])

    def encode_constructor(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the encoded constructor arguments, each taken by its parameter's name."""
        from hearth.base.abi import encode

        names = self.constructor_parameters()
        if not names:
            return b""
        entry = next(e for e in self.abi if e["type"] == "constructor")
        missing = [n for n in names if n.strip("_") not in arguments]
        if missing:
            raise ValueError(f"{self.name}'s constructor wants {missing}, which the deployment does not name")
        return encode([type_of(p) for p in entry["inputs"]], [arguments[n.strip("_")] for n in names])

    def decode_constructor(self, data: bytes) -> dict[str, Any]:
        """Return a constructor's arguments by parameter name, addresses in lower case. Raises ValueError."""
        from eth_abi.exceptions import DecodingError

        from hearth.base.abi import decode

        kinds = [type_of(p) for e in self.abi if e["type"] == "constructor" for p in e["inputs"]]
        names = [name.strip("_") for name in self.constructor_parameters()]
        if len(data) != 32 * len(kinds):
            raise ValueError(f"{len(kinds)} arguments are {32 * len(kinds)} bytes, not {len(data)}")
        try:
            return dict(zip(names, decode(kinds, data), strict=True))
        except (DecodingError, OverflowError) as error:
            raise ValueError(str(error)) from error

    def decode_output(self, name: str, count: int, data: bytes) -> tuple[Any, ...]:
        """Decode what `name` with `count` arguments returned. Raises ChainError where it is no such answer.

        Empty data means that there is no such contract at the address.
        """
        from eth_abi.exceptions import DecodingError

        from hearth.base.abi import decode

        function = self._function(name, count)
        try:
            return decode(function.outputs, data)
        except (DecodingError, OverflowError) as error:
            raise no_answer(f"{self.name}.{name}", data) from error

    def decode_input(self, data: bytes) -> tuple[str, dict[str, Any]] | None:
        """Decode calldata to (function, arguments by name); None for a selector that the contract lacks."""
        from eth_abi.exceptions import DecodingError

        from hearth.base.abi import decode

        function = self._by_selector.get(data[:4])
        if function is None:
            return None
        try:
            values = decode(function.inputs, data[4:])
        except (DecodingError, OverflowError) as error:
            raise ValueError(f"{self.name}.{function.name}: malformed calldata") from error
        return function.name, dict(zip(function.names, values, strict=True))


def no_answer(what: str, data: bytes) -> ChainError:
    """Build the error of a contract that answers nothing, or something else than its ABI says."""
    why = "there is no contract at its address" if not data else "the answer is not what its ABI says"
    return ChainError(f"{what} did not answer: {why}", code="WRONG_CONTRACTS", retryable=False, hint="hearth doctor")
