"""What the worker tells a monitor: its metrics, whether its loop turns, and whether it takes work."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from hearth.daemon.health import Health

STALE_SECONDS: Final = 60.0
"""A loop that has not turned for this long is not healthy."""
NOT_READY: Final = "it takes no work now: hearth worker status says why"


class WorkerMetrics:
    """Every metric of a worker, in a registry of its own, and its health. The loop sets `ready` and calls `turn`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.health = Health(STALE_SECONDS, NOT_READY)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"hearth_worker_{name}", text, registry=self.registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"hearth_worker_{name}", text, labels, registry=self.registry)

        self.head = gauge("head_block", "Number of the block last read")
        self.head_age = gauge("head_age_seconds", "Age of the newest block, also while none can be read")
        self.beat_age = gauge("beat_age_seconds", "Chain time since the node's last beat")
        self.busy = gauge("busy_slots", "Slots that the chain counts as taken")
        self.funds_short = gauge("funds_short", "1 since a send lacked coin for its gas, until one had it")
        self.slots_lost = gauge("slots_lost", "Slots of the offer that this machine has no GPU or volume for")
        self.runtimes_lost = gauge("runtimes_lost", "Runtimes of the offer that did not work when the process began")
        self.walls_down = gauge("walls_down", "Walls around WebAssembly that this kernel does not have")
        self.stake_short = gauge("stake_short", "Stake that the node lacks to be active, in base units")
        self.clock_skew = gauge("clock_skew_seconds", "Local time less the chain's, as its blocks came")
        self.gas_capped = Gauge(
            "hearth_worker_gas_capped",
            "1 while the settings' limits on gas keep back new work, or everything, beats and submits too",
            ["what"],
            registry=self.registry,
        )
        self.settings_refused = gauge("settings_refused", "1 since a reload whose worker.toml was refused")
        self.disk_free = gauge("disk_free_bytes", "Bytes that can be written on the disk of the worker's home")
        self.disk_short = gauge("disk_short", "1 while less is free than storage.reserve, and nothing new is taken")
        self.starved = gauge("starved", "Attempts that were stopped because the disk was full")
        self.attempts_running = gauge("attempts_running", "Attempts under way on this machine")
        self.broken = gauge("broken", "Attempts that failed by this machine, its engine or its stores")
        self.faults = gauge("faults", "Attempts ended by an exception that no rule foresees")
        self.reorgs = gauge("reorgs", "Reorganisations met")
        self.books = Gauge(
            "hearth_worker_books",
            "Leases by how they ended, and amounts in base units",
            ["line"],
            registry=self.registry,
        )
        self.transactions = counter("transactions", "Transactions by kind and end", "kind", "state")
        self.gas_spent = counter("gas_spent_wei", "Wei paid for gas")
        self.refused = counter("refused", "Sends that a contract refused, mostly lost races", "kind", "reason")
        self.rpc_faults = counter("rpc_faults", "Times that an RPC provider was set aside", "provider")
        self.failures = counter("failures", "Cycles that failed and were tried again", "code")

    def turn(self) -> None:
        """Note that the loop has turned."""
        self.health.turn()

    @property
    def ready(self) -> bool:
        """Say whether the worker takes work."""
        return not self.health.unready

    @ready.setter
    def ready(self, takes_work: bool) -> None:
        self.health.unready = "" if takes_work else NOT_READY
