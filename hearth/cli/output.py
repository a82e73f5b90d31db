"""How a command speaks: its result on stdout, progress and hints on stderr; text, JSON or ids."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hearth.base.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hearth.base.errors import HearthError
    from hearth.client.reports import Check

Lines = Iterable[str]
_INTRODUCES: Final = re.compile(r": hearth |next: |fix: ")
"""What stands before a command that a line tells its reader to run."""
_RANKS: Final = {"FAIL": 0, "WARN": 1, "PASS": 2}


class Output:
    """Print one command's result and progress. Bars and colours only on a terminal and without NO_COLOR."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.fancy = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and not quiet and not as_json
        self.carry: Callable[[str], str] = str
        """What writes the options that this command was called with into the commands that a hint names."""
        self._began = time.monotonic()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._tenths: dict[str, int] = {}

    # ---- results ----

    def emit(
        self, report: Mapping[str, Any], text: Callable[[], Lines], ids: Sequence[object] = (), *, ours: bool = True
    ) -> None:
        """Print a result: JSON, or with -q its ids, or its text.

        Into the commands that its text names, the options of this call are written, but where a program's own lines
        stand in it: those behind "| ", or all of it where it is not `ours`.
        """
        self.pause()
        if self.as_json:
            self._write(json.dumps(report))
        elif self.quiet:
            for one in ids:
                self._write(str(one))
        else:
            for line in text():
                carries = ours and not line.startswith("| ") and _INTRODUCES.search(line)
                self._write(_line(self.carry(line) if carries else line))

    def line(self, facts: Mapping[str, Any], text: str) -> None:
        """Print one element of a stream: a JSON line, or text."""
        self.pause()
        self._write(json.dumps(facts) if self.as_json else _line(text))

    def fail(self, error: HearthError) -> None:
        """Print an error: what happened, why, and the next command; with --json as an object on stdout."""
        self.close()
        if self.as_json:
            error.hint = self.carry(error.hint)
            self._write(json.dumps(error.as_dict()))
            return
        self.say_error(error)

    def say_error(self, error: HearthError) -> None:
        """Write an error as text to stderr."""
        self._say(f"error: {error.message}")
        if error.hint:
            self._say(f"  next: {self.carry(error.hint)}")

    def after(self, error: HearthError | None) -> int:
        """Say what was wrong with a result that was printed, where its JSON does not; return the exit status."""
        if error is None:
            return 0
        if not self.as_json:
            self.say_error(error)
        return error.exit_code

    # ---- progress ----

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Show progress on stderr."""
        if self.quiet:
            return
        if kind == "progress":
            self._progress(str(facts["what"]), int(facts["done"]), int(facts["total"]))
        elif kind == "tx":
            self._say(_line(tx_line(facts)))
        elif kind == "event":
            self._say(_line(f"{self._clock()} {event_line(facts)}"))
        else:
            text = f"warning: {facts['text']}" if kind == "warning" else str(facts["text"])
            self._say(_line(self.carry(text) if _INTRODUCES.search(text) else text))

    def _progress(self, what: str, done: int, total: int) -> None:
        if total < 1 << 20:
            return
        if not self.fancy:
            tenth = 10 * done // total
            if tenth > self._tenths.get(what, -1):
                self._tenths[what] = tenth
                self._say(f"{what}: {_mib(done)} of {_mib(total)}")
            return
        if self._bars is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bars = Progress(console=Console(stderr=True), transient=True)
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done)

    def pause(self) -> None:
        """Take the bars off the screen, before something else is written or asked."""
        if self._bars is not None:
            self._bars.stop()
            self._bars, self._tasks = None, {}

    def close(self) -> None:
        """End progress."""
        self.pause()

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.1f}s"

    def _say(self, text: str) -> None:
        text = printable(text)
        self.pause()
        if self.fancy:
            from rich.console import Console
            from rich.markup import escape

            style = "red" if text.startswith("error") else "dim" if text.endswith(": sending") else ""
            shown = f"[{style}]{escape(text)}[/]" if style else escape(text)
            Console(stderr=True, highlight=False).print(shown, soft_wrap=True)
            return
        print(text, file=sys.stderr, flush=True)

    @staticmethod
    def _write(text: str) -> None:
        print(text, flush=True)


def _line(text: str) -> str:
    """Return what is one line of ours as one line, tabs kept: a line end in it is a stranger's."""
    return printable(text).replace("\n", "\\n")


def tx_line(facts: Mapping[str, Any]) -> str:
    """Return a transaction in one line: what, hash, block, gas, fee, link."""
    if facts["tx"] is None:
        return f"{facts['action']}: would use {facts['gas']:,} gas, {facts['fee_text']}"
    link = f"  {facts['explorer']}" if facts["explorer"] else ""
    return (
        f"{facts['action']}: {facts['tx']}  block {facts['block']}  gas {facts['gas']:,}  fee {facts['fee_text']}{link}"
    )


def event_line(facts: Mapping[str, Any]) -> str:
    """Return an event in one line of a timeline."""
    unit = facts.get("unit")
    where = "" if unit is None else "all " if unit == "all" else f"unit {unit} "
    return f"{str(facts.get('job', ''))[:14]} {where}{facts['text']}".strip()


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return rows as aligned columns of text; none for no rows."""
    if not rows:
        return []
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def check_lines(checks: Sequence[Check], everything: bool) -> list[str]:
    """Return a table of checks: what fails, then what warns; and `everything`, or how much passes."""
    ranked = sorted(checks, key=lambda row: _RANKS[row["level"]])
    shown = list(checks) if everything else [row for row in ranked if row["level"] != "PASS"]
    rows = [(row["level"], row["name"], then(row["detail"], row["fix"], "fix")) for row in shown]
    lines, passed = table(("", "what", "found"), rows), len(checks) - len(shown)
    return lines if not passed else [*lines, f"passed: {passed} (--all shows them)"]


def then(text: str, command: str, word: str) -> str:
    """Return a text with what mends it, where there is anything."""
    return f"{text}  {word}: {command}" if command else text


def reload_lines(applied: Sequence[str], restart: Sequence[str]) -> list[str]:
    """Return what became of a settings file that a running program read again."""
    lines = [f"taken up: {', '.join(applied) or 'nothing, since nothing of it has changed'}"]
    if restart:
        lines.append(f"needs a restart, and stays as it was: {', '.join(restart)}")
    if any(key.startswith("offer.") for key in restart):
        lines.append("  what the market knows of [offer] changes by hearth worker price and hearth worker update")
    return lines


def _mib(size: int) -> str:
    """Return bytes in whole MiB, rounded down, or in GiB where they are whole ones."""
    from hearth.protocol.units import format_size

    return format_size(size >> 20 << 20) if size >> 20 else "0MiB"
