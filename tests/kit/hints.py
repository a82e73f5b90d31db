"""The commands that a hint names, read as click reads them: whoever follows a hint types it, and it has to parse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from hearth.cli.root import root

_MENTION: Final = re.compile(r"\bhearth((?: (?!hearth\b)[a-z][a-z-]*)+)")
_TOKEN: Final = re.compile(r""" ("[^"]*"|'[^']*'|[^\s;`]+)""")
_VALUE: Final = re.compile(r"""[A-Z]+|X|0x\w*|\d\S*|\.{3}|-|["'].*["']|\S*[./|$]\S*""")
"""What a command is given: a NAME to be filled in, an id, a number, a quoted text, a file, A|B, the tests' X."""


def commands_in(text: str) -> Iterator[tuple[str, click.Command, list[str]]]:
    """Yield each command of ours that a text names: its words, itself, and the tokens that are its own.

    It ends where the text goes on in prose, at a comma, a semicolon, a colon or a bracket.
    """
    for found in _MENTION.finditer(text):
        command: click.Command = root
        words = found[1].split()
        taken = 0
        while isinstance(command, click.Group) and taken < len(words):
            inner = command.get_command(click.Context(command), words[taken])
            if inner is None:
                break
            command, taken = inner, taken + 1
        if isinstance(command, click.Group):
            continue  # a group is named, not a command of it
        path = " ".join(("hearth", *words[:taken]))
        yield path, command, list(_tokens(command, text, found.start() + len(path)))


def _tokens(command: click.Command, text: str, at: int) -> Iterator[str]:
    options = {name: param for param in command.params if isinstance(param, click.Option) for name in param.opts}
    choices = {one for param in command.params if isinstance(param.type, click.Choice) for one in param.type.choices}
    wants_value = False
    while (token := _TOKEN.match(text, at)) is not None:
        word = token[1].rstrip("),:?")
        if not wants_value and not word.startswith("-") and not _VALUE.fullmatch(word) and word not in choices:
            return
        yield word.strip("\"'")
        option = options.get(word)
        wants_value = not wants_value and option is not None and not option.is_flag and not option.count
        at = token.end()
        if word != token[1]:
            return


def faults_in(text: str) -> list[str]:
    """Return what click would say to each command that a text names, as far as it can be said without running it."""
    faults = []
    for path, command, tokens in commands_in(text):
        context = click.Context(command)
        if "--help" in tokens:
            continue
        try:
            given, rest, _ = command.make_parser(context).parse_args(tokens)
            _check(command, context, given, rest)
        except click.UsageError as error:
            faults.append(f"{path} {' '.join(tokens)}: {error.format_message()}")
    return faults


def _check(command: click.Command, context: click.Context, given: dict[str, object], rest: list[str]) -> None:
    """Refuse what click refuses once the tokens are sorted. Raises UsageError."""
    if rest:
        raise click.UsageError(f"unexpected {' '.join(rest)}")
    for param in command.params:
        value = given.get(param.name or "")
        if value is None or value == ():
            if param.required:
                raise click.MissingParameter(ctx=context, param=param)
        elif isinstance(param.type, click.Choice | click.IntRange) and not re.fullmatch(r"[A-Z]+", str(value)):
            param.type.convert(value, param, context)
