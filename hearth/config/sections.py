"""What worker.toml and keeper.toml have in common: fields that are checked as text, sections, and how a file is read.

Every refusal names the file and each field at fault, an unknown key with the nearest known one. Durations, sizes and
gas prices stay the text that the owner wrote until they are used.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, field_validator

from hearth.base.addresses import gateway_fault
from hearth.base.errors import ConfigError, HearthError
from hearth.base.files import expand, is_path, read_bounded
from hearth.base.text import brief
from hearth.base.urls import redact_url
from hearth.config.settings import MAX_FILE_BYTES
from hearth.protocol import units
from hearth.protocol.units import Asset

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGEST: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_GWEI: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?gwei")
_NAME: Final = re.compile(r"[0-9A-Za-z._-]{1,253}")
_LISTEN: Final = re.compile(r"(.+):(\d{1,5})")


class Section(BaseModel):
    """A table of a settings file: an unknown key is a mistake, and nothing changes after the reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Section)
UNLIMITED: Final = "unlimited"
LogLevel = Literal["debug", "info", "warning", "error"]


def gas_price(text: str) -> int:
    """Return the wei of a price per gas such as "50.5 gwei". Raises ConfigError."""
    match = _GWEI.fullmatch(text)
    if match is None:
        raise ConfigError(f'"{text}" is not a gas price', hint='write "200 gwei"')
    return units.parse_amount(match[1], Asset("gwei", 9))


def reads(parse: Callable[[str], object]) -> AfterValidator:
    """Check a text with a parser that raises HearthError, whose message becomes the field's."""

    def check(text: str) -> str:
        try:
            parse(text)
        except HearthError as error:
            raise ValueError(f"{error.message} ({error.hint})") from error
        return text

    return AfterValidator(check)


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f'"{text}" is not an address: 0x and 40 hex digits')
    return text.lower()


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise ValueError(f'"{text}" is no digest: 0x and 64 hex digits')
    return text.lower()


def _amount(text: str) -> None:
    if text:
        units.split_amount(text)


def _most(text: str) -> None:
    if text != UNLIMITED:
        _amount(text)


def _rate(text: str) -> None:
    units.split_amount(units.split_rate(text)[0])


def _rate_or_none(text: str) -> None:
    if text:
        _rate(text)


def _network(text: str) -> str:
    return str(expand(Path(text))) if is_path(text) else text


def _rpc(text: str) -> str:
    """Refuse what is no address of a provider; a host and its port without http:// are told in full."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and not any(character.isspace() for character in text)
    except ValueError:
        good = False
    if not good:
        bare = re.match(r"[\w.-]+:\d{1,5}(?=/|$)", text)
        # What is neither may be a key.
        shown = bare[0] if bare else redact_url(text) if "://" in text else "this"
        wanted = f"http://{bare[0]}" if bare else "http://HOST:PORT"
        raise ValueError(f"{shown} is no RPC address: write {wanted}")
    return text


def _gateway(text: str) -> str:
    fault = gateway_fault(text)
    if fault:
        raise ValueError(f"{redact_url(text)}: {fault}")
    return text


def _host_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f'"{text}" is no name of a host: write it without a port, "worker1.example"')
    return text.lower()


Address = Annotated[str, AfterValidator(_address)]
Digest = Annotated[str, AfterValidator(_digest)]
"""32 bytes, as 0x and 64 hex digits."""
Amount = Annotated[str, reads(_amount)]
"""An amount by its form, or an empty text; which unit and how many decimals it may have, the market's asset says."""
AmountOrUnlimited = Annotated[str, reads(_most)]
Rate = Annotated[str, reads(_rate)]
RateOrNone = Annotated[str, reads(_rate_or_none)]
Duration = Annotated[str, reads(units.parse_duration)]
Size = Annotated[str, reads(units.parse_size)]
GasPrice = Annotated[str, reads(gas_price)]
UserPath = Annotated[Path, AfterValidator(expand)]
Network = Annotated[str, AfterValidator(_network)]
"""A network's name, or the path of its file."""
HostName = Annotated[str, AfterValidator(_host_name)]
"""A name of a host, in lower case, without a port."""
GatewayUrl = Annotated[str, AfterValidator(_gateway)]
"""The address of a gateway that anybody may be sent to."""
RpcUrl = Annotated[str, AfterValidator(_rpc)]
"""The address of a provider of the chain, which may hold a key: a field of them is shown in no repr."""


class Served(Section):
    """Where a program serves something over HTTP; an empty address serves nothing."""

    listen: str = ""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, text: str) -> str:
        match = _LISTEN.fullmatch(text)
        if text and (match is None or int(match[2]) > 65_535):
            raise ValueError(f'"{text}" is not HOST:PORT')
        return text

    @property
    def address(self) -> tuple[str, int] | None:
        """Return (host, port), of an IPv6 address without its brackets, or None where nothing is served."""
        host, _, port = self.listen.rpartition(":")
        return (host.removeprefix("[").removesuffix("]"), int(port)) if self.listen else None


class MetricsSettings(Served):
    """Where Prometheus metrics and probes are served; an empty address serves none.

    `hosts` are names by which they may be asked beside addresses, localhost and this machine's own name.
    """

    hosts: tuple[HostName, ...] = ()


def coins(text: str) -> str:
    """Check an amount of the native coin, or an empty text. Raises ValueError."""
    if text:
        try:
            units.parse_amount(text, units.NATIVE)
        except HearthError as error:
            raise ValueError(f"{error.message} ({error.hint})") from error
    return text


