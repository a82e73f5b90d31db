"""Key files: encrypted keystores (version 3), one per key, and the lock that keeps a key to one signing process.

A key file is <name>.json with mode 600 in the keys folder. Its address stands in the open, so that listing and reading
never unlock. Files are written whole or not at all and never overwritten: a lost key is lost money. Source:
threats.md "Threats"; the Web3 Secret Storage definition.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.base.errors import ConfigError
from hearth.base.files import check_private, make_private, read_bounded
from hearth.base.locks import FileLock

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

MIN_PASSWORD = 8
"""Characters; the least that NIST SP 800-63B lets a user choose."""
SCRYPT_N = 1 << 18
"""Work factor of a key that can hold money: about a second and 256 MiB to try one password."""
DEVNET_SCRYPT_N = 1 << 10
"""Work factor of a key for a local chain, where nothing has value."""
MAX_SCRYPT_MEMORY = 1 << 30
MAX_ITERATIONS = 10_000_000
MAX_FILE_BYTES = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Name a key: its file, and its address in lower case as the file says it."""

    name: str
    address: str
    path: Path

    @property
    def lock_path(self) -> Path:
        """Return the lock of this address, the same for every name that it has in the folder."""
        return self.path.parent / f".{self.address}.lock"


def create_key(folder: Path, name: str, password: str, *, secret: bytes | None = None, devnet: bool = False) -> KeyFile:
    """Write a new key file, for a random key or for the 32 bytes of `secret`, and return it.

    `devnet` makes the password cheap to check, and to guess. Raises ConfigError KEY_EXISTS for a name or an address
    that the folder has, BAD_NAME, BAD_SECRET, WEAK_PASSWORD.
    """
    from eth_account import Account

    if not _NAME.fullmatch(name):
        raise ConfigError(
            f'"{name}" cannot name a key',
            hint="use letters, digits, _ and -, up to 64",
            code="BAD_NAME",
            component="wallet",
        )
    if len(password) < (1 if devnet else MIN_PASSWORD):
        raise ConfigError(
            f"a password of {len(password)} characters protects little: {MIN_PASSWORD} are the least"
            if password
            else "an empty password protects nothing",
            hint="write a longer one to a file and use --password-file",
            code="WEAK_PASSWORD",
        )
    make_private(folder)
    raw = _random_secret() if secret is None else checked_secret(secret)
    account = Account.from_key(raw)
    address = str(account.address).lower()
    for known in list_keys(folder):
        if known.address == address:
            raise _exists(known)
    document = Account.encrypt(raw, password, kdf="scrypt", iterations=DEVNET_SCRYPT_N if devnet else SCRYPT_N)
    path = folder / f"{name}.json"
    _write_new(path, json.dumps(document, indent=2).encode() + b"\n")
    return KeyFile(name, address, path)


