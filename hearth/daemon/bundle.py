"""What an operator sends to whoever helps: facts in one document, with everything taken out that is a secret.

Three sieves, each over every text of the document. What this program knows to be secret (passwords, the parts of URLs
that carry keys) is gone wherever it stands. What looks like a secret (`token=...`, what comes after a URL's host, hex
as long as a key that is no id of this program's own, a recovery phrase, tokens by the prefixes of who gives them out)
is gone as well. People's names are gone from paths.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from importlib import metadata, resources
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from hearth import __version__
from hearth.base.errors import HearthError, StorageError
from hearth.base.urls import Secrets, each_text, redact_url, secrets_of_url
from hearth.config.settings import Settings, home_folder, open_network

HIDDEN: Final = "[hidden]"
MAX_LOG_BYTES: Final = 1 << 20
LOG_LINES: Final = 300
LAST: Final = 30
"""Rows of a journal that are told, the newest."""
PACKAGE: Final = "hearth-market"
_TRANSACTIONS: Final = f"SELECT key, state, note FROM intents ORDER BY id DESC LIMIT {LAST}"
# The scheme has a bound, or a long word costs its length squared; where it is longer, what follows is hidden whole.
_URL: Final = re.compile(r"""(?:[a-zA-Z][a-zA-Z0-9+.-]{0,31})?://[^\s"'<>`,;)\]}]+""")
_HEX: Final = re.compile(r"(?<![0-9a-fA-F])(?:0x)?([0-9a-fA-F]{64,})(?![0-9a-fA-F])")
_NAMED: Final = re.compile(
    r"""(?i)((?:api[-_ ]?key|token|secret|passw(?:or)?d|passphrase|mnemonic|private[-_ ]?key|authorization)["']?"""
    r"""\s*[=:]\s*["']?(?:bearer\s+|basic\s+)?|\b\w+_(?:key|secret|token)\s*=\s*["']?|\bbearer\s+)([^\s"',;&}]{5,})"""
)
_TOKEN: Final = re.compile(r"\b(?:gh[oprsu]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|AKIA)[A-Za-z0-9_-]{8,}")
"""Tokens that say themselves what they are: of GitHub, GitLab, Hugging Face, OpenAI, Slack and Amazon."""
_PHRASE: Final = re.compile(r"\b(?:[a-z]{3,8}[ ,]+){11,}[a-z]{3,8}\b")
_PHRASE_WORDS: Final = 12
_HOME: Final = re.compile(r"(/home|/Users|/var/home)/[^/\s\"':,]+")


class Sieve:
    """Take secrets out of texts. `secrets` are hidden wherever they stand, of `ids` the first digits are kept."""

    def __init__(self, secrets: Iterable[str], ids: Iterable[str] = ()) -> None:
        self._secrets = Secrets(secrets, HIDDEN)
        self._ids = {one.removeprefix("0x").lower() for one in ids}

    def text(self, text: str) -> str:
        """Return a text without what is secret in it."""
        text = self._secrets.hide(_URL.sub(lambda found: _url(found[0]), text))
        text = _NAMED.sub(lambda found: found[1] + HIDDEN, text)
        text = _TOKEN.sub(HIDDEN, text)
        text = _PHRASE.sub(lambda found: _without_phrases(found[0]), text)
        text = _HEX.sub(self._hex, text)
        return _HOME.sub(r"\1/USER", text)

    def _hex(self, found: re.Match[str]) -> str:
        digits = found[1].lower()
        return f"{digits[:12]}..." if digits in self._ids else f"[{len(digits)} hex digits]"

    def value(self, value: Any) -> Any:
        """Return JSON-ready facts without what is secret in them, keys included."""
        return each_text(value, self.text)


def _without_phrases(words: str) -> str:
    """Return words without those that stand twelve and more in a row in the list of recovery phrases (BIP-39)."""
    kept: list[str] = []
    for listed, run in groupby(re.split(r"[ ,]+", words), key=_phrase_words().__contains__):
        found = list(run)
        kept += [HIDDEN] if listed and len(found) >= _PHRASE_WORDS else found
    return " ".join(kept)


