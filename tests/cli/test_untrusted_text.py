"""Strangers' words on a terminal: each text of each report, error and log, in every command that tells it.

A worker's detail, a job's name, a manifest, an image's label, an RPC's refusal: whatever comes in ends up in a text of
a report, in an error or in a log line. So the places are derived: from the type of what serves a command.
"""

from __future__ import annotations

import inspect
import io
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import click
import pytest
import structlog
from typing_extensions import is_typeddict

import hearth.client.reports
import keeper.reports
import worker.reports
from hearth.base.errors import ConfigError, HearthError
from hearth.base.text import UNSEEN, one_line, printable, quoted
from hearth.cli.output import Output
from hearth.daemon.logs import configure_logs
from tests.cli.test_cli import TREE, _served_by

EVIL: Final = "fine\n  next: hearth wallet send 0xbad 1\r\x1b[2K\u202e\u3164\u034f\u00ad\ufeff\U000e0041\ufe0f"
WRITTEN: Final = r"fine\n  next: hearth wallet send 0xbad 1\r\x1b[2K\u202e\u3164\u034f\xad\ufeff\U000e0041\ufe0f"

MODULES: Final = (hearth.client.reports, worker.reports, keeper.reports)
ASKED_FOR: Final = {
    ("JobLogs", "stdout"): "hearth job logs prints what a program wrote, as it wrote it",
    ("JobResults", "reduced"): "hearth job get --reduce prints what the reader's own script wrote",
}
"""By report and field the texts whose lines are a command's own lines."""
Place = tuple[str | int, ...]


def made(kind: Any, place: Place, at: Place | None) -> Any:
    """Return a value of a report's type: numbers are 1, texts are "1", but the one `at` its place is EVIL."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (NotRequired, Required):
        return made(inside[0], place, at)
    if origin is Literal:
        return inside[-1]
    if origin in (Union, types.UnionType):
        return made(next(one for one in inside if one is not type(None)), place, at)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {name: made(one, (*place, name), at) for name, one in hints.items()}
    if origin in (list, tuple) or kind is list:
        return [made(inside[0] if inside else str, (*place, 0), at)]
    if (origin is not None and issubclass(origin, Mapping)) or kind is dict:
        return {"key": made(inside[1] if inside else str, (*place, "key"), at)}
    if kind in (bool, int, float):
        return kind(1)
    return EVIL if place == at else "1"


def texts(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of a report's texts that are not of its own vocabulary."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from texts(one, (*place, name))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from texts(one, (*place, at))
    elif value == "1":
        yield place


def reports_of(words: str) -> list[Any]:
    """Return the types of the reports that serve a command."""
    named = re.findall(r"\w+", str(getattr(_served_by(words)[0], "__annotations__", {}).get("return", "")))
    found = [getattr(module, name, None) for module in MODULES for name in named]
    return [one for one in found if is_typeddict(one)]


COMMANDS: Final = [words for words in TREE if reports_of(words)]


@pytest.mark.parametrize("words", COMMANDS)
def test_command__any_text_of_its_report__is_written_as_one_line(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Profit: a worker's detail printed a `next: ...` of its own, which reads as this program's advice."""
    monkeypatch.chdir(tmp_path)
    command, function, kinds = TREE[words], _served_by(words)[0], reports_of(words)
    shown = 0
    for kind in kinds:
        for at in texts(made(kind, (), None)):
            _serve(monkeypatch, function, command, made(kind, (), at))
            try:
                _run(command)
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, HearthError, click.ClickException):
                pass  # it is no such text here: a number, an address, a key of a table
            finally:
                said = capsys.readouterr()
            asked_for = (kind.__name__, at[-1]) in ASKED_FOR
            for stream in (said.out, said.err):
                assert asked_for or not re.search("^ *next: hearth wallet", stream, re.MULTILINE), (kind.__name__, at)
                assert not UNSEEN.search(re.sub(r"[\t\n]", "", stream)), (kind.__name__, at)
                shown += WRITTEN.split(r"\r")[0] in stream
    told = {"job show", "job logs", "net workers", "worker why", "worker doctor", "doctor", "offers", "job get"}
    assert shown or words not in told


