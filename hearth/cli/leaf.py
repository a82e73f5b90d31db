"""What every command shares: the global options, one `Run` with settings, client and output, and how a command ends."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hearth.base.errors import BadDestination, ConfigError, UsageError
from hearth.cli.output import Output

if TYPE_CHECKING:
    from hearth.client import Client

F = TypeVar("F", bound=Callable[..., Any])

GLOBALS: Mapping[str, click.Option] = {
    option.name or "": option
    for option in (
        click.Option(["--json", "as_json"], is_flag=True, help="One JSON object on stdout, JSON Lines for streams."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Ids only."),
        click.Option(["--yes"], is_flag=True, help="Answer yes to every question."),
        click.Option(["--dry-run"], is_flag=True, help="Say what would be done; sign, send and write nothing."),
        click.Option(["--network"], metavar="NAME|FILE", help="The network, a name or a file."),
        click.Option(["--account"], metavar="NAME|ADDRESS", help="The key to act with."),
        click.Option(["--password-file"], metavar="FILE", help="A file of mode 600 with the key's password."),
        click.Option(["--rpc"], metavar="URL", multiple=True, help="RPC address; may be repeated."),
        click.Option(["--timeout"], metavar="TIME", help="How long to wait, such as 10m."),
    )
}
"""The options of every command, before or after its name; the later one wins."""
POSTS: Final = "jobs.post"
"""The label of the call that posts a job."""
_SETTINGS = ("network", "account", "password_file", "rpc", "timeout")


def global_options(function: F) -> F:
    """Add the global options to a click command's function."""
    params = list(GLOBALS.values())
    known: list[click.Parameter] = getattr(function, "__click_params__", [])
    function.__click_params__ = [*reversed(params), *known]  # type: ignore[attr-defined]
    return function


class Run:
    """One invocation: its output, its client, and how it ends."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.yes = bool(given["yes"])
        self.dry_run = bool(given["dry_run"])
        self.out = Output(as_json=bool(given["as_json"]), quiet=bool(given["quiet"]))
        self.job: str | None = None
        """The job that this command posted or waits for, for whoever interrupts it."""
        self.posting: Mapping[str, Any] | None = None
        """The job that this command is about to post, and what finds it again (`once`)."""
        self.sending = ""
        """The call whose transaction may be on its way."""

    @cached_property
    def client(self) -> Client:
        """Return the client of this invocation's settings."""
        from hearth.client import Client
        from hearth.config.settings import load_settings

        flags = {name: self.given[name] or None for name in _SETTINGS}
        ask = self._ask if sys.stdin.isatty() else None
        return Client(load_settings(flags), tell=self._tell, dry_run=self.dry_run, ask_password=ask)

    def _tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "confirm":
            self._confirm(str(facts["text"]), bool(facts["needed"]))
            return
        if kind == "posted":
            self.job = str(facts["job"])
        elif kind == "posting":
            self.posting = facts
        elif kind == "step":
            self.sending = str(facts.get("sending", self.sending))
        elif kind == "tx":
            self.sending = ""
            if self.posting is not None and facts["action"] == POSTS:
                self.job = str(self.posting["job"])
        self.out.tell(kind, facts)

    def stopped(self) -> str:
        """Say where this command was interrupted, and what of it may go on without it."""
        if self.job is not None:
            return f"stopped waiting; job {self.job} is alive\n  next: hearth job show {self.job[:14]}"
        if self.posting is not None:
            job, once = str(self.posting["job"]), self.posting["once"]
            text = f"stopped; the post of job {job} may be on its way: {once}"
            return f"{text}\n  next: hearth job show {job[:14]}"
        if self.sending:
            return f"stopped; {self.sending} may be on its way: the same command looks for it first"
        return "stopped"

    def _confirm(self, question: str, needed: bool) -> None:
        """Ask before money is spent: on a terminal always, elsewhere only where the user named no price."""
        if self.yes:
            return
        if sys.stdin.isatty():
            self.out.pause()
            click.confirm(question, abort=True, err=True)
        elif needed:
            raise ConfigError(
                f"{question} There is no terminal to ask on", hint="use --yes", code="NOT_CONFIRMED", component="cli"
            )

    def _ask(self, question: str) -> str:
        self.out.pause()
        answer: str = click.prompt(question, hide_input=True, err=True)
        return answer

    def save(self, make: Callable[[], Mapping[str, Any]], out: Path | None) -> None:
        """Print a document, or write it to a new file that only its owner reads.

        Raises UsageError FILE_EXISTS, BadDestination with nothing left behind.
        """
        if out is not None and out.exists():
            raise UsageError(f"{out} exists already", hint="name another file with --out", code="FILE_EXISTS")
        report = make()
        text = json.dumps(report, indent=1)
        if out is None or self.dry_run:
            self.out.emit(report, text.splitlines)
            return
        try:
            out.touch(mode=0o600, exist_ok=False)
            out.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            with suppress(OSError):
                out.unlink(missing_ok=True)
            raise BadDestination(
                f"{out} cannot be written: {error.strerror}", hint="name another place with --out"
            ) from error
        without = [f"  without {name}: {why}" for name, why in report.get("missing", {}).items()]
        lines = [f"wrote {out}: read it, then send it to whoever helps you", *without]
        self.out.emit(report, lambda: lines, [str(out)])

    def close(self) -> None:
        """Release what the client opened."""
        self.out.close()
        if "client" in self.__dict__:
            if strays := self.client.session.strays:
                self.out.tell("warning", {"text": strays.in_words()})
            self.client.close()


