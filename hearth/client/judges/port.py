"""What the client asks of a judge contract that it knows: how it decides, in words, and what a job file gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from hearth.client.reports import PlannedJudge
    from hearth.jobfile import LoadedSpec
    from hearth.protocol.types import Terms


class Judge(Protocol):
    """A judge contract. What it decides is on the chain alone; here is what people are told of it."""

    @property
    def contract(self) -> str:
        """Return its name among the contracts of a network file."""

    def who(self, terms: Terms) -> str:
        """Say who decides on a job's results, as the subject of a sentence."""

    def confirming(self, until: str) -> str:
        """Say who may confirm a submitted result until a moment, and by which commands."""

    def notice(self, job: str, terms: Terms) -> str:
        """Say to whoever waits for a job what is to be done with a result of it that was submitted."""

    def asked(self, loaded: LoadedSpec) -> AskedJudge | None:
        """Return what a job file asks of this judge; None where it asks for another or none. Raises SpecError."""


class AskedJudge(Protocol):
    """What the terms of a planned job say to its judge, and what its submitter is told of it."""

    @property
    def judge(self) -> Judge:
        """Return the judge."""

    @property
    def data(self) -> int:
        """Return `judge_data` of the terms."""

    @property
    def fuel_by(self) -> str:
        """Say whose word the fuel of a result is."""

    def facts(self, terms: Terms) -> PlannedJudge:
        """Return what a report says of it."""

    def sentence(self, terms: Terms, amount: Callable[[int], str]) -> str:
        """Say when a result is paid for and what happens else; `amount` writes base units for people."""
