"""Read back the status file of a program, which any program may have written and a crash may have cut."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from hearth.base.errors import ConfigError

Report = TypeVar("Report")


def process_lives(pid: int) -> bool:
    """Say whether a process runs; one that was killed and that nobody has buried yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    # Behind the name, which may hold anything, blanks and brackets included.
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def read_status_file(path: Path, kind: type[Report], *, component: str) -> Report | None:
    """Return the document at `path`, None where there is no file.

    `kind` is the report's TypedDict; keys beyond it are let through, so that an older program reads a newer one's
    file. Raises ConfigError BAD_STATUS where the file cannot be read or is something else.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        why = f"is damaged, or not what a {component} writes ({where}: {first['msg']})"
    raise ConfigError(
        f"the status file {path} {why}",
        code="BAD_STATUS",
        hint=f"move the file away: a running {component} writes it anew; then hearth {component} status",
        component=component,
    )