_MENTION: Final = re.compile(r"\bhearth((?: (?!hearth\b)[a-z][a-z-]*)+)")
NO_MARKET: Final = ("devnet", "demo", "init", "convert", "completion")
"""Commands that make or need no market's file."""


def _carried_by(ctx: click.Context, run: Run) -> dict[str, str]:
    """Return the options by which this command was pointed at something else than it is by default."""
    found = {}
    if run.given["network"]:
        found["--network"] = str(run.given["network"])
    default = next((param.default for param in ctx.command.params if param.name == "config"), None)
    config = ctx.params.get("config")
    if config is not None and config != default:
        found["--config"] = str(config)
    return found


def _leaf_of(root: click.Context, words: list[str]) -> tuple[click.Command | None, int]:
    """Return the command that words begin with, and how many of them name it; None where they name none."""
    command: click.Command | None = root.command
    for taken, word in enumerate(words):
        if not isinstance(command, click.Group):
            return command, taken
        try:
            command = command.get_command(root, word)
        except ConfigError:  # another program's command that cannot be had
            return None, 0
    return (None, 0) if isinstance(command, click.Group) else (command, len(words))


def carried(root: click.Context, options: Mapping[str, str], text: str) -> str:
    """Return a hint whose commands of ours carry the options that they take: they are run as they are read.

    `hearth worker start` is another worker's where this one was asked about by `--config second.toml`. Options stand
    right behind a command's own words, so that nobody has to know where in the text a command ends.
    """
    parts, at = [], 0
    mentions = list(_MENTION.finditer(text)) if options else []
    for found, following in zip_longest(mentions, mentions[1:]):
        leaf, taken = _leaf_of(root, words := found[1].split())
        if leaf is None or words[0] in NO_MARKET:
            continue
        end = found.start() + len(" ".join(("hearth", *words[:taken])))
        said = text[end : following.start() if following else None]
        known = {name for param in leaf.params for name in param.opts}
        new = [
            f" {name} {shlex.quote(value)}"
            for name, value in options.items()
            if name in known and f" {name} " not in said
        ]
        parts += [text[at:end], *new]
        at = end
    return "".join((*parts, text[at:]))


class Leaf(click.Command):
    """A command whose function is called with a `Run` first and its own parameters after."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *GLOBALS.values()]

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function; an option given here wins over the same one given before the command."""
        outer = ctx.find_root().obj or {}
        own = {name: ctx.params.pop(name) for name in GLOBALS}
        given = {name: own[name] or outer.get(name) for name in GLOBALS}
        run = Run(given)
        ctx.find_root().meta["hearth.run"] = run
        run.out.carry = partial(carried, ctx.find_root(), _carried_by(ctx, run))
        assert self.callback is not None
        try:
            return self.callback(run, **ctx.params)
        finally:
            run.close()
