"""The part of the proof that is about governance: the Steward's events replayed, and compared with what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hearth.client.reading import market_events
from hearth.market.changes import DROPPED, EXECUTED, GOVERNED, ChangeOp
from hearth.protocol.types import ZERO_ADDRESS

if TYPE_CHECKING:
    from hearth.chain.port import Block
    from hearth.market.events import Event
    from hearth.market.reads import Market


@dataclass
class _Told:
    """What events say: who sits where, each change's state as the Steward holds it, and the governors."""

    council: str = ZERO_ADDRESS
    offered_council: str = ZERO_ADDRESS
    guardian: str = ZERO_ADDRESS
    changes: dict[bytes, int] = field(default_factory=dict)
    governors: dict[str, str] = field(default_factory=dict)
    offered: set[str] = field(default_factory=set)
    """The contracts whose governor's rights the Steward ever offered."""

    def apply(self, event: Event, names: dict[str, str]) -> None:
        """Book one event; `names` are the contracts' by address."""
        from hearth.market import events

        if isinstance(event, events.ChangeQueued):
            self.changes[event.change] = event.due
        elif isinstance(event, events.ChangeDropped):
            self.changes[event.change] = DROPPED
        elif isinstance(event, events.ChangeExecuted):
            self.changes[event.change] = EXECUTED
            if what := ChangeOp(event.op).offers:
                self.offered.add(GOVERNED[what])
        elif isinstance(event, events.CouncilOffered):
            self.offered_council = event.council
        elif isinstance(event, events.CouncilChanged):
            self.council, self.offered_council = event.council, ZERO_ADDRESS
        elif isinstance(event, events.GuardianChanged):
            self.guardian = event.guardian
        elif isinstance(event, events.GovernorChanged):
            self.governors[names[event.log.address]] = event.governor


def governance_faults(market: Market, head: Block, in_time: Callable[[str], None]) -> Iterator[str]:
    """Yield how the Steward's seats and changes, and both governors, differ from what their events say.

    A governor other than the Steward is a fault where no change of it ever offered those rights. `in_time` is called
    with what is read next, and raises where the time for all is over.
    """
    network = market.network
    names = {network.steward: "Steward", network.rules: "Rules", network.nodes: "NodeRegistry"}
    told = _Told()
    for event in market_events(market, list(names), network.deploy_block, head.number):
        in_time("its governance")
        told.apply(event, names)
    for name in ("council", "offered_council", "guardian"):
        stored, said = str(market.immutable("Steward", name, head.hash)).lower(), getattr(told, name)
        if stored != said:
            yield f"the Steward's {name} is {stored}, and its events say {said}"
    for change, state in told.changes.items():
        in_time(f"its {len(told.changes)} changes")
        held = market.change(change, head.hash)
        if held != state:
            yield f"change 0x{change.hex()[:12]}: events say {state}, storage {held}"
    for contract in GOVERNED.values():
        governor, said = market.governor(contract, head.hash), told.governors.get(contract, ZERO_ADDRESS)
        if governor != said:
            yield f"the governor of {contract} is {governor}, and its events say {said}"
        if governor != network.steward and contract not in told.offered:
            yield f"the governor of {contract} is {governor}, to whom the Steward has offered nothing"
