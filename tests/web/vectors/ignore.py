"""Rules of .gitignore and .hearthignore, and which paths they leave out; a path begins with d (folder) or f (file)."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from hearth.base.errors import HearthError
from hearth.jobfile.workdir import RULE_FILES, workdir_rules
from hearth.storage import ignore
from tests.web.vectors import _chance

_RULES = (
    (
        "*.log",
        "*.log\n!keep.log",
        "!keep.log\n*.log",
        "build/",
        "/build",
        "build",
        "out/**",
        "**/target",
        "deep/**/target",
    )
    + (
        "foo/bar",
        "/foo/bar",
        "foo/",
        "foo/bar/",
        "\\#hash",
        "\\!bang",
        "#hash",
        "!bang",
        "!!bang",
        "!\\!bang",
        "doc/*.txt",
    )
    + (
        "cache[0-9]",
        "cache[!0-9]/",
        "cache[^0-9]",
        "star\\*name",
        "\\*.log",
        "\\*",
        "\\",
        "\\\\",
        "\\\\x",
        "q?",
        "?",
        "??",
    )
    + (
        "b/\n!b/keep.log",
        "*\n!plain\n!doc\n!doc/a.txt",
        "plain/",
        "sp ace",
        "plain   ",
        "plain\t ",
        "plain\\ ",
        "plain\\  ",
    )
    + (
        "\\ ",
        " ",
        " plain",
        "tail\u00a0",
        "tail\u3000\u2003",
        "tail\ufeff",
        "tail\x1f",
        "plain\r\n*.log\r",
        "a\u2028*.log",
    )
    + (
        "a\x0b*.log",
        "a\x85*.log",
        "a\x1c*.log",
        "**",
        "***",
        "****/x",
        "**/",
        "/**",
        "**/**",
        "a/**/b",
        "a/**/**/b",
        "a**b",
    )
    + (
        "a**/b",
        "/",
        "//",
        "//foo",
        "foo//bar",
        "/*",
        "/*/",
        "*/bar",
        "*/*",
        "*/*/*",
        "foo/*",
        "foo/**/",
        "**/foo/**",
        "x/**y",
    )
    + (
        "[]]",
        "[]a]",
        "[!]]",
        "[^]a]",
        "[!]",
        "[]",
        "[",
        "[a",
        "[a-",
        "[a-]",
        "[-a]",
        "[a-c]",
        "[a-c-e]",
        "[!a-c]",
        "[!-a]",
    )
    + (
        "[c-a]",
        "[z-]-a]",
        "[[]",
        "[[:alpha:]]",
        "[\\]]",
        "[\\\\]",
        "[\\-a]",
        "[a\\]",
        "[&&]",
        "[||~~]",
        "[.]",
        "[/]",
        "a[!b]c",
    )
    + (
        "a[/]c",
        "a[+-9]c",
        "[\u00e0-\u00ff]",
        "[\U0001f600-\U0001f6ff]",
        "[!\u00e9]",
        "\u00e9",
        "\U0001f600?",
        "*\U0001f600",
    )
    + (
        "A.LOG",
        "*.LOG",
        "a.(log|b)",
        "a+.log",
        "^a.log$",
        "a.log$",
        ".",
        "..",
        "./foo",
        "foo/../bar",
        ".*",
        ".env",
        "*~",
        "(",
    )
    + (
        "a{b,c}",
        "$x",
        "a|b",
        "",
        "\n\n",
        "#",
        "# c\n*.log",
        "!",
        "!/",
        "!\n*.log",
        "*.log\n!",
        "__proto__",
        "constructor/",
    )
    + (
        "*" * 60 + "z",
        "*a" * 40,
        "**/" * 40 + "z",
        "a*" * 20 + "/" + "*b" * 20,
        "[!a]*" * 20,
        "**/a*b/" * 9 + "z",
        "**/a/**/*b*",
        "?" * 300,
    )
)
_RULES += ("*/**", "*/**/x", "?**/x", "a/***/b", "***/b", "x/***", "**/*", "**/*.log/**", "b**/c.log", "/**/a", "a/**/")
_PATHS = (
    (
        "fa.log",
        "fA.LOG",
        "fkeep.log",
        "fb/c.log",
        "fb/keep.log",
        "db",
        "dbuild",
        "fbuild",
        "fbuild/x",
        "dsub/build",
        "fout/x/y",
    )
    + (
        "dout",
        "fdeep/a/b/target",
        "ddeep/target",
        "fdeep/target",
        "ffoo/bar",
        "dfoo",
        "dfoo/bar",
        "fx/foo/bar",
        "dx/foo",
    )
    + (
        "f#hash",
        "f!bang",
        "fsp ace",
        "fplain",
        "dplain",
        "fplain ",
        "f plain",
        "f ",
        "ftail",
        "ftail\ufeff",
        "fdoc/a.txt",
    )
    + (
        "fdoc/sub/a.txt",
        "fcache1",
        "dcacheA",
        "fstar*name",
        "fstarXname",
        "f*",
        "f\\",
        "f\\x",
        "fx",
        "fq1",
        "fq12",
        "fq",
        "fz",
    )
    + (
        "fa",
        "fb",
        "fc",
        "fe",
        "f-",
        "f]",
        "f[",
        "f[a",
        "f[a-",
        "f[]",
        "f&",
        "f|",
        "f~",
        "fa]",
        "f\\]",
        "f:]",
        "fa:]",
        "f.",
    )
    + (
        "fab",
        "faxb",
        "fa/b",
        "fa/x/b",
        "fa/x/y/b",
        "fa/c",
        "fa0c",
        "fa,c",
        "fabc",
        "faac",
        "f\u00e9",
        "f\u00f7",
        "f\U0001f600",
    )
    + (
        "f\U0001f600x",
        "f\U0001f601",
        "fx/\U0001f600",
        "f.env",
        "d.git",
        "f.gitignore",
        "fa/.env",
        "fa.b",
        "f^a.log$",
        "f(",
    )
    + (
        "fa+.log",
        "fa.(log|b)",
        "fa{b,c}",
        "f$x",
        "f__proto__",
        "dconstructor",
        "fx/y/z",
        "fx/ay",
        "fa~",
        "faaaaaaaaaaaaaaaaaaaaab",
    )
    + ("f" + "a" * 255, "f" + "ab/" * 80 + "z", "f" + "?" * 300, "f" + "\U0001f600" * 63)
)
_PATHS += (
    "f.env.local",
    "fa/.ENV",
    "d.\u017f\u017fh",
    "fa/x.\u212aey",
    "d.ssh",
    "f.ssh",
    "fa/Server.PEM",
    "fid_rsa",
    "fID_ED25519.pub",
    "da/.Git",
    "fa.key/b",
)
_PIECES = (
    "*",
    "**",
    "/",
    "?",
    "a",
    "b",
    "c",
    "ab",
    ".x",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[]a]",
    "[!]b]",
    "[b-",
    "]",
    "[",
    "-",
) + ("\\*", "\\", "!", "#", " ", "\u00e9", "\U0001f600", "**/", "/**", "/**/", "[\u00e9-\U0001f600]", "[!/]", "\\a")
_PARTS = ("a", "b", "ab", "abc", "a.x", "*", "]", "-", "\u00e9", "\U0001f600", "c", "[b-", "ca", "\\")


def cases() -> dict[str, Any]:
    """Return the vectors."""
    chance = _chance.source("ignore")
    made = ["\n".join(_pattern(chance) for _ in range(chance.randrange(1, 4))) for _ in _chance.rows(50)]
    places = sorted({_place(chance) for _ in range(90)})
    return {
        "paths": _PATHS,
        "rules": [{"rules": rules, **_judged(ignore.parse, rules, _PATHS)} for rules in _RULES],
        "random_paths": places,
        "random": [{"rules": rules, **_judged(ignore.parse, rules, places)} for rules in made],
        "workdirs": [{"files": files, **_judged(_workdir, files, _PATHS)} for files in _WORKDIRS],
    }


_WORKDIRS: tuple[dict[str, str], ...] = (
    {},
    {".gitignore": b"*.log\n.env\n".hex()},
    {".hearthignore": b"!.git/\n!.gitignore\nfoo/\n".hex()},
    {".gitignore": b"!.git\n!**/.hearth/**\n".hex(), ".hearthignore": b"!.hearth/\n!.git/**\n!.venv/\n!*\n".hex()},
    {".gitignore": b"*\n".hex(), ".hearthignore": b"!a.log\n!b\n!b/c.log".hex()},
    {".gitignore": b"*.log\r\n".hex(), ".hearthignore": b"\n\n#x\n!keep.log".hex()},
    {".gitignore": b"\xef\xbb\xbf*.log\n".hex()},
    {".gitignore": b"\xff".hex()},
    {".hearthignore": b"a\xc3".hex()},
    {".gitignore": b"[z-a]".hex()},
)


def _pattern(chance: random.Random) -> str:
    return "".join(chance.choices(_PIECES, k=chance.randrange(1, 7)))


def _place(chance: random.Random) -> str:
    return chance.choice("df") + "/".join(chance.choices(_PARTS, k=chance.randrange(1, 5)))


def _judged(make: Any, rules: Any, places: Any) -> dict[str, Any]:
    """Return which places are left out, by their numbers, or the code that refuses the rules."""
    try:
        left_out = make(rules)
    except HearthError as error:
        return {"code": error.code}
    found = [at for at, place in enumerate(places) if left_out(place[1:], place.startswith("d"))]
    return {"left_out": " ".join(map(str, found))}


def _workdir(files: dict[str, str]) -> ignore.Ignore:
    assert set(files) <= set(RULE_FILES)
    with tempfile.TemporaryDirectory(prefix="hearth-vectors-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_bytes(bytes.fromhex(text))
        return workdir_rules(Path(folder))
