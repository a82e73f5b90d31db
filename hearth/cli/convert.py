"""hearth convert: another system's job file, as a Hearth job file."""

from __future__ import annotations

from pathlib import Path

import click

from hearth.base.errors import UsageError
from hearth.cli.leaf import Leaf, Run

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=Leaf)
@click.argument("file", type=FILE)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Write the job file there, where nothing is yet.")
def convert(run: Run, file: Path, output: Path | None) -> None:
    """Make a job file of another system's: Akash SDL, bacalhau, SkyPilot, Nosana, Docker Compose.

    \b
    One container without a network is asked. What could not be carried over is listed on stderr, key by key.
    """
    from hearth.local.project import convert_file
    from hearth.spec import dump_spec, spec_from

    report = convert_file(file)
    text = dump_spec(spec_from(report["job"]).spec)
    if output is not None:
        if output.exists():
            raise UsageError(f"{output} exists already", hint="name another file with -o", code="FILE_EXISTS")
        if not run.dry_run:
            output.write_text(text, encoding="utf-8")
    if not run.out.as_json:
        for note in report["notes"]:
            run.out.tell("note", {"text": f"{note['key']}: {note['why']}"})
    made = text.splitlines() if output is None else [f"{'would write' if run.dry_run else 'wrote'} {output}"]
    run.out.emit(report, lambda: made, made if output is None else [str(output)])
