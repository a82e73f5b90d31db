"""Say which files of a working directory go into a job.

A working directory is packed as a UnixFS folder and is public, so what a project keeps out of its repository stays out
of its jobs: the rules are those of `.gitignore` in the directory's root, then those of `.hearthignore`, in which
`!pattern` takes back what the first left out, but nothing of what no job takes (`ignore.ALWAYS`). Ignore files in
subfolders are not read. Symbolic links, pipes, sockets and devices that no rule leaves out are refused by the importer.
"""

from __future__ import annotations

from pathlib import Path

from hearth.base.errors import SpecError
from hearth.base.files import read_bounded
from hearth.base.found import IGNORE_FILE
from hearth.storage import ignore
from hearth.storage.unixfs import Ignore

RULE_FILES = (".gitignore", IGNORE_FILE)
MAX_RULE_BYTES = 1 << 20


def workdir_rules(root: Path) -> Ignore:
    """Return the function that `unixfs.import_path` asks whether to leave a path out.

    Raises SpecError when a rule file cannot be read or holds a malformed pattern, or when `root` is not a folder.
    """
    if not root.is_dir():
        raise SpecError(
            f"workdir: {root} is not a folder",
            hint="name a folder, or remove workdir",
            code="NO_WORKDIR",
            field="workdir",
        )
    rules = list(ignore.USUAL)
    for name in RULE_FILES:
        try:
            raw = read_bounded(root / name, MAX_RULE_BYTES)
            if len(raw) > MAX_RULE_BYTES:
                raise ValueError(f"it has more than {MAX_RULE_BYTES} bytes")
            rules.append(raw.decode())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise SpecError(
                f"workdir: {root / name} cannot be read: {error}", hint="make it a UTF-8 text file", field="workdir"
            ) from error
    own = ignore.parse("\n".join(rules))
    return lambda path, is_directory: own(path, is_directory) or ignore.no_job_takes(path, is_directory)