def amount(text: str, asset: Asset, field: str, *, hint: str) -> int:
    """Return the base units of a field, once the market's asset is known. Raises ConfigError that names the field."""
    try:
        return units.parse_amount(text, asset)
    except HearthError as error:
        raise refusal(field, f"{error.message} ({error.hint})", hint=hint) from error


def refusal(field: str, why: str, *, hint: str) -> ConfigError:
    """Return the error of a field that is at fault only beside the machine or the market."""
    return ConfigError(f"{field}: {why}", hint=hint, field=field)


def toml(value: object) -> str:
    """Return a text, a number or a list of texts as TOML, whose basic strings are JSON's: but it has no DEL as it is,
    and no pair of surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def absolute(path: Path, folder: Path) -> Path:
    """Return a path of a settings file that lies in `folder`."""
    return folder / path


def with_absolute(section: S, folder: Path, *names: str) -> S:
    """Return a section whose paths of these names are absolute; one that was left out stays so."""
    paths = {name: path for name in names if (path := getattr(section, name)) is not None}
    return section.model_copy(update={name: absolute(path, folder) for name, path in paths.items()})


def network_of(text: str, folder: Path) -> str:
    """Return a network's name as it is, the path of a network file as an absolute one."""
    return str(absolute(Path(text), folder)) if is_path(text) else text


def read_toml(
    path: Path, *, start: str, then: str, vouch: Callable[[Path, bytes], None] | None = None
) -> dict[str, Any]:
    """Return a settings file as it stands. Raises ConfigError, NO_CONFIG where there is none.

    `start` is the command that writes one, `then` the one that says whether it is right once it was mended. `vouch`
    refuses what may not be used, of the very bytes that are: what lies there a moment later may be another's.
    """
    try:
        raw = read_bounded(path, MAX_FILE_BYTES)
        if vouch is not None:
            vouch(path, raw)
        if len(raw) > MAX_FILE_BYTES:
            raise ValueError(f"it has more than {MAX_FILE_BYTES} bytes")
        return tomllib.loads(raw.decode())
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {path}", hint=start, code="NO_CONFIG") from error
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no TOML, no UTF-8, a number of 5,000 digits
        raise ConfigError(f"{path} cannot be read: {error}", hint=f"mend {path}, then {then}") from error


def check(model: type[S], data: dict[str, Any], path: Path, *, then: str) -> S:
    """Return the checked content of the settings file at `path`. Raises ConfigError with every field at fault.

    `then` is the command that says whether the file is right once it was mended.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = _problems(model, error.errors(include_url=False))
        said, them = (problems[0], "it") if len(problems) == 1 else (f"{len(problems)} things are wrong", "them")
        listed = [] if len(problems) == 1 else [f"  {problem}" for problem in problems]
        hint = f"mend {them} in {path}, then {then}"
        raise ConfigError(f"{path}: {said}", also=listed, hint=hint, problems=problems) from error


def _problems(model: type[Section], items: Sequence[Any]) -> list[str]:
    """Say in one clause a field what is wrong with it."""
    found: dict[str, str] = {}
    for item in items:
        # A field that may be of two kinds has a fault for each, whose place ends in the kind: "tuple[str, ...]".
        place = list(itertools.takewhile(lambda part: "[" not in str(part), item["loc"]))
        where = ".".join(str(part) for part in place) or "the file"
        if item["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(place[-1]), _keys(model, tuple(place[:-1])), n=1)
            found[where] = "there is no such key" + (f", did you mean {near[0]}?" if near else "")
        elif len(place) < len(item["loc"]):
            found.setdefault(where, f"{_fault(item)}, and no list of texts")
        else:
            found[where] = _fault(item)
    return [f"{where}: {why}" for where, why in found.items()]


def _fault(item: Any) -> str:
    """Say what is wrong with a value, in the words of who writes TOML."""
    kind, given, limits = item["type"], item["input"], item.get("ctx", {})
    shown = brief(json.dumps(given, default=str))
    number = isinstance(given, int | float) and not isinstance(given, bool)
    said = {
        "missing": "it is missing",
        "string_type": f'{shown} is no text: write "{shown}"' if number else f"{shown} is no text",
        "path_type": f"{shown} is no path: write it in quotes",
        "tuple_type": f"{shown} is no list: write [{shown}]",
        "model_type": f"{shown} is no section: its keys stand below [{item['loc'][-1] if item['loc'] else ''}]",
        "literal_error": f"{shown} is none of {limits.get('expected', '')}".replace("'", '"'),
        "greater_than": f"{shown} is not above {limits.get('gt')}",
        "greater_than_equal": f"{shown} is below {limits.get('ge')}",
        "less_than": f"{shown} is not below {limits.get('lt')}",
        "less_than_equal": f"{shown} is above {limits.get('le')}",
    }
    kinds = {"int": "no whole number", "float": "no number", "bool": "neither true nor false"}
    said |= {f"{name}_{how}": f"{shown} is {why}" for name, why in kinds.items() for how in ("type", "parsing")}
    said["int_from_float"] = said["int_type"]
    told: str = said.get(kind) or item["msg"].removeprefix("Value error, ")
    return told


def _keys(model: Any, path: tuple[Any, ...]) -> list[str]:
    """Return the keys of the section at `path`; one that may be left out is annotated as `Section | None`."""
    for part in path:
        kind = model.model_fields[part].annotation
        model = next((one for one in getattr(kind, "__args__", ()) if one is not type(None)), kind)
    return list(model.model_fields)
