"""Plant mutants of Python functions in a running process, and choose their tests by what these call.

A function is changed where it lives: its code object goes, and that of the changed source comes. So a mutant costs
neither a new process nor an import, and a test that calls no changed function need not run.
"""

from __future__ import annotations

import gc
import importlib
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools.mutate import record
from tools.mutate.mutants import Mutant

_Place = tuple[str, str]
"""A function: its file, and its name in it."""


@dataclass
class Functions:
    """Mutants of functions in `files`, by the names of their modules; `options` of pytest say which tests there are."""

    files: Mapping[Path, str]
    options: Sequence[str]
    spare: int = 30
    _places: list[_Place] = field(default_factory=list)
    _number_of: dict[int, int] = field(default_factory=dict)
    _live: dict[_Place, list[FunctionType]] = field(default_factory=dict)
    _reached: defaultdict[_Place, list[str]] = field(default_factory=lambda: defaultdict(list))

    def arguments(self, mutants: Sequence[Mutant]) -> list[str]:
        """Return pytest's options: which tests a function has is seen, not named."""
        return list(self.options)

    def begin(self, mutants: Sequence[Mutant]) -> None:
        """Import every module, and find its functions."""
        for module in self.files.values():
            importlib.import_module(module)
        names = {str(file) for file in self.files}
        live: defaultdict[_Place, list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # what is frozen is not listed
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename in names:
                live[one.__code__.co_filename, one.__code__.co_qualname].append(one)
        self._live, self._places = dict(live), list(live)
        for number, place in enumerate(self._places):
            for function in live[place]:
                self._number_of |= {id(code): number for code in _codes(function.__code__)}

    @contextmanager
    def watch(self) -> Iterator[Collection[int]]:
        """Note the functions that are called meanwhile, in this thread and in those that begin."""
        profiles: list[Profile] = []
        numbers: set[int] = set()

        def begin(*_: object) -> None:
            profiles.append(profile := Profile(builtins=False))
            profile.enable()

        threading.setprofile(begin)
        begin()
        try:
            yield numbers
        finally:
            threading.setprofile(None)
            profiles[0].disable()
            codes = {id(entry.code) for profile in profiles for entry in profile.getstats()}
            numbers.update(self._number_of[code] for code in codes & self._number_of.keys())

    def learn(self, test: str, reached: Collection[int]) -> None:
        """Take up the functions that a test called."""
        for number in reached:
            self._reached[self._places[number]].append(test)

    def chosen(self, mutant: Mutant, tests: Mapping[str, pytest.Item]) -> list[str]:
        """Return the tests that called the function, or one that was made in it."""
        file, name = _place(mutant)
        places = [place for place in self._places if place[0] == file and _is_within(place[1], name)]
        found = {test for place in places for test in self._reached[place]}
        return [test for test in tests if test in found]

    def plant(self, mutant: Mutant) -> str:
        """Exchange the code of a function, and of those that were made in it when its module was imported.

        INVALID where Python takes the text for none, or nobody has it.
        """
        functions = self._live.get(_place(mutant), [])
        try:
            whole = compile(mutant.text(), str(mutant.file), "exec")
            (new,) = {code for code in _codes(whole) if code.co_qualname == mutant.function}
            if any(function.__code__ == new for function in functions):
                return record.EQUIVALENT
            made = Counter(code.co_qualname for code in _codes(new))
            for code in _codes(new):
                # Two of one name, such as lambdas, could be taken for each other.
                living = self._live.get((str(mutant.file), code.co_qualname), []) if made[code.co_qualname] == 1 else []
                for function in living:
                    function.__code__ = code
        except (SyntaxError, ValueError):
            return record.INVALID
        return "" if functions else record.INVALID


def _place(mutant: Mutant) -> _Place:
    return str(mutant.file), mutant.function


def _is_within(name: str, function: str) -> bool:
    return name == function or name.startswith(f"{function}.<locals>.")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all that are in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
