"""Attack: a state that leaves a unit seconds alone, by which a worker takes a lease that cannot bring its gas.

Once it is begun with a state, a unit may bill what the state, and those that it was made of, leave of its seconds (SPEC
"Checkpoints"). The worker reckons with all of them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas
from hearth.protocol.gas import ACK_GAS, CHECKPOINT_GAS, CLAIM_GAS, SETTLE_GAS, SUBMIT_GAS
from hearth.protocol.types import COIN, RATE_SCALE, Best
from tests.worker.test_decide import ME, NODE, NOW, POLICY, dear, snapshot_of
from tests.worker.test_decide_checkpoints import HERE, LOST, SAVED, metered
from worker.decide import Ack, Claim, decide

RATE = NODE.offer.ask


@pytest.mark.parametrize("left", [60, 120])
@pytest.mark.parametrize("won", [False, True], ids=["claim", "ack"])
def test_decide__state_that_leaves_less_than_the_gas_of_a_unit__is_not_begun_with(won: bool, left: int) -> None:
    """The node that left the state gains: its seconds are paid out of a result that costs this node more than it has.

    Of 600 s the state holds all but `left`, which is a checkpoint's time at least. Begun anew the unit is worth its
    gas, ten checkpoints of its own included. Begun with the state its start, submit and settlement alone cost more than
    it can bring, and the settlement pays for the state's node besides.
    """
    terms = metered(LOST).terms
    held = replace(SAVED, seconds=formulas.lease_seconds(terms) - left)
    lost = replace(LOST, mark=NOW, rate=RATE) if won else LOST
    job = metered(lost, Best(node=ME, key=9) if won else None, held, **({"match_window": 12} if won else {}))
    gas = (ACK_GAS if won else CLAIM_GAS) + SUBMIT_GAS + SETTLE_GAS

    def pays(seconds: int) -> int:
        pay = RATE * seconds // RATE_SCALE
        return pay - formulas.fee_of(pay, POLICY)

    price = pays(600) * COIN // (gas + CHECKPOINT_GAS * 10)
    (found, *_) = decide(snapshot_of(job, executions=(HERE,)), dear(price), NOW)
    if isinstance(found, Ack | Claim):
        most = pays(left if found.resumes else formulas.lease_seconds(terms))
        print(f"it begins with attempt {found.resumes}: brings {most} at most, and its gas costs {gas * price // COIN}")
        assert most >= gas * price // COIN
