"""Ignore rules for packing a directory: the .gitignore language, read from `.hearthignore` in its root.

Source: the pattern format of gitignore(5). One file per tree; nested ignore files are not read.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from hearth.base.errors import SpecError
from hearth.base.found import IGNORE_FILE, KEEPER_FILE, PROJECT_FILE, WORKER_FILE
from hearth.base.text import folded
from hearth.storage.unixfs import Ignore

USUAL: Final = ("__pycache__/", ".venv/", IGNORE_FILE)
"""Rules that stand before the folder's own, which may take them back with "!"."""
SECRETS: Final = (
    *(".env", ".env.*", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".vault-token"),
    *(".git-credentials", "stored_tokens", "kaggle.json", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk"),
    *(".my.cnf", ".s3cfg", ".boto", "*.env", ".bash_history", ".zsh_history", "application_default_credentials.json"),
    *(".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", ".docker/", ".kaggle/", ".huggingface/", ".password-store/"),
    *(PROJECT_FILE, WORKER_FILE, KEEPER_FILE),  # addresses of RPCs with their tokens
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx"),
)
"""Where passwords, tokens and private keys lie by the custom of the programs that read them."""
ALWAYS: Final = (".git/", ".hearth/", *SECRETS)
"""What no job takes, whatever a folder's own rules say: the folder may be a stranger's."""


def no_job_takes(path: str, is_directory: bool) -> bool:
    """Say whether a path is one that no job takes, by its last part and in whatever case that is written."""
    return _always()(folded(path.rpartition("/")[2]), is_directory)


@cache
def _always() -> Ignore:
    return parse("\n".join(ALWAYS))


def parse(text: str) -> Ignore:
    """Return a function that tells whether a relative path is left out; of the rules that match, the last decides."""
    rules: list[tuple[re.Pattern[str], bool, bool]] = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.rstrip() if not line.endswith("\\ ") else line
        if not pattern or pattern.startswith("#"):
            continue
        keep = pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        directories_only = pattern.endswith("/")
        try:
            rules.append((_compile(pattern.rstrip("/")), directories_only, keep))
        except re.error as error:
            raise SpecError(
                f"ignore rule {line!r} (line {number}) is malformed: {error}",
                hint="correct it in .gitignore or .hearthignore",
            ) from error

    def ignored(path: str, is_directory: bool) -> bool:
        for pattern, directories_only, keep in reversed(rules):
            if (is_directory or not directories_only) and pattern.fullmatch(path):
                return not keep
        return False

    return ignored


_FOLDERS: Final = "(?:.*/)?"
_STAR: Final = "[^/]*"


def _compile(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern, in which only the last star and the last folders go back over a path.

    Each before them stops where what follows it first fits, for the next one takes whatever lies between. Otherwise a
    rule of ten stars would take hours over one path.
    """
    # A slash inside ties the pattern to the root; without one it matches at any depth.
    out = "" if "/" in pattern else _FOLDERS
    pattern = pattern.lstrip("/")
    at, star, folders = 0, -1, -1
    while at < len(pattern):
        stars = len(pattern) - at - len(pattern[at:].lstrip("*"))
        if stars > 1 and pattern[at - 1 : at] in ("", "/") and pattern.startswith("/", at + stars):
            if folders >= 0:
                out = f"{out[:folders]}(?>(?:.*?/)??{out[folders + len(_FOLDERS) :]})"
            out, at, star, folders = out + _FOLDERS, at + stars + 1, -1, len(out)
        elif pattern.startswith("/**", at) and at + 3 == len(pattern):
            out, at = out + "/.*", at + 3
        elif stars:
            if star >= 0:
                out = f"{out[:star]}(?>[^/]*?{out[star + len(_STAR) :]})"
            out, at, star = out + _STAR, at + stars, len(out)
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2 + pattern.startswith(("!", "^"), at + 1))) > 0:
            out, at = out + _class(pattern[at + 1 : end]), end + 1
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            out, at = out + re.escape(pattern[at + 1]), at + 2
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return re.compile(out, re.DOTALL)


def _class(body: str) -> str:
    """Return the expression for what stands between brackets; no class holds the slash."""
    negated = body.startswith(("!", "^"))
    parts = re.finditer("(.)-(.)|(.)", body[negated:], re.DOTALL)
    inside = "".join("-".join(re.escape(char) for char in part.groups() if char is not None) for part in parts)
    return f"(?!/)[{'^' if negated else ''}{inside}]"
