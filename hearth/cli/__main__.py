"""Run the command line: `hearth`, or `python -P -m hearth.cli`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130

try:
    import click

    from hearth.base.errors import HearthError, UsageError
    from hearth.base.files import refusal_of
    from hearth.cli.leaf import Run
    from hearth.cli.output import Output
    from hearth.cli.root import root
except KeyboardInterrupt:
    # The first fifth of a second of every command: Ctrl-C then is no fault to show a traceback of.
    print("\nstopped", file=sys.stderr)
    sys.exit(INTERRUPTED)

NEXT = {
    "spec": "correct it, then the same command",
    "cli": "hearth --help",
    "config": "hearth init writes a file to start from",
}
"""The next command where an error names none, by its component."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (commands.md "Commands")."""
    instruction = os.environ.get("_HEARTH_COMPLETE")
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "hearth", "_HEARTH_COMPLETE", instruction)
    argv = list(sys.argv[1:] if arguments is None else arguments)
    plain = Output(as_json="--json" in argv, quiet=False)
    context = root.make_context("hearth", [], resilient_parsing=True)
    try:
        with root.make_context("hearth", argv) as context:
            code = root.invoke(context)
        return int(code or 0)
    except HearthError as error:
        return _refused(error, context, plain)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return _interrupted(context, plain)
    except KeyboardInterrupt:
        return _interrupted(context, plain)
    except click.ClickException as error:
        refused = _usage(error)
        plain.fail(refused)
        return refused.exit_code
    except BrokenPipeError:
        # Whoever read our output has enough of it; the interpreter must not trip over it again at its end.
        sys.stdout = None
        return 0
    except OSError as error:
        return _refused(refusal_of(error), context, plain)


def _refused(error: HearthError, context: click.Context, plain: Output) -> int:
    error.hint = error.hint or NEXT.get(error.component, "hearth doctor")
    run = context.meta.get("hearth.run")
    # What follows a program on the command line is its own, a --json among it too.
    (run.out if isinstance(run, Run) else plain).fail(error)
    return error.exit_code


def _usage(error: click.ClickException) -> UsageError:
    """Return click's own refusals in our words: what, why, and what to write instead."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "hearth"
    hint = f"{path} --help"
    if isinstance(error, click.NoSuchOption):
        near = error.possibilities or []
        if near:
            hint = f"did you mean {near[0]}? {path} --help"
        return UsageError(f"{path} has no option {error.option_name}", hint=hint, code="UNKNOWN_OPTION")
    return UsageError(error.format_message(), hint=hint)


def _interrupted(context: click.Context, plain: Output) -> int:
    run = context.meta.get("hearth.run")
    plain.close()
    print(f"\n{run.stopped() if isinstance(run, Run) else 'stopped'}", file=sys.stderr)
    return INTERRUPTED


def program() -> int:
    """Run as a process of its own, which may hold a key: no core file of it, and no other process reads its memory."""
    try:
        from hearth.daemon.loop import harden

        harden()
        return main()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(program())
