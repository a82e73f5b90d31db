"""A project to start from: settings and a template's files, or another system's job file made one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hearth.client.reports import ConvertedJob, ProjectFiles

from hearth.base.errors import NotFoundError
from hearth.local import templates


def write_project(folder: Path | None, template: str, *, network: str, dry_run: bool = False) -> ProjectFiles:
    """Write hearth.toml and the files of a template (a job and its program); what exists is left alone."""
    made = templates.write(folder or Path(), template, network, dry_run=dry_run)
    return {
        "schema": "hearth.init/1",
        "template": template,
        "written": [str(path) for path in made.written],
        "kept": [str(path) for path in made.kept],
        "dry_run": dry_run,
    }


def convert_file(file: Path) -> ConvertedJob:
    """Return the job that says what another system's job file says, and what could not be carried over.

    Raises NotFoundError NO_SPEC_FILE, UsageError UNKNOWN_FORMAT, NOT_CONVERTIBLE.
    """
    from hearth.spec import as_data
    from hearth.spec.convert import convert

    try:
        raw = file.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be read: {error.strerror}", hint="hearth convert --help", code="NO_SPEC_FILE"
        ) from error
    made = convert(raw, str(file))
    return {
        "schema": "hearth.convert/1",
        "format": made.format.name,
        "job": as_data(made.spec),
        "notes": [{"key": note.key, "why": note.why} for note in made.notes],
    }
