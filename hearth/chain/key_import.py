"""Private keys from elsewhere: hex digits, the keystore of another tool, a recovery phrase; from a file or from stdin.

No error repeats what was read. Sources: the Web3 Secret Storage format (version 3), BIP-39 and BIP-44.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hearth.base.errors import ConfigError
from hearth.base.files import check_private, read_bounded
from hearth.chain.keys import KeyFile, checked_secret, read_keystore, unlock

STDIN: Final = Path("-")
MAX_BYTES: Final = 65_536
PHRASE_WORDS: Final = (12, 15, 18, 21, 24)
PATH: Final = "m/44'/60'/0'/0/{}"
"""BIP-44 for Ethereum; the last number is the account."""


def read_secret(source: Path, *, password: Callable[[str], str], index: int = 0) -> bytes:
    """Return the private key in a file of mode 600, or on stdin where `source` is "-".

    It may be 64 hex digits, with or without 0x; a keystore of version 3, whose password `password` is asked for; or a
    BIP-39 phrase, of which account `index` is taken. Raises ConfigError OPEN_FILE, NO_FILE, BAD_SECRET, BAD_KEY_FILE,
    WRONG_PASSWORD.
    """
    if source == STDIN:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        check_private(source, "the file to import")
        raw = read_bounded(source, MAX_BYTES)
    text = b"" if len(raw) > MAX_BYTES else raw.strip()  # what was cut off may belong to it
    if text.startswith(b"{"):
        return _of_keystore(source, password)
    words = text.decode("ascii", "replace").lower().split()
    if len(words) in PHRASE_WORDS:
        return _of_phrase(" ".join(words), index)
    digits = text.removeprefix(b"0x")
    if not re.fullmatch(b"[0-9a-fA-F]{64}", digits):
        raise ConfigError(
            f"{_shown(source)} holds no key: neither 64 hex digits, nor a keystore, nor a phrase of 12 to 24 words",
            hint="hearth wallet import --help",
            code="BAD_SECRET",
        )
    return checked_secret(bytes.fromhex(digits.decode()))


def _of_keystore(source: Path, password: Callable[[str], str]) -> bytes:
    if source == STDIN:
        raise ConfigError(
            "a keystore is read from a file, whose password is asked for",
            hint="write it to a file of mode 600; hearth wallet import --help",
            code="BAD_SECRET",
        )
    address = f"0x{read_keystore(source)['address']}"
    account = unlock(KeyFile(source.stem, address, source), password(f"password of {source}"))
    return bytes(account.key)


def _of_phrase(phrase: str, index: int) -> bytes:
    from eth_account import Account
    from eth_utils.exceptions import ValidationError

    Account.enable_unaudited_hdwallet_features()
    try:
        return bytes(Account.from_mnemonic(phrase, account_path=PATH.format(index)).key)
    except ValidationError:
        raise ConfigError(
            "these words are no BIP-39 phrase: one is misspelt or in the wrong place",
            hint="copy it again",
            code="BAD_SECRET",
        ) from None


def _shown(source: Path) -> str:
    return "stdin" if source == STDIN else str(source)