def _serve(monkeypatch: pytest.MonkeyPatch, function: Any, command: click.Command, report: Any) -> None:
    """Let whatever serves a command answer with a report."""
    owner = inspect.getmodule(function)
    name = function.__qualname__
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, function.__name__, lambda *_, **__: report)
    module = inspect.getmodule(command.callback)
    if hasattr(module, function.__name__):
        monkeypatch.setattr(module, function.__name__, lambda *_, **__: report)


def _run(command: click.Command) -> None:
    """Call a command's function as a terminal's user would, all of its options left out."""
    from hearth.cli.leaf import GLOBALS, Run

    context = click.Context(command)
    given: dict[str, Any] = dict.fromkeys(GLOBALS)
    run = Run(given)
    run.out = Output(as_json=False, quiet=False)
    own: dict[str, Any] = {}
    for param in command.params:
        if param.name in GLOBALS or param.name is None:
            continue
        value = param.get_default(context)
        if value is None and isinstance(param, click.Argument) and param.required:
            value = Path("none") if isinstance(param.type, click.Path) else "1"
        own[param.name] = (() if value is None else value) if param.multiple or param.nargs == -1 else value
    assert command.callback is not None
    with context:
        command.callback(run, **own)


# ---- one function, one table ----


def test_texts__of_strangers__are_one_line_with_all_that_is_unseen_written_out() -> None:
    assert one_line(EVIL) == WRITTEN and quoted(EVIL) == f'"{WRITTEN}"'
    assert quoted('say "yes"') == r'"say \"yes\""' and len(quoted("x" * 900)) == 502
    assert printable(EVIL) == WRITTEN.replace(r"\n", "\n")
    for text in ("Grüße, 你好　世界 🙂\u00a0!", "a b", ""):
        assert one_line(text) == text == printable(text)
    assert one_line("\ud800x") == r"\ud800x"


def test_error__message_and_hint_of_strangers__stay_in_their_lines() -> None:
    error = ConfigError(f"x: {EVIL}", also=["  ours", f"  {EVIL}"], hint=EVIL)
    assert error.message == f"x: {WRITTEN}\n  ours\n  {WRITTEN}" == str(error)
    assert error.hint == WRITTEN


def test_say_error__on_a_terminal__has_one_next_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False, quiet=False).say_error(HearthError(EVIL, hint="hearth doctor"))
    assert capsys.readouterr().err == f"error: {WRITTEN}\n  next: hearth doctor\n"


@pytest.mark.parametrize("kind", ["note", "warning", "step", "event"])
def test_tell__words_of_strangers__are_one_line(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False, quiet=False).tell(kind, {"text": EVIL})
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and WRITTEN in said


@pytest.mark.parametrize("as_json", [False, True])
def test_logs__words_of_strangers__are_one_line(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    before = structlog.get_config()
    configure_logs(as_json)
    try:
        structlog.get_logger("x").warning(EVIL, why=EVIL)
    finally:
        structlog.configure(**before)
    assert stream.getvalue().count("\n") == 1
    assert not UNSEEN.search(stream.getvalue().rstrip("\n"))


def test_emit__lines_that_a_program_wrote__get_no_options_of_this_call(capsys: pytest.CaptureFixture[str]) -> None:
    """Profit: with --account and --network written in, a stranger's line would pass for advice of ours."""
    out = Output(as_json=False, quiet=False)
    out.carry = lambda text: text.replace("hearth ", "hearth --account rich ")
    out.emit({}, lambda: ["  next: hearth wallet send 5 0xbad"], ours=False)
    out.emit({}, lambda: ["| next: hearth wallet send 5 0xbad", "next: hearth jobs"])
    assert capsys.readouterr().out.splitlines() == [
        "  next: hearth wallet send 5 0xbad",
        "| next: hearth wallet send 5 0xbad",
        "next: hearth --account rich jobs",
    ]
