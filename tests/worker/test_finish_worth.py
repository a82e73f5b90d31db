"""Attack: a unit that bills next to nothing, whose settlement a worker pays for all the same.

What is not worth settling is left to keepers, whom the job's keeper fee pays (`worker.decide.own._settle`). A result
that may be finished is settled by its own worker at any gas price, up to all of its cap.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas
from hearth.protocol.gas import FINISH_GAS, SUBMIT_GAS
from hearth.protocol.types import COIN, Billing, Outcome, State
from tests.worker.test_decide import KEY, NOW, POLICY, RUNNING, dear, job_of, only, snapshot_of
from worker.decide import Execution, Finish, Skip, Stage
from worker.decide.worth import settle_pay

DONE = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32, b"\x02" * 32)


@pytest.mark.parametrize("seconds", [1, 5])
def test_decide__result_that_bills_dust__is_not_settled_for_more_gas_than_that_brings(seconds: int) -> None:
    """A submitter whose program ends at once has his keepers' work done by the node: 58,000 gas for a second's pay.

    The control is the same unit as a submitted one, of a node on probation say: there its settlement is left alone.
    """
    unit = replace(RUNNING, started=NOW - seconds)
    job = job_of(unit, billing=Billing.METERED, keeper_fee=8)
    submitted = replace(unit, state=State.SUBMITTED, outcome=Outcome.OK, mark=NOW)
    brings = settle_pay(job.terms, POLICY, submitted, NOW)
    price = 3 * brings * COIN // (FINISH_GAS - SUBMIT_GAS)
    control = only(snapshot_of(job_of(submitted, billing=Billing.METERED, keeper_fee=8)), dear(price))
    assert isinstance(control, Skip), "what was submitted is not settled at that price"
    found = only(snapshot_of(job, executions=(DONE,)), dear(price))
    more = formulas.ceil_div((FINISH_GAS - SUBMIT_GAS) * price, COIN)
    print(f"{type(found).__name__}: settling brings {brings} and costs {more} more than a submit")
    assert not isinstance(found, Finish) or brings >= more