@cache
def _phrase_words() -> frozenset[str]:
    return frozenset(resources.files("eth_account.hdaccount.wordlist").joinpath("english.txt").read_text().split())


def _url(url: str) -> str:
    """Return a URL without what may be a key in it; a folder's is a path."""
    return url if url.startswith(("folder:///", "file:///", "unix:///")) else redact_url(url)


def known_secrets(urls: Iterable[str], password_files: Iterable[Path | None]) -> Iterator[str]:
    """Yield what must stand nowhere: passwords, and what of a URL may be a key."""
    for url in urls:
        if not url.startswith("folder:"):
            yield from secrets_of_url(url)
    for path in password_files:
        # A file that cannot be read holds no secret that this program could leak.
        with suppress(OSError):
            if path is not None:
                yield path.read_text(encoding="utf-8", errors="replace").strip()


def rpc_of(network: str) -> list[str]:
    """Return the RPC addresses of a network's file; one that cannot be read holds none that was used."""
    with suppress(HearthError):
        return list(open_network(Settings(home=home_folder(os.environ), network=network)).rpc)
    return []


def versions() -> dict[str, str]:
    """Return what runs here: this program, Python, the system, and each package that the program asks for."""
    found = {"hearth": __version__, "python": sys.version.split()[0], "system": platform.platform()}
    with suppress(metadata.PackageNotFoundError):  # a copy of the sources that was never installed names none
        for line in metadata.requires(PACKAGE) or ():
            if "extra ==" in line:
                continue
            name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
            with suppress(metadata.PackageNotFoundError):
                found[name] = metadata.version(name)
    return found


def part_of(make: Callable[[], Any], why_not: dict[str, str], name: str) -> Any:
    """Return one part of a document, or None with the reason in `why_not`: what is broken is why help is asked for."""
    try:
        return make()
    except HearthError as error:
        why_not[name] = f"{error.code}: {error.message}"
    except OSError as error:
        why_not[name] = f"{type(error).__name__}: {error}"
    return None


def last_lines(path: Path) -> list[str]:
    """Return the last LOG_LINES of a log; "-" is what is piped in. Raises OSError."""
    if str(path) == "-":
        data = sys.stdin.buffer.read()[-MAX_LOG_BYTES:]
    else:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - MAX_LOG_BYTES))
            data = file.read()
    return data.decode("utf-8", "replace").splitlines()[-LOG_LINES:]


def transactions(home: Path) -> list[dict[str, Any]]:
    """Return the newest rows of the journals of transactions in a state folder. Raises StorageError."""
    return [row for path in sorted(home.glob("tx-*.db")) for row in journal_rows(path, _TRANSACTIONS)]


def journal_rows(path: Path, query: str) -> list[dict[str, Any]]:
    """Return rows of a journal, which a running program may be writing; it is only read. Raises StorageError."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
            db.row_factory = sqlite3.Row
            found = [dict(row) for row in db.execute(query)]
    except sqlite3.Error as error:
        raise StorageError(f"the journal {path.name} cannot be read: {error}", hint="hearth worker doctor") from error
    return [{name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()} for row in found]


def ids_in(rows: Iterable[dict[str, Any]] | None) -> Iterator[str]:
    """Yield the ids that a program's own journal of transactions names."""
    for row in rows or ():
        yield from re.split(r"[/:,]", str(row["key"]))


def listing(home: Path) -> list[dict[str, Any]]:
    """Return what lies in a state folder, one level deep: names, sizes in bytes, permissions. Raises OSError."""
    rows = []
    for path in sorted(home.iterdir()):
        found = path.lstat()
        rows.append({"name": path.name, "bytes": found.st_size, "mode": f"{found.st_mode & 0o7777:o}"})
    return rows
