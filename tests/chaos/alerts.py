"""Which fault a person must act on, and Prometheus itself, which says whether docs/alerts.yml tells him so.

The rules are evaluated by the real program. In a soak, where an hour has to show what takes hours, a copy of them runs
`factor` times as fast: `for`, the windows of rates and the ages of blocks are divided by it, nothing else.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.kit.evm import ROOT
from tests.kit.require import require
from tests.kit.running import wait

RULES = ROOT / "docs" / "alerts.yml"
EVERY_SECONDS = 1.0
"""How often a soak's daemons are scraped and its rules evaluated."""
SLACK_SECONDS = 10.0
"""What scrapes, rounds and back-offs may add until an alert fires on a machine that is busy."""
RESOLVE_SECONDS = 90.0
"""How long after a fault its alert may still fire: both daemons look again after a minute at the latest."""
FAILURES_SECONDS = {"HearthKeeperFailing": 60.0}
"""What three failed cycles take, each with its own tries; no factor makes them shorter."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WINDOW = re.compile(r"\[(\d+)([smhd])\]")
_AGE = re.compile(r"(head_age_seconds > )(\d+)")
PORTS = range(20_000, 30_000)
"""Below those of outgoing connections: a daemon that starts again must find its own free."""


@dataclass(frozen=True)
class Row:
    """What a fault calls for: `alerts` once it has lasted as long as each waits, `also` perhaps; () for none.

    `everywhere` marks a fault of the chain, which every daemon meets.
    """

    alerts: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    everywhere: bool = False


_NO_RPC = ("HearthWorkerHeadOld", "HearthKeeperHeadOld", "HearthKeeperFailing")
_SLOW = ("HearthKeeperNotReady", "HearthWorkerFailing", "HearthWorkerRpcFaults", "HearthKeeperStuckTransactions")
_NO_DATA = ("HearthWorkerBroken", "HearthWorkerFailing")
TABLE: Mapping[str, Row] = {
    # What heals by itself calls for nobody unless it lasts. A process that was started answers before it is ready.
    "kill_worker": Row((), ("HearthWorkerDown",)),
    "kill_keeper": Row((), ("HearthKeeperDown", "HearthKeeperNotReady")),
    "stop_worker": Row(("HearthWorkerDown",)),
    "stop_keeper": Row(("HearthKeeperDown",)),
    "chain_stalls": Row(_NO_RPC, _SLOW, everywhere=True),
    "second_copy": Row(),
    "providers_fail": Row(_NO_RPC, (*_SLOW, "HearthKeeperRebuilds")),
    "reorg": Row((), ("HearthKeeperReverts",), everywhere=True),
    "disk_full": Row(("HearthWorkerDiskFull",), ("HearthWorkerStarved",)),
    "gateways_stall": Row((), _NO_DATA),
    "gateways_drip": Row((), _NO_DATA),
    "gateways_lie": Row((), _NO_DATA),
    "clock_jumps": Row((), ("HearthWorkerClockWrong", "HearthKeeperHeadOld", "HearthKeeperNotReady")),
    "upgrade": Row((), ("HearthWorkerDown",)),
    "change_key": Row((), ("HearthWorkerDown",)),
    # What lasts until somebody acts.
    "worker_stopped": Row(("HearthWorkerDown",)),
    "keeper_stopped": Row(("HearthKeeperDown",), ("HearthKeeperNotReady",)),
    "disk_stays_full": Row(("HearthWorkerDiskFull",), ("HearthWorkerStarved",)),
    "no_provider": Row(_NO_RPC, (*_SLOW, "HearthKeeperRebuilds")),
    "gas_above_the_limit": Row(
        ("HearthWorkerGasCapped", "HearthKeeperGasCapped"), ("HearthKeeperNotReady", "HearthKeeperStuckTransactions")
    ),
    "settings_refused": Row(("HearthWorkerSettingsRefused", "HearthKeeperSettingsRefused")),
    "no_coin": Row(("HearthWorkerGasMoney", "HearthKeeperNotReady"), ("HearthWorkerFailing",)),
}


@dataclass(frozen=True)
class Window:
    """A fault of one pair of daemons, from when to when of Unix time."""

    fault: str
    of: str
    began: float
    ended: float


@dataclass(frozen=True)
class Firing:
    """An alert that fired at a pair of daemons, from when to when of Unix time."""

    alert: str
    of: str
    began: float
    ended: float


# ---- the rules ----


@cache
def rules() -> tuple[dict[str, Any], ...]:
    """Return the rules of docs/alerts.yml."""
    return tuple(rule for group in groups() for rule in group["rules"])


def groups() -> list[dict[str, Any]]:
    """Return the groups of docs/alerts.yml."""
    from ruamel.yaml import YAML

    found: list[dict[str, Any]] = YAML(typ="safe").load(RULES.read_text(encoding="utf-8"))["groups"]
    return found


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as Prometheus writes it, with one unit."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


def hurried(factor: float) -> dict[str, Any]:
    """Return the rules `factor` times as fast, as a document that Prometheus reads."""

    def window(found: re.Match[str]) -> str:
        return f"[{max(2.0, seconds_of(found[1] + found[2]) / factor) * 1000:.0f}ms]"

    def faster(rule: dict[str, Any]) -> dict[str, Any]:
        expr = _AGE.sub(lambda found: f"{found[1]}{float(found[2]) / factor:g}", _WINDOW.sub(window, rule["expr"]))
        waits = {"for": f"{seconds_of(rule['for']) / factor * 1000:.0f}ms"} if "for" in rule else {}
        return {**rule, "expr": expr, **waits}

    return {"groups": [{**group, "rules": [faster(rule) for rule in group["rules"]]} for group in groups()]}


@cache
def needs(alert: str, factor: float) -> float:
    """Return for how many seconds a fault must last before an alert fires: its `for`, and the age that it asks for."""
    rule = next(rule for rule in rules() if rule["alert"] == alert)
    age = _AGE.search(rule["expr"])
    return (
        FAILURES_SECONDS.get(alert, 0.0)
        + (seconds_of(rule.get("for", "0s")) + (float(age[2]) if age else 0.0)) / factor
    )


def lingers(fault: Window, alert: str, factor: float) -> float:
    """Return for how many seconds after its fault an alert may fire: back-offs double, windows look back."""
    rule = next(rule for rule in rules() if rule["alert"] == alert)
    windows = [seconds_of(number + unit) for number, unit in _WINDOW.findall(rule["expr"])]
    pause = min(RESOLVE_SECONDS, max(2 * SLACK_SECONDS, fault.ended - fault.began))
    return pause + max(windows, default=0.0) / factor


def judge(windows: Iterable[Window], firings: Iterable[Firing], factor: float) -> list[str]:
    """Return a sentence for each alert that a fault called for in vain, and for each that fired at no fault's call."""
    faults, fired = sorted(windows, key=lambda fault: fault.began), list(firings)
    wrong = [
        f"{fault.fault} of {fault.of} lasted {fault.ended - fault.began:.0f} s, and {alert} never fired"
        for fault in faults
        for alert in TABLE[fault.fault].alerts
        if fault.ended - fault.began >= needs(alert, factor) + SLACK_SECONDS
        and not any(_at(one, fault) for one in fired if one.alert == alert)
    ]
    calls = {(one.alert, one.of): _calls(faults, one.alert, one.of, factor) for one in fired}
    return wrong + [
        f"{one.alert} of {one.of} fired for {one.ended - one.began:.0f} s from {one.began:.0f} on, and nothing called"
        for one in fired
        if not any(began <= one.began and one.ended <= ended for began, ended in calls[one.alert, one.of])
    ]


