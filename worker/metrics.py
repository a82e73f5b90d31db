"""What the worker tells a monitor: its metrics, whether its loop turns, and whether it takes work."""

from __future__ import annotations

from typing import Final

from hearth.daemon.health import Health
from hearth.daemon.metrics import Metrics

STALE_SECONDS: Final = 60.0
"""A loop that has not turned for this long is not healthy."""
NO_WORK: Final = "it takes no work now: hearth worker status says why"


class WorkerMetrics(Metrics):
    """Every metric of a worker, and its health. The loop sets `ready`, calls `turn`, and adds what others count."""

    def __init__(self) -> None:
        super().__init__("worker")
        self.health = Health(STALE_SECONDS, NO_WORK)
        gauge, counter = self.gauge, self.counter
        self.beat_age = gauge("beat_age_seconds", "Chain time since the node's last beat")
        self.busy = gauge("busy_slots", "Slots that the chain counts as taken")
        self.funds_short = gauge("funds_short", "1 since a send lacked coin for its gas, until one had it")
        self.slots_lost = gauge("slots_lost", "Slots of the offer that this machine has no GPU or volume for")
        self.gpus = gauge("gpus", "GPUs of this worker by how they are: free, lent, or a fault", "state")
        self.runtimes_lost = gauge("runtimes_lost", "Runtimes of the offer that did not work when the process began")
        self.walls_down = gauge("walls_down", "Walls around WebAssembly that this kernel does not have")
        self.stake_short = gauge("stake_short", "Stake that the node lacks to be active, in base units")
        self.clock_skew = gauge("clock_skew_seconds", "Local time less the chain's, as its blocks came")
        self.disk_free = gauge("disk_free_bytes", "Bytes that can be written on the disk of the worker's home")
        self.disk_short = gauge("disk_short", "1 while less is free than storage.reserve, and nothing new is taken")
        self.store_down = gauge("store_down", "1 while the store takes no results, and nothing new is taken")
        self.attempts_running = gauge("attempts_running", "Attempts under way on this machine")
        self.books = gauge("books", "Leases by how they ended, and amounts in base units", "line")
        self.transactions = counter("transactions", "Transactions by kind and end", "kind", "state")
        self.refused = counter("refused", "Sends that a contract refused, mostly lost races", "kind", "reason")
        self.rpc_faults = counter("rpc_faults", "Times that an RPC provider was set aside", "provider")

    def turn(self) -> None:
        """Note that the loop has turned."""
        self.health.turn()

    @property
    def ready(self) -> bool:
        """Say whether the worker takes work."""
        return not self.health.unready

    @ready.setter
    def ready(self, takes_work: bool) -> None:
        self.health.unready = "" if takes_work else NO_WORK
