"""hearth convert: another system's job file, as a Hearth job file."""

from __future__ import annotations

from pathlib import Path

import click

from hearth.base.errors import UsageError
from hearth.base.files import new_file
from hearth.cli.leaf import OUT, Leaf, Run

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=Leaf)
@click.argument("file", type=FILE)
@click.option("-o", "--output", metavar="FILE", type=OUT, help="Write the job file there, where nothing is yet.")
def convert(run: Run, file: Path, output: Path | None) -> None:
    """Make a job file of another system's: Akash SDL, bacalhau, SkyPilot, Nosana, Docker Compose.

    \b
    One container without a network is asked. What could not be carried over is listed on stderr, key by key.
    Paths count from the folder of the file that -o names, without it from that of FILE.
    """
    from hearth.jobfile import dump_spec, local_sources, spec_from
    from hearth.local.project import convert_file

    report = convert_file(file, None if output is None else output.parent)
    spec = spec_from(report["job"]).spec
    text = dump_spec(spec)
    if output is not None:
        if output.exists():
            raise UsageError(f"{output} exists already", hint="name another file with -o", code="FILE_EXISTS")
        with new_file(output, dry_run=run.dry_run) as made_file:
            made_file.write(text.encode())
    if not run.out.as_json:
        for note in report["notes"]:
            run.out.tell("note", {"text": f"{note['key']}: {note['why']}"})
        has_paths = any("://" not in src for _, src in local_sources(spec))
        if output is None and has_paths and file.parent.resolve() != Path().resolve():
            run.out.tell("note", {"text": f"paths count from {file.parent}: save this there, or name a file with -o"})
    made = text.splitlines() if output is None else [f"{'would write' if run.dry_run else 'wrote'} {output}"]
    run.out.emit(report, lambda: made, made if output is None else [str(output)])
