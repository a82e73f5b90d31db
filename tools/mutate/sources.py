"""Which sources are mutated, and the tests that are run on a mutant of each."""

from __future__ import annotations

from pathlib import Path

from tools.vyper_files import ROOT

WRITTEN = ("packing", "reasons", "reason_texts")
"""Modules that are written from tables: `make check` compares them. How they are used is mutated where they are."""
_CONTRACTS = "tests/contracts/"
_ARITHMETIC = ("tests/protocol/test_formulas.py", "tests/protocol/test_parents.py")
_MARKET = ("tests/attacks", "tests/stateful/test_market.py")
_JOBS = (f"{_CONTRACTS}job_registry", f"{_CONTRACTS}attesters", f"{_CONTRACTS}rules", f"{_CONTRACTS}lens")
TESTS: dict[str, tuple[str, ...]] = {
    "Attesters": (f"{_CONTRACTS}attesters", "tests/attacks"),
    "Escrow": (f"{_CONTRACTS}escrow", f"{_CONTRACTS}job_registry", "tests/stateful", "tests/attacks"),
    "JobRegistry": (*_JOBS, f"{_CONTRACTS}test_ids.py", *_MARKET),
    "Lens": (f"{_CONTRACTS}lens", *_MARKET),
    "NodeRegistry": (f"{_CONTRACTS}node_registry", f"{_CONTRACTS}steward", *_JOBS, *_MARKET),
    "Rules": (f"{_CONTRACTS}steward", *_JOBS, *_MARKET),
    "Steward": (f"{_CONTRACTS}steward", "tests/attacks"),
    "leases": (*_ARITHMETIC, *_JOBS, *_MARKET),
    "reputation": (_ARITHMETIC[0], f"{_CONTRACTS}node_registry", *_JOBS, *_MARKET),
    "scoring": (_ARITHMETIC[0], f"{_CONTRACTS}node_registry", *_JOBS, *_MARKET),
}
"""The tests that are run on a mutant of each source. None of them reads the artifacts that are in git."""

AREAS = ("worker/decide", "keeper", "hearth/chain", "hearth/storage", "hearth/client")
"""Where Python is mutated: what decides, what reads the chain and blocks, and what users call."""
WITHOUT_PROCESSES = (
    "-m",
    "not e2e and not docker and not kubo and not stateful and not deep",
    "-p",
    "no:cacheprovider",
)
"""Pytest's options for the tests that are run on a mutant of Python."""
FOLDERS = tuple(f"tests/{folder}" for folder in ("chain", "cli", "client", "daemon", "keeper", "storage", "worker"))
"""Where these tests are."""


def python_files() -> dict[Path, str]:
    """Return the name of each module that is mutated, by its file."""
    files = [file for area in AREAS for file in sorted((ROOT / area).rglob("*.py")) if file.stem != "__main__"]
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return {file: name.removesuffix(".__init__") for file, name in zip(files, names, strict=True)}
