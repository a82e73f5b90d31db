"""The judge Attesters, in words: a result is paid for once enough keys of a job's set have signed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hearth.client.judges.attester_files import set_beside
from hearth.client.views import moment
from hearth.protocol import formulas

if TYPE_CHECKING:
    from collections.abc import Callable

    from hearth.client.judges.port import Judge
    from hearth.client.reports import PlannedJudge
    from hearth.jobfile import LoadedSpec
    from hearth.protocol.attest import AttesterSet
    from hearth.protocol.types import Terms


class Attested:
    """What the client says of contracts/Attesters.vy."""

    contract = "Attesters"

    def who(self, terms: Terms) -> str:
        """Name the set that a job commits to."""
        return f"enough attesters of the set {terms.judge_data:#066x}"

    def confirming(self, until: str) -> str:
        """Name the two commands: one signs, the other sends."""
        return (
            f"its attesters may sign it until {until}, hearth job attest JOB, and anyone sends what they signed, "
            "hearth job confirm JOB FILE --attesters FILE"
        )

    def notice(self, job: str, terms: Terms) -> str:
        """Say until when they decide, and how."""
        return (
            f"its attesters decide until {moment(terms.deadline + terms.challenge_window)}: each signs with "
            f"hearth job attest {job} --out FILE, and anyone sends hearth job confirm {job} FILE --attesters SET; "
            f"hearth job accept {job} pays without them"
        )

    def asked(self, loaded: LoadedSpec) -> AskedAttesters | None:
        """Read the set that `verify.attesters` names. Raises SpecError with that field."""
        named = loaded.spec.verify.attesters
        return None if named is None else AskedAttesters(self, set_beside(loaded.folder, named))


@dataclass(frozen=True, slots=True)
class AskedAttesters:
    """The set of a planned job."""

    judge: Judge
    attesters: AttesterSet

    @property
    def data(self) -> int:
        """Return the commitment to the set."""
        return self.attesters.judge_data

    @property
    def fuel_by(self) -> str:
        """Attesters sign a result's fuel with it."""
        return "which attesters sign"

    def facts(self, terms: Terms) -> PlannedJudge:
        """Return the set, and until when and for how much it decides."""
        return {
            "contract": terms.judge,
            "digest": f"{self.data:#066x}",
            "keys": list(self.attesters.keys),
            "quorum": self.attesters.quorum,
            "window": terms.challenge_window,
            "unproven_from": terms.deadline + terms.challenge_window,
            "slash": str(formulas.slash_of(terms)),
        }

    def sentence(self, terms: Terms, amount: Callable[[int], str]) -> str:
        """Say in one sentence who decides whether a result is paid for, by when, and what happens else."""
        found = self.facts(terms)
        return (
            f"paid for once {found['quorum']} of the {len(found['keys'])} attesters have signed its result "
            "(hearth job attest JOB) or you accept it; what nobody has confirmed by "
            f"{moment(found['unproven_from'])} is refunded, and costs its worker {amount(int(found['slash']))}; "
            f"workers must accept the set {found['digest']}"
        )