def _at(one: Firing, fault: Window) -> bool:
    """Say whether an alert fired at the pair of a fault while that was there."""
    return one.of == fault.of and fault.began <= one.ended and one.began <= fault.ended


def _calls(faults: Iterable[Window], alert: str, of: str, factor: float) -> list[tuple[float, float]]:
    """Return from when to when an alert may fire at a pair; `faults` are in their order, and one may reach the next."""
    spans: list[tuple[float, float]] = []
    for fault in faults:
        row = TABLE[fault.fault]
        if alert in (*row.alerts, *row.also) and (row.everywhere or fault.of == of):
            began, ended = fault.began, fault.ended + lingers(fault, alert, factor)
            if spans and began <= spans[-1][1]:
                last = spans.pop()
                began, ended = last[0], max(last[1], ended)
            spans.append((began, ended))
    return spans


# ---- the program ----


def need_prometheus() -> None:
    """Skip, or fail where CI says so, without prometheus and promtool."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    require("prometheus", not missing, f"no {' and no '.join(missing)} on the PATH (Debian: prometheus)")


def quiet_port() -> int:
    """Return a free port that no outgoing connection takes."""
    # By chance: campaigns and tests that run side by side must not all begin with the same one.
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port
    raise AssertionError(f"no port of {PORTS} is free")


_given: set[int] = set()


class Prometheus:
    """A running Prometheus at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def firing(self, of: str) -> set[str]:
        """Return the alerts that fire now at a pair of daemons."""
        found = [one for one in self._ask("alerts")["alerts"] if one["state"] == "firing"]
        return {one["labels"]["alertname"] for one in found if _pair(one["labels"]) == of}

    def history(self, began: float, ended: float) -> list[Firing]:
        """Return every alert that fired in a span of Unix time."""
        step = max(EVERY_SECONDS, (ended - began) / 10_000)
        found = self._ask(
            "query_range", query='ALERTS{alertstate="firing"}', start=f"{began}", end=f"{ended}", step=f"{step}"
        )
        firings: list[Firing] = []
        for series in found["result"]:
            labels, times = series["metric"], [float(at) for at, _ in series["values"]]
            first = times[0]
            for before, after in zip(times, [*times[1:], times[-1] + 10 * step], strict=True):
                if after - before > 3 * step:
                    firings.append(Firing(labels["alertname"], _pair(labels), first, before))
                    first = after
        return sorted(firings, key=lambda one: one.began)

    def scraped(self) -> set[str]:
        """Return the pairs of daemons that answer."""
        found = self._ask("query", query="up == 1")["result"]
        return {one["metric"]["instance"] for one in found}

    def _ask(self, what: str, **query: str) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.loads(answer.read())["data"]


