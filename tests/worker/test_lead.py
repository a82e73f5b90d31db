"""worker.lead: how long before a deadline this machine must send, from what its transactions took."""

from __future__ import annotations

import pytest

from worker.lead import LEAST, MEASURED, Lead


class Measuring:
    """A lead on a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lead = Lead(lambda: self.now)

    def send(self, key: str, took: float, *, mined: bool = True) -> None:
        self.lead.sent(key, self.now)
        self.now += took
        self.lead.ended(key, mined=mined)


def test_lead__nothing_measured__is_a_second() -> None:
    assert Lead().seconds == LEAST


def test_lead__first_lease_on_a_loaded_machine__one_beat_is_enough_to_know() -> None:
    rig = Measuring()
    rig.send("beat", 4.5)
    assert rig.lead.seconds == 4.5


def test_lead__outage__turns_nobody_away_and_a_slow_machine_is_known() -> None:
    rig = Measuring()
    for took in (1.5,) * 7 + (60.0,):
        rig.send("beat", took)
    assert rig.lead.seconds == 1.5
    rig.send("beat", 50.0)
    assert rig.lead.seconds == 50.0
    for _ in range(MEASURED):
        rig.send("beat", 2.0)
    assert rig.lead.seconds == 2.0


@pytest.mark.parametrize("mined", [True, False])
def test_lead__sent_again__counts_from_the_first_time_and_failed_ones_do_not(mined: bool) -> None:
    rig = Measuring()
    rig.lead.sent("submit", rig.now)
    rig.now += 3
    rig.send("submit", 2.0, mined=mined)
    assert rig.lead.seconds == (5.0 if mined else LEAST)
    rig.lead.ended("never sent by this process", mined=True)
    assert rig.lead.seconds == (5.0 if mined else LEAST)
