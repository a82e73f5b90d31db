"""Mutate the contracts and see how many mutants the tests kill.

    python -m tools.mutate --count 200 --seed 7         a stratified sample, into tests/mutation/record.jsonl
    python -m tools.mutate --function JobRegistry._end  every mutant of one function
    python -m tools.mutate --survivors                  those that survived and are no equivalents, once more
    python -m tools.mutate --report [--table]           the score by contract and operator; --table into ASSURANCE.md

A run that is interrupted goes on where it was. It exits 1 where a mutant survives that tests/mutation/survivors.toml
does not explain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Before any test is imported: random histories are shorter, and nothing is spent on shrinking what fails.
os.environ["HEARTH_HYPOTHESIS"] = "mutation"

import click

from tests.kit.evm import CONTRACTS
from tools.mutate import operators, record
from tools.mutate.operators import Mutant
from tools.mutate.run import Plan, run
from tools.mutate.sources import TESTS
from tools.vyper_files import ROOT

# Tests on anvil deploy the same code as those in this process, and take minutes.
OPTIONS = ("-k", "not reorg and not planted", "-p", "no:cacheprovider")


def population() -> list[Mutant]:
    """Return every mutant of every contract and module that is written by hand."""
    return [mutant for name in TESTS for mutant in operators.mutants(CONTRACTS / f"{name}.vy")]


@click.command(help=__doc__)
@click.option("--count", default=200, show_default=True, help="mutants that compile to other code")
@click.option("--seed", default=1, show_default=True, help="of the draw")
@click.option("--function", "functions", multiple=True, metavar="NAME", help="every mutant of Contract or its function")
@click.option("--survivors", "again", is_flag=True, help="try those again that survived and are no equivalents")
@click.option("--jobs", default=2, show_default=True, help="children at a time")
@click.option("--record", "path", type=click.Path(path_type=Path, dir_okay=False), default=record.RECORD)
@click.option("--report", is_flag=True, help="run nothing: print the score")
@click.option("--table", is_flag=True, help="with --report: write it into docs/ASSURANCE.md")
def main(
    count: int,
    seed: int,
    functions: tuple[str, ...],
    again: bool,
    jobs: int,
    path: Path,
    report: bool,
    table: bool,
) -> None:
    os.chdir(ROOT)
    every = population()
    explained = record.survivors()
    if not report:
        chosen, count = _chosen(every, path, seed=seed, count=count, functions=functions, again=again)
        if again:
            _forget(path, chosen)
        click.echo(f"mutate: seed {seed}, {len(every):,} mutants in all, {len(chosen):,} to draw from")
        run(Plan(CONTRACTS, TESTS, OPTIONS), chosen, path, count=count, jobs=jobs)
        record.tidy(path, every)
    results = record.read(path)
    now = record.current(results, every)
    lines = record.table(now, explained)
    click.echo("\n".join(lines))
    if len(results) > len(now):
        click.echo(f"{len(results) - len(now)} results are of functions that have changed since: not counted")
    if table:
        record.write_table(lines)
    if bare := record.unexplained(now, explained):
        click.echo("\n".join(["survive without a row in tests/mutation/survivors.toml:", *bare]), err=True)
        sys.exit(1)


def _chosen(
    every: Sequence[Mutant], path: Path, *, seed: int, count: int, functions: tuple[str, ...], again: bool
) -> tuple[list[Mutant], int]:
    """Return the mutants to draw from, and how many are to be tried."""
    order = operators.draw(list(every), seed, record.current(record.read(path), every))
    if again:
        explained = record.survivors()
        lived = {key for key, result in record.read(path).items() if result.result == record.SURVIVED}
        chosen = [m for m in order if m.id in lived and explained.get(m.id, {}).get("kind") != "equivalent"]
    elif functions:
        chosen = [m for m in order if m.contract in functions or f"{m.contract}.{m.function}" in functions]
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
