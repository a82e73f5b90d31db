"""Judge contracts that the client knows. The next one is a file here that keeps to `port.Judge`, and a line in JUDGES.

One that is not here is named by its address: its jobs can be read, waited for and accepted, and not posted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hearth.client.judges.attested import Attested

if TYPE_CHECKING:
    from collections.abc import Callable

    from hearth.client.judges.port import AskedJudge, Judge
    from hearth.jobfile import LoadedSpec
    from hearth.market.network import Network
    from hearth.protocol.types import Terms

JUDGES: Final[tuple[Judge, ...]] = (Attested(),)


def judge_of(terms: Terms, network: Network) -> Judge | None:
    """Return the judge that a job's terms name on a network; None where they name none, or one that is not known."""
    return next((one for one in JUDGES if terms.judge == network.contracts.get(one.contract)), None)


def asked_judge(loaded: LoadedSpec) -> AskedJudge | None:
    """Return what a job file asks of a judge; None where it names none. Raises SpecError."""
    return next((asked for one in JUDGES if (asked := one.asked(loaded)) is not None), None)


def paid_when(asked: AskedJudge | None, terms: Terms, amount: Callable[[int], str]) -> str:
    """Say when a planned job's results are paid for; `amount` writes base units for people."""
    if asked is None:
        return "nobody can challenge this result, and it is paid for whatever it is: the job names no attesters"
    return asked.sentence(terms, amount)
