"""A project to start from: settings and a template's files, or another system's job file made one of ours.

And a user's word that what lies in a folder may be used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.base.errors import ConfigError, NotFoundError, UsageError
from hearth.base.files import AnyPath, path_of, read_bounded
from hearth.config.settings import MAX_FILE_BYTES, home_folder
from hearth.config.trust import Trust, spot
from hearth.local import templates

if TYPE_CHECKING:
    from hearth.client.reports import ConvertedJob, ProjectFiles, TrustedFiles


def write_project(
    folder: AnyPath | None, template: str, *, network: str, dry_run: bool = False, trust: Trust | None = None
) -> ProjectFiles:
    """Write hearth.toml and the files of a template (a job and its program); what exists is left alone.

    `trust` learns that commands may use the hearth.toml that was written.
    """
    made = templates.write(path_of(folder) or Path(), template, network, dry_run=dry_run, trust=trust)
    return {
        "schema": "hearth.init/1",
        "template": template,
        "written": [str(path) for path in made.written],
        "kept": [str(path) for path in made.kept],
        "dry_run": dry_run,
    }


def trust_files(files: Sequence[AnyPath], *, dry_run: bool = False) -> TrustedFiles:
    """Vouch for files that commands find, as they stand: each is read, or none counts. Raises ConfigError NO_FILE."""
    trust = Trust(home_folder(os.environ))
    read = []
    for file in map(path_of, files):
        try:
            raw = read_bounded(file, MAX_FILE_BYTES)
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be read: {error.strerror}", hint="hearth trust --help", code="NO_FILE"
            ) from error
        if len(raw) > MAX_FILE_BYTES:
            raise UsageError(
                f"{file} is larger than {MAX_FILE_BYTES} bytes: no file of settings is", hint="hearth trust --help"
            )
        read.append((file, raw))
    if not dry_run:
        for file, raw in read:
            trust.record(file, raw)
    return {"schema": "hearth.trust/1", "trusted": [str(spot(file)) for file, _ in read], "dry_run": dry_run}


def convert_file(file: AnyPath, folder: AnyPath | None = None) -> ConvertedJob:
    """Return the job that says what another system's job file says, and what could not be carried over.

    Its paths count from `folder`, where the job file is to lie, by default beside `file`.
    Raises NotFoundError NO_SPEC_FILE, SpecError UNKNOWN_FORMAT, NOT_CONVERTIBLE.
    """
    from hearth.jobfile import as_data
    from hearth.jobfile.convert import Note, convert
    from hearth.jobfile.convert.read import MAX_BYTES

    file = path_of(file)
    try:
        raw = read_bounded(file, MAX_BYTES)
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be read: {error.strerror}", hint="hearth convert --help", code="NO_SPEC_FILE"
        ) from error
    made = convert(raw, str(file))
    job, notes = as_data(made.spec), [*made.notes]
    here, there = (os.path.realpath(path_of(one)) for one in (file.parent, folder or file.parent))
    for holder, key, name in _paths_in(job) if here != there else ():
        holder[key] = os.path.relpath(os.path.join(here, holder[key]), there)
        if holder[key].startswith(".."):
            why = f"{holder[key]} lies outside the folder of the job file, and needs --allow-outside"
            notes.append(Note(name, f"{why}; {file.parent / 'job.yaml'} would not"))
    return {
        "schema": "hearth.convert/1",
        "format": made.format.name,
        "job": job,
        "notes": [{"key": note.key, "why": note.why} for note in notes],
    }


def _paths_in(job: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield where a converted job names each path: what holds it, its key, and the field."""
    named: list[tuple[dict[str, Any], str, str]] = [(job, key, key) for key in ("module", "workdir") if key in job]
    named += [(item, "src", f"inputs[{index}].src") for index, item in enumerate(job.get("inputs", []))]
    return (one for one in named if "://" not in one[0][one[1]])