def list_keys(folder: Path) -> tuple[KeyFile, ...]:
    """Return the folder's keys by name, without unlocking any; other files in it are left out."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(read_key(path))
        except ConfigError:
            continue
    return tuple(found)


def read_key(path: Path) -> KeyFile:
    """Return what a key file says of itself. Raises ConfigError NO_ACCOUNT, BAD_KEY_FILE."""
    return KeyFile(path.stem, "0x" + read_keystore(path)["address"], path)


def find_key(folder: Path, account: str | None = None) -> KeyFile:
    """Return a key by its name, its address, or an unambiguous start of the address; with None, the only one.

    Raises ConfigError NO_ACCOUNT, MANY_ACCOUNTS, BAD_KEY_FILE.
    """
    keys = list_keys(folder)
    if account is None:
        if len(keys) == 1:
            return keys[0]
        if keys:
            raise _many(f"{folder} holds {len(keys)} keys", keys, "use --account NAME")
        raise _none(f"{folder} holds no key", "hearth wallet new")
    if _NAME.fullmatch(account) and (folder / f"{account}.json").is_file():
        return read_key(folder / f"{account}.json")
    wanted = account.lower()
    matching = [key for key in keys if len(wanted) > 2 and key.address.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise _many(f"{account} is the start of {len(matching)} addresses", matching, "write more of it")
    raise _none(f'no key is named "{account}"', "hearth wallet list")


def unlock(key: KeyFile, password: str, *, foreign: bool = False) -> LocalAccount:
    """Return the signing account of a key file; a `foreign` one is another program's, at a mode of its choice.

    Raises ConfigError WRONG_PASSWORD; OPEN_FILE when others can read the file; BAD_KEY_FILE when it is damaged, asks
    for more work than any honest one, or holds another key than it says.
    """
    from eth_account import Account

    if not foreign:
        check_private(key.path, "the key file")
    document = read_keystore(key.path)
    try:
        raw = Account.decrypt(document, password)
    except ValueError as error:
        # eth-account tells a wrong password by this text and has no type of its own for it.
        if "MAC mismatch" in str(error):
            raise ConfigError(
                f"the password of {key.name} ({key.address}) is wrong",
                hint="use --password-file FILE",
                code="WRONG_PASSWORD",
                component="wallet",
            ) from None
        raise _bad_file(key.path, str(error)) from error
    except (KeyError, TypeError, NotImplementedError) as error:
        raise _bad_file(key.path, repr(error)) from error
    account: LocalAccount = Account.from_key(raw)
    if str(account.address).lower() != key.address:
        raise _bad_file(key.path, f"it holds the key of {account.address}, not of {key.address}")
    return account


def read_password(path: Path) -> str:
    """Return the password in a file of mode 600, less the newline at its end.

    Raises ConfigError OPEN_FILE, NO_FILE, BAD_PASSWORD_FILE.
    """
    check_private(path, "the password file")
    raw = read_bounded(path, MAX_FILE_BYTES)
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or len(raw) > MAX_FILE_BYTES or "\n" in text:
        raise ConfigError(
            f"the password file {path} does not hold one line of text", hint=f"ls -l {path}", code="BAD_PASSWORD_FILE"
        )
    return text


def password_of(key: KeyFile, file: Path | None, ask: Callable[[str], str] | None) -> str:
    """Return a key's password: of `file`, else of the file beside the key, else what `ask` is answered.

    Raises ConfigError NO_PASSWORD where nobody can be asked.
    """
    beside = key.path.with_suffix(".password")
    if file is not None or beside.is_file():
        return read_password(file or beside)
    if ask is None:
        raise ConfigError(
            f"the key {key.name} needs its password, and there is no terminal to ask on",
            hint="use --password-file FILE",
            code="NO_PASSWORD",
            component="wallet",
        )
    return ask(f"password of {key.name} ({key.address})")


class SignerLock(FileLock):
    """Hold a key for one process, so that two never use one nonce: `with SignerLock(key.lock_path): ...`.

    With `wait_seconds`, wait that long for another holder. Raises ConfigError KEY_IN_USE with the holder's process id.
    """

    def __init__(self, path: Path, *, wait_seconds: float = 0.0) -> None:
        super().__init__(path, self._in_use, wait_seconds=wait_seconds)

    def _in_use(self, pid: int | None) -> ConfigError:
        return ConfigError(
            f"process {pid or '(starting)'} is signing with this key ({self.path.stem.lstrip('.')})",
            hint="wait for it or stop it, or use another key: hearth wallet list; "
            "what a worker's owner does, the running worker does: hearth worker --help",
            code="KEY_IN_USE",
            retryable=True,
            component="wallet",
            pid=pid,
        )


def read_keystore(path: Path) -> dict[str, Any]:
    """Return a keystore, after a check of all of it that decrypting relies on.

    Raises ConfigError NO_ACCOUNT, BAD_KEY_FILE.
    """
    return keystore_in(read_keystore_bytes(path), path)


def read_keystore_bytes(path: Path) -> bytes:
    """Return the bytes of a keystore. Raises ConfigError NO_ACCOUNT."""
    try:
        return read_bounded(path, MAX_FILE_BYTES)
    except OSError as error:
        raise _none(f"the key file {path} cannot be read: {error.strerror}", "hearth wallet list") from error


def keystore_in(raw: bytes, path: Path) -> dict[str, Any]:
    """Return the keystore that was read of `path`, checked as by `read_keystore`. Raises ConfigError BAD_KEY_FILE."""
    try:
        document = json.loads(raw) if len(raw) <= MAX_FILE_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("version") != 3:
        raise _bad_file(path, "it is no keystore of version 3")
    address = str(document.get("address", "")).lower().removeprefix("0x")
    if not re.fullmatch("[0-9a-f]{40}", address):
        raise _bad_file(path, "it names no address")
    crypto = document.get("crypto", document.get("Crypto"))
    parameters = crypto.get("kdfparams") if isinstance(crypto, dict) else None
    if not isinstance(parameters, dict) or not _is_affordable(parameters):
        raise _bad_file(path, "its key derivation is missing or out of bounds")
    return {**document, "address": address}


def _is_affordable(parameters: dict[str, Any]) -> bool:
    """Say whether deriving costs what an honest file costs: a planted one could fill the memory."""
    numbers: list[int] = []
    for name in ("n", "r", "p", "c", "dklen"):
        number = parameters.get(name, 1)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            return False
        numbers.append(number)
    n, r, p, c, length = numbers
    return 128 * n * r <= MAX_SCRYPT_MEMORY and p <= 16 and c <= MAX_ITERATIONS and length <= 64


def _random_secret() -> bytes:
    while True:
        raw = secrets.token_bytes(32)
        if 0 < int.from_bytes(raw, "big") < _SECP256K1_ORDER:
            return raw


def checked_secret(secret: bytes) -> bytes:
    """Return 32 bytes that are a private key. Raises ConfigError BAD_SECRET."""
    if len(secret) != 32 or not 0 < int.from_bytes(secret, "big") < _SECP256K1_ORDER:
        raise ConfigError("this is no private key of secp256k1", hint="hearth wallet new", code="BAD_SECRET")
    return secret


def _write_new(path: Path, data: bytes) -> None:
    """Write a file of mode 600 that does not exist yet, durably: it appears whole, or not at all."""
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, never replaces a file that is there.
        os.link(draft, path)
    except FileExistsError:
        raise _exists(KeyFile(path.stem, "", path)) from None
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _exists(key: KeyFile) -> ConfigError:
    return ConfigError(
        f"the key {key.name} exists already: {key.path}",
        hint="use another name; hearth wallet list",
        code="KEY_EXISTS",
        component="wallet",
    )


def _none(message: str, hint: str) -> ConfigError:
    return ConfigError(message, hint=hint, code="NO_ACCOUNT", component="wallet")


def _many(message: str, keys: tuple[KeyFile, ...] | list[KeyFile], hint: str) -> ConfigError:
    shown = ", ".join(f"{key.name} ({key.address[:10]})" for key in keys[:8])
    return ConfigError(f"{message}: {shown}", hint=hint, code="MANY_ACCOUNTS", component="wallet")


def _bad_file(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} is not a usable key file: {why}",
        hint="restore it from your backup",
        code="BAD_KEY_FILE",
        component="wallet",
    )
