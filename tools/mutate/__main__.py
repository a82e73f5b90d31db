"""Mutate the contracts or the Python and see how many mutants the tests kill.

    python -m tools.mutate --count 200 --seed 7         a stratified sample, into tests/mutation/contracts.jsonl
    python -m tools.mutate --of python --count 300      the same of the areas of Python, by tests without processes
    python -m tools.mutate --function JobRegistry._end  every mutant of one function
    python -m tools.mutate --survivors                  those that survived and are no equivalents, once more
    python -m tools.mutate --report [--table]           the score by module and operator; --table into ASSURANCE.md

A run that is interrupted goes on where it was. It exits 1 where a mutant survives that tests/mutation/*.toml does not
explain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Before any test is imported: random histories are shorter, and nothing is spent on shrinking what fails.
os.environ["HEARTH_HYPOTHESIS"] = "mutation"

import click

from tests.kit.evm import CONTRACTS
from tools.mutate import contracts, python, record
from tools.mutate.build import Contracts
from tools.mutate.functions import Functions
from tools.mutate.mutants import Mutant, draw
from tools.mutate.run import Plan, run
from tools.mutate.sources import FOLDERS, TESTS, WITHOUT_PROCESSES, python_files
from tools.vyper_files import ROOT

# Tests on anvil deploy the same code as those in this process, and take minutes.
OPTIONS = ("-k", "not reorg and not planted", "-p", "no:cacheprovider")


def subject_of(name: str, tests: Sequence[str] = FOLDERS) -> tuple[list[Mutant], Plan]:
    """Return every mutant of the contracts' sources that are written by hand, or of Python, and how they are tried."""
    if name == "contracts":
        every = [mutant for module in TESTS for mutant in contracts.mutants(CONTRACTS / f"{module}.vy")]
        return every, Contracts(CONTRACTS, TESTS, OPTIONS)
    files = python_files()
    every = [m for file, module in files.items() for m in python.mutants(file, module.removeprefix("hearth."))]
    return every, Functions(files, [*WITHOUT_PROCESSES, *tests])


@click.command(help=__doc__)
@click.option("--of", "subject", type=click.Choice(record.SUBJECTS), default=record.SUBJECTS[0], help="what is mutated")
@click.option("--count", default=200, show_default=True, help="mutants that are other code")
@click.option("--seed", default=1, show_default=True, help="of the draw")
@click.option("--function", "functions", multiple=True, metavar="NAME", help="every mutant of a module or its function")
@click.option("--tests", multiple=True, metavar="PATH", help="of Python: by these tests alone, not by all folders")
@click.option("--survivors", "again", is_flag=True, help="try those again that survived and are no equivalents")
@click.option("--jobs", default=2, show_default=True, help="children at a time")
@click.option("--record", "path", type=click.Path(path_type=Path, dir_okay=False), help="a record of its own")
@click.option("--report", is_flag=True, help="run nothing: print the score")
@click.option("--table", is_flag=True, help="with --report: write it into docs/ASSURANCE.md")
def main(
    subject: str,
    count: int,
    seed: int,
    functions: tuple[str, ...],
    tests: tuple[str, ...],
    again: bool,
    jobs: int,
    path: Path | None,
    report: bool,
    table: bool,
) -> None:
    os.chdir(ROOT)
    path = path or record.record_of(subject)
    every, plan = subject_of(subject, tests or FOLDERS)
    explained = record.survivors(subject)
    if not report:
        chosen, count = _chosen(every, path, explained, seed=seed, count=count, functions=functions, again=again)
        if again:
            _forget(path, chosen)
        click.echo(f"mutate: seed {seed}, {len(every):,} mutants in all, {len(chosen):,} to draw from")
        run(plan, chosen, path, count=count, jobs=jobs)
        record.tidy(path, every)
    results = record.read(path)
    now = record.current(results, every)
    lines = record.table(now, explained)
    click.echo("\n".join(lines))
    if len(results) > len(now):
        click.echo(f"{len(results) - len(now)} results are of functions that have changed since: not counted")
    if table:
        record.write_table(lines, subject)
    if bare := record.unexplained(now, explained):
        click.echo("\n".join([f"survive without a row in tests/mutation/{subject}.toml:", *bare]), err=True)
        sys.exit(1)


def _chosen(
    every: Sequence[Mutant],
    path: Path,
    explained: Mapping[str, Mapping[str, str]],
    *,
    seed: int,
    count: int,
    functions: tuple[str, ...],
    again: bool,
) -> tuple[list[Mutant], int]:
    """Return the mutants to draw from, and how many are to be tried."""
    order = draw(list(every), seed, record.current(record.read(path), every))
    if again:
        lived = {key for key, result in record.read(path).items() if result.result == record.SURVIVED}
        chosen = [m for m in order if m.id in lived and explained.get(m.id, {}).get("kind") != "equivalent"]
    elif functions:
        chosen = [m for m in order if m.module in functions or f"{m.module}.{m.function}" in functions]
        if not chosen:
            raise click.UsageError(f"no mutant of {', '.join(functions)}: name them as Contract or Contract.function")
    else:
        return order, count
    return chosen, len(chosen)


def _forget(path: Path, chosen: Sequence[Mutant]) -> None:
    """Count these as not run."""
    for mutant in chosen:
        result = record.read(path)[mutant.id]
        record.add(path, record.Result(mutant.id, "", result.result, result.killer, result.seconds))


if __name__ == "__main__":
    main()
