"""Say which files of a working directory go into a job.

A working directory is packed as a UnixFS folder and is public, so what a project keeps out of its repository stays out
of its jobs: the rules are those of `.gitignore` in the directory's root, then those of `.hearthignore`, in which
`!pattern` takes back what the first left out. Ignore files in subfolders are not read. Symbolic links, pipes, sockets
and devices that no rule leaves out are refused by the importer.
"""

from __future__ import annotations

from pathlib import Path

from hearth.base.errors import SpecError
from hearth.storage import ignore
from hearth.storage.unixfs import Ignore

RULE_FILES = (".gitignore", ignore.FILE_NAME)


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
    rules = list(ignore.ALWAYS)
    for name in RULE_FILES:
        try:
            rules.append((root / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(
                f"workdir: {root / name} cannot be read: {error}", hint="make it a UTF-8 text file", field="workdir"
            ) from error
    return ignore.parse("\n".join(rules))
