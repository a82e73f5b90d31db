"""Settings of the command line and the Python API: one frozen object, built once from five layers.

A flag wins over the environment (HEARTH_NETWORK, ...), that over the project's hearth.toml, that over the user's
config.toml, that over what networks/<name>.json says; each value remembers where it came from. State (keys, journals,
blocks) lives in the home folder: HEARTH_HOME, or the platform's data folder. With HEARTH_HOME set, the user's file is
config.toml in it, so that one variable separates two installations.

Secrets are never values here: a password and an RPC URL with a key in it are named by file (`password_file`,
`rpc_file`), and `repr` shows no path of a URL.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from hearth.base.errors import ConfigError, HearthError, UsageError
from hearth.base.files import check_private, expand, is_path
from hearth.base.urls import redact_url
from hearth.protocol.units import Asset, parse_duration

if TYPE_CHECKING:
    from hearth.market.network import Network

PROJECT_FILE = "hearth.toml"
USER_FILE = "config.toml"
ENV_PREFIX = "HEARTH_"
DEFAULT_NETWORK = "devnet"
DEFAULT_TIMEOUT = 600
MAX_FILE_BYTES = 1 << 20

NETWORK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
"""What a network may be called, here and where its file is written: no path, no hidden file."""
_SECRETS = ("password", "private_key", "mnemonic", "key")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a command is told from outside.

    `network` is a name or the path of a network file; `rpc` are URLs in order of preference, empty for the network
    file's; `timeout` is in seconds; `store` is "folder" or the API address of a Kubo; `origins` names the layer of
    each value that is not a default.
    """

    home: Path
    project: Path | None = None
    network: str = DEFAULT_NETWORK
    account: str | None = None
    password_file: Path | None = None
    rpc: tuple[str, ...] = field(default=(), repr=False)
    timeout: int = DEFAULT_TIMEOUT
    store: str = "folder"
    gateways: tuple[str, ...] = field(default=(), repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys_folder(self) -> Path:
        """Return the folder of the key files."""
        return self.home / "keys"

    def for_program(self, network: str, rpc: tuple[str, ...]) -> Settings:
        """Return these for a look at a program, whose settings file names its market and whom it asks.

        What the command line, or whoever made these, chose stays; environment and settings files give way.
        """
        if self._chosen("network", DEFAULT_NETWORK) or self._chosen("rpc", ()):
            return self
        return replace(self, network=network, rpc=rpc or self.rpc)

    def _chosen(self, name: str, default: object) -> bool:
        return getattr(self, name) != default and self.origins.get(name, "--").startswith("--")

    def shown(self) -> dict[str, str]:
        """Return each setting as text that is safe to print: URLs are cut down to their host."""
        return {
            "home": str(self.home),
            "network": self.network,
            "account": self.account or "",
            "password_file": str(self.password_file or ""),
            "rpc": ", ".join(map(redact_url, self.rpc)),
            "timeout": str(self.timeout),
            "store": redact_url(self.store) if "://" in self.store else self.store,
            "gateways": ", ".join(map(redact_url, self.gateways)),
        }


class _Given(NamedTuple):
    """A value of one layer: what it says, who says it, and the folder that its paths start from."""

    value: object
    origin: str
    folder: Path


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Return the settings; `flags` are those of the command line, None where one was not given.

    Raises ConfigError with the layer and the key for what is unknown, malformed or a secret in the open.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    home = home_folder(environ)
    project = _project_file(cwd)
    layers = [
        _from_flags(flags or {}, cwd),
        _from_environment(environ, cwd),
        _from_file(project) if project is not None else {},
        _from_file(_user_file(environ, home)),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        if "rpc" in layer and "rpc_file" in layer:
            raise _refuse(layer["rpc_file"], "rpc_file", "stands beside rpc", "keep one of them")
        for name, given in layer.items():
            target = "rpc" if name == "rpc_file" else name
            if target not in values:
                values[target] = _PARSERS[name](name, given)
                origins[target] = given.origin
    return Settings(home=home, project=project, origins=origins, **values)


def home_folder(environ: Mapping[str, str]) -> Path:
    """Return the state folder; it need not exist. HEARTH_HOME must be absolute."""
    named = environ.get("HEARTH_HOME")
    if not named:
        import platformdirs

        return platformdirs.user_data_path("hearth", appauthor=False)
    try:
        path = expand(Path(named))
    except ValueError as error:
        raise ConfigError(f"HEARTH_HOME={named}: {error}", hint="export HEARTH_HOME=$PWD/...") from error
    if not path.is_absolute():
        raise ConfigError(f"HEARTH_HOME={named} is not an absolute path", hint="export HEARTH_HOME=$PWD/...")
    return path


def network_file(settings: Settings) -> Path:
    """Return the file of the chosen network: a path as given, else <name>.json of the first folder that has it.

    The folders are networks/ in the home folder, beside the project's hearth.toml, and in the working folder: that of a
    clone is where scripts/deploy.py writes. In the latter two, it must be the user's own or root's.
    Raises ConfigError NO_NETWORK with the names that exist, FOREIGN_FILE.
    """
    name = settings.network
    if is_path(name):
        return Path(name)
    folders = [settings.home / "networks"]
    if settings.project is not None:
        folders.append(settings.project.parent / "networks")
    folders.append(Path("networks").absolute())
    for folder in folders:
        path = folder / f"{name}.json"
        if path.is_file():
            if folder != folders[0]:
                _refuse_foreign(path, folder.parent)
            return path
    known = sorted({path.stem for folder in folders for path in folder.glob("*.json")})
    hint = "hearth devnet up" if name == DEFAULT_NETWORK else _did_you_mean(name, known) or "use --network FILE"
    raise ConfigError(
        f"there is no network {name}: known are {', '.join(known) or 'none'}", hint=hint, code="NO_NETWORK"
    )


def open_network(settings: Settings) -> Network:
    """Read the chosen network's file, strictly: a key that it does not have is a mistake, not an extension."""
    from hearth.base.strangers import read_json
    from hearth.market.network import load_network

    path = network_file(settings)
    network = load_network(path)
    raw = read_json(path.read_bytes())
    _refuse_unknown(raw, network.as_dict(), str(path), "")
    return network


def rpc_urls(settings: Settings, network: Network) -> tuple[str, ...]:
    """Return the URLs to try, in order: the user's, else the network file's. Raises ConfigError NO_RPC for none."""
    urls = settings.rpc or network.rpc
    if not urls:
        raise ConfigError(f"network {network.name} names no RPC", hint="use --rpc URL", code="NO_RPC")
    return urls


def asset_of(network: Network) -> Asset:
    """Return the network's asset as the units module takes it."""
    return Asset(network.asset.symbol, network.asset.decimals, network.asset.address)


# ---- one layer each ----


def _from_flags(flags: Mapping[str, object], cwd: Path) -> dict[str, _Given]:
    layer = {}
    for name, value in flags.items():
        if name not in _PARSERS:
            raise ConfigError(f"{name} is not a setting", hint=_did_you_mean(name, list(_PARSERS)) or "hearth --help")
        if value is not None:
            layer[name] = _Given(value, f"--{name.replace('_', '-')}", cwd)
    return layer


def _from_environment(environ: Mapping[str, str], cwd: Path) -> dict[str, _Given]:
    layer = {}
    known = [ENV_PREFIX + name.upper() for name in _PARSERS]
    for variable in sorted(environ):
        name = variable.removeprefix(ENV_PREFIX).lower()
        if not variable.startswith(ENV_PREFIX) or variable == "HEARTH_HOME" or not environ[variable]:
            continue
        if name in _SECRETS:
            raise ConfigError(
                f"{variable} would hand a secret to every program that this one starts",
                hint=f"write it to a file of mode 600 and use {ENV_PREFIX}PASSWORD_FILE",
                code="SECRET_IN_ENV",
            )
        if name in _PARSERS:
            layer[name] = _Given(environ[variable], variable, cwd)
        elif near := difflib.get_close_matches(variable, known, n=1, cutoff=0.85):
            # Other programs of ours have variables of their own, so only a near miss is taken for a mistake.
            raise ConfigError(f"{variable} is not a setting", hint=f'did you mean "{near[0]}"?', code="UNKNOWN_KEY")
    return layer


def _from_file(path: Path) -> dict[str, _Given]:
    import tomllib

    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes", hint="hearth init")
    try:
        data = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:  # ValueError: no TOML, no UTF-8, a number of 5,000 digits
        raise ConfigError(f"{path} is not TOML: {error}", hint="hearth init writes a file to start from") from error
    layer = {}
    for name, value in data.items():
        if name in _SECRETS:
            raise ConfigError(
                f"{path}: {name} is a secret, and does not belong in a settings file",
                hint='write it to a file of mode 600 and set password_file = "..."',
                code="SECRET_IN_FILE",
            )
        if name not in _PARSERS:
            hint = _did_you_mean(name, list(_PARSERS)) or f"known here: {', '.join(_PARSERS)}"
            raise ConfigError(f"{path}: {name} is not a setting", hint=hint, code="UNKNOWN_KEY")
        layer[name] = _Given(value, str(path), path.parent)
    return layer


def _project_file(cwd: Path) -> Path | None:
    """Return the hearth.toml of this folder or the nearest one above it.

    Raises ConfigError FOREIGN_FILE for one that belongs to somebody else.
    """
    for folder in (cwd, *cwd.parents):
        path = folder / PROJECT_FILE
        if path.exists():
            _refuse_foreign(path, folder)
            return path
    return None


def _refuse_foreign(path: Path, folder: Path) -> None:
    """Refuse what was found below a folder where it, a link to it, or a folder between belongs to somebody else.

    It could have a command pay contracts, on a chain, of its owner's choice. What a flag, a variable or an absolute
    path names is no find: whoever names it has chosen it. Raises ConfigError FOREIGN_FILE.
    """
    for one in (path, *path.parents):
        if one == folder:
            return
        for owner in (one.lstat().st_uid, one.stat().st_uid):
            if owner not in (0, os.getuid()):
                raise ConfigError(
                    f"{one} belongs to another user (uid {owner}), who could choose the contracts that are paid",
                    hint="run in another folder, or name a network file that you trust: --network /path/NAME.json",
                    code="FOREIGN_FILE",
                )


def _user_file(environ: Mapping[str, str], home: Path) -> Path:
    if environ.get("HEARTH_HOME"):
        return home / USER_FILE
    import platformdirs

    return platformdirs.user_config_path("hearth", appauthor=False) / USER_FILE


# ---- one setting each ----


def _text(name: str, given: _Given) -> str:
    if not isinstance(given.value, str) or not given.value.strip():
        raise _refuse(given, name, "must be text", f'write {name} = "..."')
    return given.value.strip()


def _network(name: str, given: _Given) -> str:
    text = _text(name, given)
    if is_path(text):
        path = _path(name, given)
        in_a_file = not given.origin.startswith(("--", ENV_PREFIX))
        if in_a_file and path.exists() and not text.startswith(("/", "~")):
            _refuse_foreign(path, given.folder)
        return str(path)
    if not NETWORK_NAME.fullmatch(text):
        raise _refuse(given, name, f'"{text}" is neither a name nor a .json file', "use --network NAME")
    return text


def _path(name: str, given: _Given) -> Path:
    if isinstance(given.value, Path):
        return given.folder / given.value
    text = _text(name, given)
    try:
        return given.folder / expand(Path(text))
    except ValueError as error:
        raise _refuse(given, name, f'"{text}": {error}', "write the path out, from /") from error


def _urls(schemes: tuple[str, ...]) -> Callable[[str, _Given], tuple[str, ...]]:
    def parse(name: str, given: _Given) -> tuple[str, ...]:
        value = given.value
        entries = value.split(",") if isinstance(value, str) else value
        if not isinstance(entries, list | tuple) or not all(isinstance(entry, str) for entry in entries):
            raise _refuse(given, name, "must be a URL or a list of URLs", f'write {name} = ["https://..."]')
        urls = tuple(entry.strip() for entry in entries if entry.strip())
        for url in urls:
            _check_url(url, schemes, name, given)
        if not urls:
            raise _refuse(given, name, "names no URL", f'write {name} = ["https://..."]')
        return urls

    return parse


def _check_url(url: str, schemes: tuple[str, ...], name: str, given: _Given) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in url):
        # What has no host has nothing to hide its token behind, so that none of it is shown.
        shown = redact_url(url) if "://" in url else "this"
        how = "use --rpc https://HOST" if given.origin == "--rpc" else f'write {name} = ["https://..."]'
        raise _refuse(given, name, f"{shown} is not a URL of {', '.join(schemes)}", how)


def _rpc_file(name: str, given: _Given) -> tuple[str, ...]:
    path = _path(name, given)
    check_private(path, "the RPC file")
    given = given._replace(origin=str(path))  # what is wrong from here on is wrong in the file
    with path.open("rb") as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    try:
        lines = [line.strip() for line in raw[:MAX_FILE_BYTES].decode().splitlines()]
    except UnicodeDecodeError as error:
        raise _refuse(given, name, "is not text", "write one URL per line") from error
    return _RPC_URLS(name, given._replace(value=[line for line in lines if line and not line.startswith("#")]))


def _seconds(name: str, given: _Given) -> int:
    value = given.value
    if isinstance(value, int) and not isinstance(value, bool):
        raise _refuse(given, name, f"{value} has no unit", f'did you mean "{value}s"?')
    try:
        seconds = parse_duration(_text(name, given))
    except HearthError as error:
        raise _refuse(given, name, error.message, error.hint, error.code) from error
    if seconds == 0:
        raise _refuse(given, name, "must be more than 0s", "write 10m")
    return seconds


def _store(name: str, given: _Given) -> str:
    text = _text(name, given)
    if text == "folder" or text.startswith(("/ip4/", "/ip6/", "/dns")):
        return text
    if "://" in text:
        _check_url(text, ("http", "https"), name, given)
        return text
    raise _refuse(given, name, f'"{text}" is not a store', 'write "folder" or the address of a Kubo API')


_RPC_URLS = _urls(("http", "https"))
_PARSERS: dict[str, Callable[[str, _Given], object]] = {
    "network": _network,
    "account": _text,
    "password_file": _path,
    "rpc": _RPC_URLS,
    "rpc_file": _rpc_file,
    "timeout": _seconds,
    "store": _store,
    "gateways": _urls(("http", "https")),
}


def _refuse(given: _Given, name: str, why: str, hint: str, code: str = "USAGE") -> HearthError:
    """Return the refusal of a setting: of a file or the environment, or (with `code`) of an option of a command."""
    if given.origin.startswith("--"):
        return UsageError(f"{given.origin}: {why}", hint=hint, code=code, setting=name)
    return ConfigError(f"{given.origin}: {name}: {why}", hint=hint, setting=name)


def _refuse_unknown(raw: object, known: object, source: str, where: str) -> None:
    """Refuse keys of a parsed JSON object that its parsed form does not have."""
    if not isinstance(raw, dict) or not isinstance(known, dict):
        return
    for key, value in raw.items():
        if key not in known:
            hint = _did_you_mean(key, list(known)) or f"known here: {', '.join(known)}"
            raise ConfigError(f"{source}: {where}{key} is not known", hint=hint, code="UNKNOWN_KEY")
        _refuse_unknown(value, known[key], source, f"{where}{key}.")


def _did_you_mean(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""
