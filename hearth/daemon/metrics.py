"""What every long-running program tells a monitor, in one vocabulary: hearth_keeper_... and hearth_worker_...

What counts ends in _total and begins at 0 with the process; alert rules (docs/alerts.yml) ask for its increase. All
else is a gauge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector


class Metrics:
    """The metrics of one program, in a registry of its own."""

    def __init__(self, program: str) -> None:
        self.registry = CollectorRegistry()
        self._program = program
        self.head = self.gauge("head_block", "Number of the block last read")
        self.head_age = self.gauge("head_age_seconds", "Age of the newest block that was read")
        self.failures = self.counter("failures", "Rounds, steps and sends that failed and were tried again", "code")
        self.gas_spent = self.counter("gas_spent_wei", "Wei paid for gas")
        self.gas_capped = self.gauge(
            "gas_capped",
            "1 while the settings' limits on gas keep back new work, or everything, beats and submits too",
            "what",
        )
        self.settings_refused = self.gauge("settings_refused", "1 since a reload whose settings file was refused")

    def follows(self, read: Callable[[], int], blooms: Callable[[], bool | None]) -> None:
        """Export how often the program's cursor has suspected its providers, and whether it believes blooms
        (`hearth.chain.follow`)."""
        text = "1 where a block's bloom says whether its logs are asked for, 0 where every block is asked"
        self.gauge("blooms_believed", text).set_function(lambda: float(blooms() is True))
        text = "Times that a provider left out logs which a block's bloom announces, or the bloom was wrong by chance"
        self.counted("suspicions", text, read)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Return a gauge of this program."""
        return Gauge(self._named(name), text, labels, registry=self.registry)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Return a counter of this program; _total is added to its name."""
        return Counter(self._named(name), text, labels, registry=self.registry)

    def counted(self, name: str, text: str, read: Callable[[], int]) -> None:
        """Export as a counter what something else counts, as it stands at each scrape."""
        self.registry.register(_Counted(self._named(name), text, read))

    def _named(self, name: str) -> str:
        return f"hearth_{self._program}_{name}"


class _Counted(Collector):
    """One counter whose value lies elsewhere."""

    def __init__(self, name: str, text: str, read: Callable[[], int]) -> None:
        self._name, self._text, self._read = name, text, read

    def describe(self) -> Iterator[CounterMetricFamily]:
        """Name the metric without a value, so that nothing is read when it is registered."""
        yield CounterMetricFamily(self._name, self._text)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Read the value."""
        yield CounterMetricFamily(self._name, self._text, value=self._read())
