"""The root of the command tree. Groups are imported when one of their commands runs, so that --help stays fast."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import click

from hearth.base.errors import ConfigError, UsageError
from hearth.cli.leaf import GLOBALS, global_options

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("local", "Show the market at work on a local chain of its own."),
    "init": ("local", "Write a project to start from: a job file and its program."),
    "trust": ("local", "Use settings and network files that were found in a folder."),
    "doctor": ("local", "Look at what this machine needs to submit jobs."),
    "devnet": ("local", "Run a local chain with the market on it."),
    "completion": ("local", "Print the completion script of a shell."),
    "wallet": ("wallet", "Keys and money."),
    "offers": ("jobs", "List the live workers' offers."),
    "check": ("jobs", "Check a job file, its price, and who could take it."),
    "convert": ("convert", "Make a job file of another system's: Akash, bacalhau, SkyPilot, Nosana, Compose."),
    "run": ("jobs", "Run a container image or a WASM module."),
    "submit": ("jobs", "Post the job of a file."),
    "jobs": ("jobs", "List jobs."),
    "job": ("jobs", "Look at a job, fetch its results, act on it."),
    "net": ("net", "Look at the whole market."),
    "store": ("store", "Bring files of blocks into the store, and out of it."),
    "web": ("web", "Serve the page to this machine's browser."),
    "gov": ("gov", "Change the market's defaults: late, and in the open."),
}
"""Each command's module below hearth.cli and its line in --help."""
EXTENSIONS: Final = "hearth.commands"
"""The group of entry points by which another program's commands join: name = "module:click command"."""


ELSEWHERE: Final = {
    "worker list": "hearth net workers",
    "workers": "hearth net workers",
    "job list": "hearth jobs",
    "net list": "hearth net jobs",
}
"""What people type who look for a list, and where it is; by its letters another command may be nearer."""


MOST_MEANT: Final = 3
NEAR, NEARER = 0.5, 0.75
"""How alike a name has to be to that of a command: of the same group where no other is near, and of any group."""


class Group(click.Group):
    """A group that says "did you mean" for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name. Raises UsageError UNKNOWN_COMMAND."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        path = ctx.command_path
        meant = _meant(ctx, name)
        hint = f"did you mean {' or '.join(meant)}? {path} --help" if meant else f"{path} --help"
        raise UsageError(f"{path} has no command {name}", hint=hint, code="UNKNOWN_COMMAND")


def _meant(ctx: click.Context, name: str) -> list[str]:
    """Return the commands that may be meant by a name which a group does not have, the likeliest alone where one is.

    A command of that very name in another group is likelier than one whose name is near: "logs" is no "jobs".
    """
    path = ctx.command_path
    known = ELSEWHERE.get(f"{path} {name}".partition(" ")[2])
    if known is not None:
        return [known]
    everywhere = list(_paths(ctx.find_root().command, ctx.find_root()))
    same = [one for one in everywhere if one.rpartition(" ")[2] == name]
    if same:
        return same[:MOST_MEANT]
    here = [one for one in everywhere if one.rpartition(" ")[0] == path]
    for paths, cutoff in ((here, NEARER), (everywhere, NEARER), (here, NEAR)):
        names = [one.rpartition(" ")[2] for one in paths]
        near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
        if near:
            return [one for one in paths if one.rpartition(" ")[2] == near[0]][:MOST_MEANT]
    return []


def _paths(command: click.Command, ctx: click.Context, path: str = "hearth") -> Iterator[str]:
    """Yield every command below one, by its whole path; one that cannot be loaded is none to suggest."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(ctx):
        yield f"{path} {name}"
        try:
            inner = command.get_command(ctx, name)
        except ConfigError:
            continue
        if inner is not None:
            yield from _paths(inner, ctx, f"{path} {name}")


@cache
def extensions() -> Mapping[str, EntryPoint]:
    """Return the entry points of other programs' commands, by name. A name of ours stays ours."""
    found = sorted(entry_points(group=EXTENSIONS), key=lambda point: point.name)
    return {point.name: point for point in found if point.name not in COMMANDS}


class Root(Group):
    """The `hearth` command: knows its commands' names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names: ours in the order of `COMMANDS`, then those of other programs."""
        return [*COMMANDS, *extensions()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command. Raises ConfigError BAD_EXTENSION where another program's cannot be had."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"hearth.cli.{COMMANDS[cmd_name][0]}")
            command: click.Command = getattr(module, cmd_name)
            return command
        point = extensions().get(cmd_name)
        return None if point is None else _load(point)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; of ours none is imported."""
        rows = [(name, line) for name, (_, line) in COMMANDS.items()]
        for name, point in extensions().items():
            try:
                rows.append((name, _load(point).get_short_help_str(120)))
            except ConfigError as error:
                rows.append((name, error.message))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _load(point: EntryPoint) -> click.Command:
    # Whatever another program's module raises at its import is its fault, and is named as such.
    try:
        command = point.load()
    except Exception as error:
        raise ConfigError(
            f"the command {point.name} of {point.value} cannot be loaded: {error!r}",
            hint="hearth --help",
            code="BAD_EXTENSION",
            component="cli",
        ) from error
    if not isinstance(command, click.Command):
        raise ConfigError(f"{point.value} is no command", hint="hearth --help", code="BAD_EXTENSION", component="cli")
    return command


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from hearth import __version__
        from hearth.market.network import PROTOCOL_VERSION

        click.echo(f"hearth {__version__} (protocol {PROTOCOL_VERSION})")
        ctx.exit()


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@global_options
@click.pass_context
def root(ctx: click.Context, /, **given: Any) -> None:
    """Hearth: a GPU job market in which the chain is the scheduler. Unaudited: use it with test money.

    \b
    Options that every command takes may stand before or after it.
    """
    ctx.obj = {name: given[name] for name in GLOBALS}
