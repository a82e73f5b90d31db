"""What every command shares: the global options, one `Run` with settings, client and output, and how a command ends."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hearth.base.errors import ConfigError, UsageError
from hearth.base.files import new_file
from hearth.base.text import one_line, quoted
from hearth.cli.output import Output
from hearth.config.trust import Trust

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
        click.Option(["--code"], metavar="HASH", multiple=True, help="Pay contracts of this code, which is not ours."),
        click.Option(["--timeout"], metavar="TIME", help="How long to wait, such as 10m."),
    )
}
"""The options of every command, before or after its name; the later one wins."""


class _Out(click.Path):
    """A file to write; "-" is stdout, which a command without such a file writes to."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return None if value == "-" else super().convert(value, param, ctx)


class _NewFile(click.Path):
    """A file to write by a command whose summary goes to stdout."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("this command writes a file, and says on stdout what it wrote: name a file", param, ctx)
        return super().convert(value, param, ctx)


OUT: Final = _Out(dir_okay=False, path_type=Path)
"""What names a file for what is printed without it."""
NEW_FILE: Final = _NewFile(path_type=Path)
"""What names a file that a command must have."""
POSTS: Final = "jobs.post"
"""The label of the call that posts a job."""
_SETTINGS = ("network", "account", "password_file", "rpc", "code", "timeout")


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
        self.vouched = 0
        """How often somebody was asked about a file that was found."""

    @cached_property
    def client(self) -> Client:
        """Return the client of this invocation's settings."""
        from hearth.client import Client
        from hearth.config.settings import load_settings

        flags = {name: self.given[name] or None for name in _SETTINGS}
        there = sys.stdin.isatty()
        settings = load_settings(flags, ask=self.vouch if there else None, remember=not self.dry_run)
        ask = self._ask if there else None
        client = Client(settings, tell=self._tell, dry_run=self.dry_run, ask_password=ask)
        client.session.program = False
        return client

    def vouch(self, question: str) -> bool:
        """Ask whether a file that was found may be used. --yes is no answer: it was given before the question."""
        self.vouched += 1
        self.out.pause()
        return click.confirm(one_line(question), err=True)

    def use_found(self, path: Path, raw: bytes) -> None:
        """Refuse a settings file that no option named, where nobody vouches for what was read of it.

        Raises ConfigError UNKNOWN_FILE.
        """
        settings = self.client.session.settings
        trust = settings.trust or Trust(settings.home)
        shown = shlex.quote(str(path))
        trust.require(path, raw, f"{quoted(str(path.absolute()))} was found", named=f"--config {shown}")

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
        """Ask before something is done: on a terminal always, elsewhere only where an answer is `needed`.

        Raises ConfigError NOT_CONFIRMED where the answer is no, or none can be had: what a pipe says is no answer.
        """
        if self.yes:
            return
        if sys.stdin.isatty():
            self.out.pause()
            if not click.confirm(one_line(question), err=True):
                said, hint = "the answer was no: nothing was sent", "the same command asks again"
                raise ConfigError(said, hint=hint, code="NOT_CONFIRMED", component="cli")
        elif needed:
            said = f"{question} There is no terminal to ask on: nothing was sent"
            context = click.get_current_context(silent=True)
            place = "" if context is None or context.allow_interspersed_args else ", before IMAGE or MODULE"
            raise ConfigError(said, hint=f"use --yes{place}", code="NOT_CONFIRMED", component="cli")

    def _ask(self, question: str) -> str:
        self.out.pause()
        answer: str = click.prompt(one_line(question), hide_input=True, err=True)
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
        with new_file(out, private=True) as made:
            made.write(f"{text}\n".encode())
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
_WORKER_TOML: Final = re.compile(r"(?<![\w./-])worker\.toml(?!\.?\w)")
NO_MARKET: Final = ("devnet", "demo", "init", "convert", "completion", "trust")
"""Commands that make or need no market's file."""


def _carried_by(ctx: click.Context, run: Run) -> dict[str, str]:
    """Return the options by which this command was pointed at something else than it is by default."""
    found = {name: str(run.given[name[2:]]) for name in ("--network", "--account") if run.given[name[2:]]}
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

    `hearth worker start` is another worker's where this one was asked about by `--config second.toml`, and
    `hearth worker exit --finish` would sign with another key than that of `--account owner`. Options stand
    right behind a command's own words, so that nobody has to know where in the text a command ends. A hint that says
    worker.toml means the file that this command was given.
    """
    if config := options.get("--config"):
        text = _WORKER_TOML.sub(lambda _: config, text)
    parts, at = [], 0
    mentions = list(_MENTION.finditer(text)) if options else []
    for found, following in zip_longest(mentions, mentions[1:]):
        leaf, taken = _leaf_of(root, words := found[1].split())
        if leaf is None or words[0] in NO_MARKET:
            continue
        end = found.start() + len(" ".join(("hearth", *words[:taken])))
        said = text[end : following.start() if following else None]
        known = {name for param in leaf.params for name in param.opts}
        if not isinstance(leaf, ActingLeaf):
            known.discard("--account")
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


class ActingLeaf(Leaf):
    """A command that acts as an account or shows what is its; any other does the same for each account."""
