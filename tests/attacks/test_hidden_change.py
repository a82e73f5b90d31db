"""Attack: a council (or who has its key) hides a change behind decoys, so that nobody drops it in time.

Every change that waits is looked up, those due first first, and is found by the beginning of its id, whatever was
queued before it or after it.
"""

from __future__ import annotations

import pytest

from hearth.client.governance import changes
from hearth.market.changes import DROPPED, Change, ChangeOp
from tests.client.test_gov import COUNCIL, OTHER, Place

EVIL = Change(ChangeOp.OFFER_POSTS, int(OTHER, 16), 0)
DECOYS = [Change(ChangeOp.SET_MINIMUM_STAKE, 10**18 + at, 0) for at in range(1, 400)]


@pytest.mark.parametrize("end", ["waiting", "dropped"])
@pytest.mark.parametrize("at", [0, 200, len(DECOYS)])
def test_status__change_among_hundreds_of_decoys__is_shown_and_found(at: int, end: str) -> None:
    place = Place(account=COUNCIL)
    due = place.now + 10**6
    logs = [place.queued(one, due + number) for number, one in enumerate([*DECOYS[:at], EVIL, *DECOYS[at:]])]
    if end == "dropped":
        for one in DECOYS:
            place.states[one.id] = DROPPED
            logs.append(place.event("ChangeDropped", change=one.id))
    place.chain.mine(logs)
    told = place.gov.status()
    name = "0x" + EVIL.id.hex()
    waits = {row["change"] for row in told["changes"] if row["state"] == "waiting"}
    assert name in waits and len(waits) == (1 if end == "dropped" else 1 + len(DECOYS))
    assert place.gov.drop(name[:14], print_tx=True)["change"] == name


def test_drop__change_that_a_log_calls_dropped__is_found_as_the_steward_holds_it() -> None:
    place = Place(account=COUNCIL)
    place.chain.mine([place.queued(EVIL), place.event("ChangeDropped", change=EVIL.id)])
    (row,) = place.gov.status()["changes"]
    assert row["state"] == "waiting"
    assert "prepared" in place.gov.drop(row["change"][:14], print_tx=True)


def test_status__more_than_are_looked_up__those_due_first_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_LOOKED", 50)
    place = Place()
    due = place.now + 10**6
    place.chain.mine([place.queued(one, due - number) for number, one in enumerate([*DECOYS, EVIL])])
    told = place.gov.status()
    assert len(told["changes"]) == 50 and told["earlier"] == len(DECOYS) + 1 - 50
    assert told["changes"][-1]["change"] == "0x" + EVIL.id.hex()
