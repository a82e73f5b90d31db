"""Settings of the command line and the Python API: one frozen object, built once from five layers.

A flag wins over the environment (HEARTH_NETWORK, ...), that over the project's hearth.toml, that over the user's
config.toml, that over what networks/<name>.json says; each value remembers where it came from. What was found in a
folder, and not named, counts once a person has said so (hearth.config.trust). State (keys, journals, blocks) lives in
the home folder: HEARTH_HOME, or the platform's data folder. With HEARTH_HOME set, the user's file is config.toml in it,
so that one variable separates two installations.

Secrets are never values here: a password and an RPC URL with a key in it are named by file (`password_file`,
`rpc_file`), and `repr` shows no path of a URL.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from hearth.base.errors import ConfigError, HearthError, UsageError
from hearth.base.files import AnyPath, check_private, expand, is_path, path_of, read_bounded
from hearth.base.found import NETWORKS, PROJECT_FILE
from hearth.base.text import quoted
from hearth.base.urls import redact_url
from hearth.config.trust import Trust
from hearth.protocol.units import Asset, parse_duration

if TYPE_CHECKING:
    from hearth.market.network import Network

USER_FILE = "config.toml"
KEYS = "keys"
"""The folder of the key files, in a home."""
ENV_PREFIX = "HEARTH_"
DEFAULT_NETWORK = "devnet"
DEFAULT_TIMEOUT = 600
MAX_FILE_BYTES = 1 << 20

NETWORK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
"""What a network may be called, here and where its file is written: no path, no hidden file."""
_HASH = re.compile(r"0x[0-9a-f]{64}")
PROGRAM = "a program's settings"
"""The origin of what the settings file of a worker or keeper says."""
_SHOWN = 3
"""Entries of a list that a question names."""
_SECRETS = ("password", "private_key", "mnemonic", "key")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a command is told from outside.

    `network` is a name or the path of a network file; `rpc` are URLs in order of preference, empty for the network
    file's, and `rpc_file` is where they stood, if in a file of their own; `timeout` is in seconds; `store` is "folder"
    or the API address of a Kubo; `origins` names the layer of each value that is not a default.
    """

    home: Path
    project: Path | None = None
    network: str = DEFAULT_NETWORK
    account: str | None = None
    password_file: Path | None = None
    rpc: tuple[str, ...] = field(default=(), repr=False)
    rpc_file: Path | None = None
    timeout: int = DEFAULT_TIMEOUT
    store: str = "folder"
    gateways: tuple[str, ...] = field(default=(), repr=False)
    code: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    trust: Trust | None = field(default=None, repr=False, compare=False)

    @property
    def keys_folder(self) -> Path:
        """Return the folder of the key files."""
        return self.home / KEYS

    @property
    def own(self) -> tuple[Path, ...]:
        """Return the files and folders that nobody else may see, whether they are there or not.

        The platform's own are among them where HEARTH_HOME names another home: keys lie there too.
        """
        usual = home_folder({})
        named = (self.home, self.keys_folder, self.password_file, self.rpc_file)
        usually = (usual, usual / KEYS, _user_file({}, usual))
        return tuple(dict.fromkeys(path for path in (*named, *usually) if path is not None))

    def for_program(self, network: str, rpc: tuple[str, ...], code: tuple[str, ...] = ()) -> Settings:
        """Return these for a program, whose settings file names its market, whom it asks, and `code` that it may pay.

        What the command line, or whoever made these, chose stays; environment and settings files give way.
        """
        if self._chosen("network", DEFAULT_NETWORK) or self._chosen("rpc", ()):
            return self
        origins = {**self.origins, "network": PROGRAM}
        return replace(self, network=network, rpc=rpc or self.rpc, code=self.code + code, origins=origins)

    def require(self, path: Path, raw: bytes, said: str, *, named: str = "") -> None:
        """Ask about a file that a found one led to, as Trust.require does.

        What lies in the home folder, and with its networks and keys, is the user's; a folder below may hold results.
        Raises ConfigError UNKNOWN_FILE.
        """
        own = {os.path.realpath(one) for one in (self.home, self.home / NETWORKS, self.keys_folder)}
        if os.path.dirname(os.path.realpath(path)) not in own:
            (self.trust or Trust(self.home)).require(path, raw, said, named=named)

    def _chosen(self, name: str, default: object) -> bool:
        return getattr(self, name) != default and self.origins.get(name, "--").startswith("--")

    @property
    def names_account(self) -> bool:
        """Say whether an option of this command, or the program, names the account: nothing that holds for all."""
        return self._chosen("account", None)

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
    ask: Callable[[str], bool] | None = None,
    remember: bool = True,
) -> Settings:
    """Return the settings; `flags` are those of the command line, None where one was not given.

    `ask` and `remember` are Trust's. Raises ConfigError with the layer and the key for what is unknown, malformed or a
    secret in the open, UNKNOWN_FILE where a hearth.toml that nobody vouched for has a say.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    home = home_folder(environ)
    project = _project_file(cwd)
    written = None if project is None else _read(project)
    found = _from_file(project, written) if project is not None and written is not None else {}
    user = _user_file(environ, home)
    layers = [_from_flags(flags or {}, cwd), _from_environment(environ, cwd), found, _from_file(user, _read(user))]
    chosen: dict[str, tuple[str, _Given]] = {}
    for layer in layers:
        if "rpc" in layer and "rpc_file" in layer:
            raise _refuse(layer["rpc_file"], "rpc_file", "stands beside rpc", "keep one of them")
        for name, given in layer.items():
            chosen.setdefault("rpc" if name == "rpc_file" else name, (name, given))
    trust = Trust(home, ask, remember)
    from_project = {name: given.value for name, given in chosen.values() if found.get(name) is given}
    if from_project:
        assert project is not None and written is not None
        trust.require(project, written, f"{quoted(str(project))} says {_said(from_project)}")
    values: dict[str, Any] = {target: _PARSERS[name](name, given) for target, (name, given) in chosen.items()}
    listed = b""
    if "rpc" in chosen and chosen["rpc"][0] == "rpc_file":
        values["rpc_file"] = values["rpc"]
        # Read once: what is asked about below is what is used.
        listed = _read_private(values["rpc_file"])
        values["rpc"] = _listed_urls(listed, values["rpc_file"], chosen["rpc"][1])
    origins = {target: given.origin for target, (_, given) in chosen.items()}
    settings = Settings(home=home, project=project, origins=origins, trust=trust, **values)
    if settings.rpc_file is not None and "rpc_file" in from_project:
        asks = f"{quoted(str(settings.rpc_file))}, named by {quoted(str(project))}, says "
        settings.require(settings.rpc_file, listed, asks + _said({"rpc": list(settings.rpc)}))
    return settings


def settings_of(home: AnyPath | None = None, **given: object) -> Settings:
    """Return the settings of a program that names some of them itself, as the flags of a command do.

    `home` is the folder of keys and state. A path may be text or a path, `timeout` text or whole seconds; None is not
    given. Raises what `load_settings` does.
    """
    environ = dict(os.environ)
    if home is not None:
        environ["HEARTH_HOME"] = str(path_of(home).absolute())
    timeout = given.get("timeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        given["timeout"] = f"{timeout}s"
    for name in ("network", "password_file", "rpc_file"):
        if isinstance(path := given.get(name), os.PathLike):
            given[name] = str(path_of(path).absolute())
    return load_settings(given, environ=environ)


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
    return _network_file(settings)[0]


def _network_file(settings: Settings) -> tuple[Path, str]:
    """Return the file of the chosen network, and where it was found or who led there; empty where it was named."""
    name = settings.network
    if is_path(name):
        by_project = settings.origins.get("network") == str(settings.project)
        return Path(name), f"named by {quoted(str(settings.project))}" if by_project else ""
    folders = [settings.home / NETWORKS]
    if settings.project is not None:
        folders.append(settings.project.parent / NETWORKS)
    folders.append(Path(NETWORKS).absolute())
    for folder in folders:
        path = folder / f"{name}.json"
        if path.is_file():
            if folder == folders[0]:
                return path, ""
            _refuse_foreign(path, folder.parent)
            return path, f"found as network {name}"
    known = sorted({path.stem for folder in folders for path in folder.glob("*.json")})
    hint = "hearth devnet up" if name == DEFAULT_NETWORK else _did_you_mean(name, known) or "use --network FILE"
    raise ConfigError(
        f"there is no network {name}: known are {', '.join(known) or 'none'}", hint=hint, code="NO_NETWORK"
    )


def open_network(settings: Settings) -> Network:
    """Read the chosen network's file, strictly: a key that it does not have is a mistake, not an extension.

    Raises ConfigError, UNKNOWN_FILE for a file that was found and that nobody vouched for.
    """
    path, why = _network_file(settings)
    return found_network(settings, path, why)


def found_network(settings: Settings, path: Path, why: str, *, named: str = "") -> Network:
    """Read a network file strictly; `why` says how it was found, and is empty for one that was named.

    `named` is an option that would name it, by default --network.

    Raises ConfigError, UNKNOWN_FILE for a found one that nobody vouched for.
    """
    from hearth.base.untrusted_json import read_json
    from hearth.market.network import network_in, read_network

    raw = read_network(path)
    network = network_in(raw, path)
    _refuse_unknown(read_json(raw), network.as_dict(), str(path), "")
    if why:
        market = f"a market of chain {network.chain_id} with JobRegistry {network.jobs}"
        asked = f", asked of {_said({'rpc': list(network.rpc)})}" if network.rpc else ""
        said = f"{quoted(str(path))}, {why}, is {market}{asked}"
        settings.require(path, raw, said, named=named or f"--network {shlex.quote(str(path))}")
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


def _read(path: Path) -> bytes | None:
    """Return what a settings file holds, as far as it is read; None where there is none."""
    try:
        return read_bounded(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from error


def _from_file(path: Path, raw: bytes | None) -> dict[str, _Given]:
    import tomllib

    if raw is None:
        return {}
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
        if name == "code":
            raise ConfigError(
                f"{path}: code says which contracts may be paid, and no file does",
                hint=f"use --code HASH or {ENV_PREFIX}CODE",
            )
        layer[name] = _Given(value, str(path), path.parent)
    return layer


def _said(values: Mapping[str, object]) -> str:
    """Return settings of a file as people read them: one line, each text quoted, URLs cut down to their host.

    None is left out: what follows a long list would else be vouched for unread.
    """

    def shown(value: object) -> str:
        if isinstance(value, list):
            more = [f"and {len(value) - _SHOWN} more"] if len(value) > _SHOWN else []
            return f"[{', '.join([*map(shown, value[:_SHOWN]), *more])}]"
        text = str(value)
        return quoted(redact_url(text) if "://" in text else text, 120) if isinstance(value, str) else text

    return ", ".join(f"{name} = {shown(values[name])}" for name in sorted(values, key=_weight))


def _weight(name: str) -> tuple[bool, str]:
    """Return where a setting stands: what chooses whom somebody pays, as whom, and by whose word is first."""
    return name not in ("network", "rpc", "account", "password_file"), name


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


def _read_private(path: Path) -> bytes:
    check_private(path, "the RPC file")
    return read_bounded(path, MAX_FILE_BYTES)


def _listed_urls(raw: bytes, path: Path, given: _Given) -> tuple[str, ...]:
    """Return the URLs in an RPC file, one a line."""
    name, given = "rpc_file", given._replace(origin=str(path))  # what is wrong here is wrong in the file
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


def _hashes(name: str, given: _Given) -> tuple[str, ...]:
    value = given.value
    entries = value.split(",") if isinstance(value, str) else value
    assert isinstance(entries, list | tuple), "no file names one"
    hashes = tuple(str(entry).strip().lower() for entry in entries)
    for one in hashes:
        if not _HASH.fullmatch(one):
            raise _refuse(given, name, f"{quoted(one, 80)} is no hash: 0x and 64 hex digits", "use --code HASH")
    return hashes


_RPC_URLS = _urls(("http", "https"))
_PARSERS: dict[str, Callable[[str, _Given], object]] = {
    "network": _network,
    "account": _text,
    "password_file": _path,
    "rpc": _RPC_URLS,
    "rpc_file": _path,
    "timeout": _seconds,
    "store": _store,
    "gateways": _urls(("http", "https")),
    "code": _hashes,
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
