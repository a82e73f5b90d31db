"""Run one parser under atheris, which follows the coverage of Hearth's own code: python -m tests.fuzz.engine NAME ARGS.

ARGS are libFuzzer's. Each 1,000 inputs the number of those that the parser took is written to the file that the
environment's HEARTH_FUZZ_TAKEN names. An input that breaks a rule is left as crash-... by libFuzzer, which then ends.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from typing import Any

import atheris  # type: ignore[import-not-found]  # its own lock, for `make fuzz-parsers` alone

with atheris.instrument_imports(include=["hearth", "worker", "keeper"]):
    from tests.fuzz.mutate import MUTATE
    from tests.fuzz.target import check, quiet
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz the named parser until libFuzzer ends the process."""
    target = TARGETS[sys.argv[1]]
    seeds = list(target.seeds())
    counter = os.open(os.environ["HEARTH_FUZZ_TAKEN"], os.O_WRONLY)
    runs = taken = 0

    def one(data: bytes) -> None:
        nonlocal runs, taken
        runs += 1
        taken += check(target, data)
        if runs % 1000 == 0:
            os.pwrite(counter, b"%d %d\n" % (taken, runs), 0)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if draw.randrange(4) < (1 if target.kind in ("json", "text") else 3):
            return bytes(atheris.Mutate(data, most))
        # Most of what libFuzzer keeps is refused early: from a valid input, more of the parser is reached.
        base = draw.choice(seeds) if draw.randrange(2) else data
        return MUTATE[target.kind](base, draw, seeds)[:most]

    atheris.Setup(sys.argv[1:], one, custom_mutator=mutate)
    with quiet():
        atheris.Fuzz()


def end(*error: Any) -> None:
    """Print an error and end at once: atheris waits for ever for the interpreter's lock when one ends with an error."""
    traceback.print_exception(*error)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.excepthook = end
    main()