def _pair(labels: Mapping[str, str]) -> str:
    """Return whose daemon it is: instances are called PAIR-worker and PAIR-keeper."""
    return labels.get("instance", "").rpartition("-")[0]


@contextmanager
def prometheus(home: Path, targets: Mapping[str, int], factor: float) -> Iterator[Prometheus]:
    """Run Prometheus on the metrics of daemons, by their names (PAIR-worker, PAIR-keeper) and ports on loopback."""
    home.mkdir()
    (home / "rules.yml").write_text(json.dumps(hurried(factor)))
    jobs = {kind: [name for name in targets if name.endswith(f"-{kind}")] for kind in ("worker", "keeper")}
    every = f"{EVERY_SECONDS * 1000:.0f}ms"
    settings = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {
                "job_name": f"hearth-{kind}",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{targets[name]}"], "labels": {"instance": name}} for name in names
                ],
            }
            for kind, names in jobs.items()
        ],
    }
    (home / "prometheus.yml").write_text(json.dumps(settings))
    port, log = quiet_port(), home / "log"
    command: Sequence[str] = (
        "prometheus",
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=home)
    made = Prometheus(f"http://127.0.0.1:{port}")

    def up() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            return made.scraped() == set(targets)
        return False

    try:
        wait(up, "prometheus scrapes every daemon", 60)
        yield made
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def now() -> float:
    """Return the Unix time, by which Prometheus keeps its books."""
    return time.time()
