"""Folders to start a project from, one a kind of job: each works as it is written.

A folder beside this file that holds a job.yaml is a template; its name is the template's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import UsageError
from hearth.base.found import PROJECT_FILE
from hearth.config.trust import Trust

DEFAULT: Final = "wasm"
_HERE: Final = Path(__file__).parent
_JOB: Final = "job.yaml"
_PROJECT: Final = """\
# Settings of this project; a flag or HEARTH_... in the environment wins over them. Secrets stay in files of mode 600.
network = {network}
# account = "dev"
# password_file = "password.txt"
# timeout = "10m"
"""


@dataclass(frozen=True, slots=True)
class Written:
    """The files that were made (or, in a dry run, would be), and those that were there already and are as they were."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def names() -> list[str]:
    """Return the templates' names, the default first."""
    found = sorted(path.parent.name for path in _HERE.glob(f"*/{_JOB}"))
    return sorted(found, key=lambda name: name != DEFAULT)


def write(folder: Path, template: str, network: str, *, dry_run: bool = False, trust: Trust | None = None) -> Written:
    """Write hearth.toml and the files of a template into `folder`; a file that exists is left alone.

    `trust` learns that commands may use the hearth.toml. Raises UsageError NO_TEMPLATE, and OSError where a file cannot
    be written.
    """
    if template not in names():
        raise UsageError(
            f'there is no template "{template}"', hint=f"use one of {', '.join(names())}", code="NO_TEMPLATE"
        )
    from hearth.config.sections import toml

    source = _HERE / template
    files = {Path(PROJECT_FILE): _PROJECT.format(network=toml(network)).encode()}
    for path in sorted(source.rglob("*")):
        # An installer compiles every .py that it installs.
        if path.is_file() and path.parent.name != "__pycache__":
            files[path.relative_to(source)] = path.read_bytes()
    written, kept = [], []
    for name, content in files.items():
        path = folder / name
        if path.exists():
            kept.append(path)
            continue
        if not dry_run:
            if trust is not None and name == Path(PROJECT_FILE):
                trust.record(path, content)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        written.append(path)
    return Written(tuple(written), tuple(kept))
