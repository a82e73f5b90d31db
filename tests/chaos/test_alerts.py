"""The alert rules: evaluated by Prometheus, on metrics that real daemons export, with words for whoever is woken."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.chaos import alerts, lasting
from tests.chaos.alerts import Firing, Row, Window, judge
from tests.chaos.faults import FAULTS
from tests.chaos.market import ChaosMarket, chaos_market
from tests.chaos.proxy import Usage, between
from tests.kit.anvil import need_anvil
from tests.kit.evm import ROOT
from tests.kit.running import wait

SICK = 600
"""The second at which a series turns bad."""
KEEPER, WORKER = '{instance="k",job="hearth-keeper"}', '{instance="w",job="hearth-worker"}'

GAUGES: dict[str, tuple[str, float, float]] = {
    "HearthKeeperDown": (f"up{KEEPER}", 1, 0),
    "HearthKeeperNotReady": (f"hearth_keeper_ready{KEEPER}", 1, 0),
    "HearthKeeperGasLow": (f"hearth_keeper_balance_wei{KEEPER}", 5e17, 1e16),
    "HearthKeeperFailing": (f"hearth_keeper_failures_in_row{KEEPER}", 2, 3),
    "HearthKeeperHeadOld": (f"hearth_keeper_head_age_seconds{KEEPER}", 100, 130),
    "HearthKeeperStuckTransactions": (f"hearth_keeper_pending_transactions{KEEPER}", 0, 1),
    "HearthKeeperGasCapped": ('hearth_keeper_gas_capped{instance="k",job="hearth-keeper",what="everything"}', 0, 1),
    "HearthKeeperSettingsRefused": (f"hearth_keeper_settings_refused{KEEPER}", 0, 1),
    "HearthWorkerDown": (f"up{WORKER}", 1, 0),
    "HearthWorkerBeatLate": (f"hearth_worker_beat_age_seconds{WORKER}", 300, 700),
    "HearthWorkerGasMoney": (f"hearth_worker_funds_short{WORKER}", 0, 1),
    "HearthWorkerStakeShort": (f"hearth_worker_stake_short{WORKER}", 0, 1),
    "HearthWorkerDiskFull": (f"hearth_worker_disk_short{WORKER}", 0, 1),
    "HearthWorkerStoreDown": (f"hearth_worker_store_down{WORKER}", 0, 1),
    "HearthWorkerGasCapped": ('hearth_worker_gas_capped{instance="w",job="hearth-worker",what="everything"}', 0, 1),
    "HearthWorkerClockWrong": (f"hearth_worker_clock_skew_seconds{WORKER}", 20, -86400),
    "HearthWorkerSettingsRefused": (f"hearth_worker_settings_refused{WORKER}", 0, 1),
    "HearthWorkerHeadOld": (f"hearth_worker_head_age_seconds{WORKER}", 100, 130),
    "HearthWorkerSlotsLost": (f"hearth_worker_slots_lost{WORKER}", 0, 1),
    "HearthWorkerWallsDown": (f"hearth_worker_walls_down{WORKER}", 0, 1),
}
"""Alerts that look at one value: the series, what it is in health, and what calls for somebody once it stays so."""

Series = dict[str, str]
OTHERS: dict[str, tuple[Series, Series]] = {
    "HearthKeeperLosesRaces": (
        {f"up{KEEPER}": "1x2000", f"hearth_keeper_lost_races_total{KEEPER}": "0+5x2000"},
        {
            f"up{KEEPER}": "1x2000",
            f"hearth_keeper_lost_races_total{KEEPER}": "0+5x2000",
            'hearth_keeper_actions_total{instance="k",job="hearth-keeper",outcome="mined"}': "0+2x2000",
        },
    ),
    "HearthKeeperReverts": (
        {'hearth_keeper_actions_total{instance="k",action="settle",outcome="reverted"}': "0x9 0+1x6 6x2000"},
        {'hearth_keeper_actions_total{instance="k",action="settle",outcome="reverted"}': "0x9 0+1x4 4x2000"},
    ),
    "HearthKeeperRebuilds": (
        {'hearth_keeper_rebuilds_total{instance="k",cause="mismatch"}': "0x9 1x2000"},
        {'hearth_keeper_rebuilds_total{instance="k",cause="reorg"}': "0+1x2000"},
    ),
    "HearthKeeperLosesMoney": (
        {f"hearth_keeper_profit_base_units{KEEPER}": "1000000-1x5000"},
        {f"hearth_keeper_profit_base_units{KEEPER}": "1000000-1x200 999800+2x4000"},
    ),
    "HearthMarketWithoutNodes": (
        {f"hearth_keeper_jobs{KEEPER}": "1x2000", f"hearth_keeper_ready_nodes{KEEPER}": "1x9 0x2000"},
        {f"hearth_keeper_jobs{KEEPER}": "1x9 0x2000", f"hearth_keeper_ready_nodes{KEEPER}": "0x2000"},
    ),
    "HearthWorkerStarved": (
        {f"hearth_worker_starved_total{WORKER}": "0x9 1x2000"},
        {f"hearth_worker_starved_total{WORKER}": "3x2000"},
    ),
    "HearthWorkerFailing": (
        {'hearth_worker_failures_total{instance="w",code="RPC_DOWN"}': "1x9 1+2x2000"},
        {'hearth_worker_failures_total{instance="w",code="RPC_DOWN"}': "1x9 1+2x5 11x2000"},
    ),
    "HearthWorkerRpcFaults": (
        {'hearth_worker_rpc_faults_total{instance="w",provider="b"}': "1x9 1+1x2000"},
        {'hearth_worker_rpc_faults_total{instance="w",provider="b"}': "1x9 1+1x8 9x2000"},
    ),
    "HearthWorkerFaults": (
        {f"hearth_worker_faults_total{WORKER}": "0x9 1x2000"},
        {f"hearth_worker_faults_total{WORKER}": "1x2000"},
    ),
    "HearthWorkerBroken": (
        {f"hearth_worker_broken_total{WORKER}": "0x9 0+1x2000"},
        {f"hearth_worker_broken_total{WORKER}": "0x9 1x20 2x2000"},
    ),
    "HearthWorkerIdleSlotsBusyOnChain": (
        {f"hearth_worker_busy_slots{WORKER}": "1x2000", f"hearth_worker_attempts_running{WORKER}": "1x9 0x2000"},
        {f"hearth_worker_busy_slots{WORKER}": "1x2000", f"hearth_worker_attempts_running{WORKER}": "1x9 0x20 1x2000"},
    ),
}
"""The others, a value a minute or as SLOW says: series that call for somebody, and series that heal by themselves."""
SLOW = {"HearthKeeperLosesMoney": 240, "HearthWorkerRpcFaults": 240}
"""Seconds from value to value; a provider that is dead is set aside 16 times an hour, since its rests grow to 300 s."""


def test_alerts__promtool__reads_the_rules_and_the_hurried_copy(tmp_path: Path) -> None:
    alerts.need_prometheus()
    (tmp_path / "hurried.yml").write_text(json.dumps(alerts.hurried(4.0)))
    for path in (alerts.RULES, tmp_path / "hurried.yml"):
        told = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
        assert told.returncode == 0 and f"{len(alerts.rules())} rules found" in told.stdout, told.stdout + told.stderr


def test_alerts__each_rule__fires_when_its_time_has_come_and_not_for_what_heals(tmp_path: Path) -> None:
    """Prometheus evaluates the rules themselves: of all of them this one fires, once, and none where it healed."""
    alerts.need_prometheus()
    assert GAUGES.keys() | OTHERS.keys() == {rule["alert"] for rule in alerts.rules()}
    files: dict[int, tuple[Series, list[Check]]] = {15: ({}, []), 60: ({}, []), 240: ({}, [])}
    for alert, (metric, well, ill) in GAUGES.items():
        waits = int(alerts.seconds_of(next(rule for rule in alerts.rules() if rule["alert"] == alert)["for"]))
        series, checks = files[15]
        series[_of(alert, metric)] = f"{well:.0f}x39 {ill:.0f}x500"
        series[_of("heals", metric)] = f"{well:.0f}x39 {ill:.0f}x{waits // 15 - 2} {well:.0f}x500"
        checks += [(SICK + waits - 15, alert, False), (SICK + waits + 15, alert, True)]
    for alert, (sick, heals) in OTHERS.items():
        step = SLOW.get(alert, 60)
        series, checks = files[step]
        series |= {_of(alert, metric): values for metric, values in sick.items()}
        series |= {_of("heals", metric): values for metric, values in heals.items()}
        checks += [(5 * step, alert, False), (3 * (86_400 if step == 240 else 3_600), alert, True)]
    paths = [_write(tmp_path / f"{step}.yml", step, *file) for step, file in files.items()]
    told = subprocess.run(["promtool", "test", "rules", *paths], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


Check = tuple[int, str, bool]
"""A second, an alert, and whether it has fired by then."""


def _of(instance: str, metric: str) -> str:
    """Return a series with another instance: that of a sick daemon is called as its alert."""
    return re.sub(r'instance="\w+"', f'instance="{instance}"', metric)


def _write(path: Path, step: int, series: Series, checks: list[Check]) -> str:
    """Write one file of promtool: its series, a value each `step` seconds, and which alerts fire when."""
    fired = 'count by (alertname, instance) (count_over_time(ALERTS{alertstate="firing"%s}[%ds]))'
    expected = [
        (second, fired % (f',instance="{alert}"', second + 1), [alert] * fires) for second, alert, fires in checks
    ]
    end = max(second for second, *_ in expected)
    # In the end these are all that fired: no other rule saw anything in these series, and none what heals.
    expected.append((end, fired % ("", end + 1), sorted({alert for _, alert, _ in checks})))
    tests = [
        {
            "expr": expr,
            "eval_time": f"{second}s",
            "exp_samples": [{"labels": f'{{alertname="{one}",instance="{one}"}}', "value": 1} for one in called],
        }
        for second, expr, called in expected
    ]
    values = [{"series": name, "values": text} for name, text in series.items()]
    test = {"interval": f"{step}s", "input_series": values, "promql_expr_test": tests}
    path.write_text(json.dumps({"rule_files": [str(alerts.RULES)], "evaluation_interval": f"{step}s", "tests": [test]}))
    return str(path)


# ---- the metrics ----


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_alerts__metrics_and_labels_of_the_rules__are_exported_by_real_daemons(tmp_path: Path) -> None:
    need_anvil()
    usage = Usage()
    with (
        chaos_market(tmp_path / "market", metrics=True) as market,
        between(market.url, [lasting.DEAD], usage, rate=0.0, seed=1) as (proxy,),
    ):
        lane = market.lane("one", alone=False)
        lane.use_rpc(proxy.url)
        keeper = market.keeper("keeper-one", rpc=(proxy.url,))
        lane.start()
        keeper.start()
        wait(lambda: lane.ready and keeper.ready, "both daemons work")
        lane.settled(lane.post(match_window=4))
        proxy.rate = 1.0
        failures = {"hearth_worker_failures_total", "hearth_worker_rpc_faults_total"}
        wait(lambda: failures <= _exported(market)[1].keys(), "the worker counts what failed")
        found = _exported(market)[0]
        # A daemon that can read no block must not go on saying how old the last one was when it read it.
        ages = ("hearth_worker_head_age_seconds", "hearth_worker_beat_age_seconds", "hearth_keeper_head_age_seconds")
        before = _exported(market)[1]
        wait(
            lambda: all(_exported(market)[1][age] > before[age] for age in ages), "what it has not seen grows older", 20
        )
    assert {"hearth_worker_suspicions_total", "hearth_keeper_suspicions_total"} <= found.keys()
    for rule in alerts.rules():
        names = re.findall(r"(hearth_\w+|up)\b(?:\{([^}]*)\})?", rule["expr"])
        assert names, rule["alert"]
        labels: set[str] = set()
        for name, selected in names:
            asked = set(re.findall(r"(\w+)\s*(?:!=|=~|=)", selected))
            if name != "up":
                assert name in found, f"{rule['alert']}: nobody exports {name}"
                assert asked <= found[name], f"{rule['alert']}: {name} has no labels {asked - found[name]}"
                labels |= found[name]
        texts = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", texts)) <= {*labels, "instance"}, rule["alert"]


def _exported(market: ChaosMarket) -> tuple[dict[str, set[str]], dict[str, float]]:
    """Return the labels of each metric that the daemons export, none where nothing was counted yet, and all values."""
    labels: dict[str, set[str]] = {}
    values: dict[str, float] = {}
    for port in market.ports.values():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                words = line.split()
                if line.startswith("# TYPE"):
                    labels.setdefault(words[2], set())
                elif not line.startswith("#"):
                    name, _, more = words[0].partition("{")
                    labels.setdefault(name, set()).update(re.findall(r'(\w+)="', more))
                    values[name] = float(words[-1])
    return labels, values


# ---- the words ----


def test_alerts__every_rule__says_what_to_do() -> None:
    names = [rule["alert"] for rule in alerts.rules()]
    assert len(names) == len(set(names)) > 10
    for rule in alerts.rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert all(rule["annotations"][said] for said in ("summary", "cost", "runbook"))
    documents = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("KEEPER.md", "PROVIDER.md")]
    assert all(sum(document.count(f"| `{name}` |") for document in documents) == 1 for name in names)


def test_alerts__rules_that_ask_for_an_increase__ask_it_of_counters() -> None:
    """A gauge that falls at a restart shows an increase of nothing, or of all that was counted before."""
    exprs = " ".join(rule["expr"] for rule in alerts.rules())
    asked = re.findall(r"\b(?:increase|rate)\((\w+)", exprs)
    assert asked.count("hearth_worker_broken_total") == 1
    assert sorted(asked) == sorted(re.findall(r"\bhearth_\w+_total\b", exprs)), "a counter is asked for nothing else"


def test_table__every_fault_of_a_soak_and_no_other__has_its_row_and_each_alert_is_a_rule() -> None:
    faults = {*(fault.__name__ for fault in FAULTS), *lasting.LASTING, "upgrade", "change_key"}
    assert faults == alerts.TABLE.keys()
    assert all(alerts.TABLE[name].alerts for name in lasting.LASTING)
    rules = {rule["alert"] for rule in alerts.rules()}
    assert {alert for row in alerts.TABLE.values() for alert in (*row.alerts, *row.also)} <= rules


# ---- the judge ----

LONG = Window("disk_stays_full", "hurt", 1000.0, 1060.0)
FIRED = Firing("HearthWorkerDiskFull", "hurt", 1031.0, 1062.0)


def test_judge__alert_that_a_lasting_fault_called_for__is_right() -> None:
    assert judge([LONG], [FIRED], 4.0) == []
    assert judge([Window("disk_full", "hurt", 1000.0, 1010.0)], [], 4.0) == []
    assert judge([Window("reorg", "killed", 1000.0, 1001.0)], [], 4.0) == []


@pytest.mark.parametrize(
    ("windows", "firings", "said"),
    [
        ([LONG], [], "disk_stays_full of hurt lasted 60 s, and HearthWorkerDiskFull never fired"),
        ([], [FIRED], "HearthWorkerDiskFull of hurt fired for 31 s from 1031 on, and nothing called"),
        ([LONG], [FIRED, Firing("HearthWorkerDown", "hurt", 1031, 1032)], "HearthWorkerDown of hurt fired"),
        ([LONG], [FIRED, Firing("HearthWorkerDiskFull", "steady", 1031, 1032)], "HearthWorkerDiskFull of steady fired"),
        ([LONG], [Firing("HearthWorkerDiskFull", "hurt", 1031, 1500)], "HearthWorkerDiskFull of hurt fired for 469 s"),
        ([Window("reorg", "killed", 1000, 1001)], [Firing("HearthWorkerDown", "killed", 1000, 1001)], "Down of killed"),
    ],
)
def test_judge__alert_that_is_missing_wrong_or_stays__is_named(
    windows: list[Window], firings: list[Firing], said: str
) -> None:
    assert any(said in one for one in judge(windows, firings, 4.0))


def test_judge__alert_that_one_fault_after_the_other_keeps_up__is_right() -> None:
    """An hour's window at four times the speed: each reorg keeps it open until the next."""
    reorgs = [Window("reorg", "killed", at, at + 1.0) for at in (1000.0, 1800.0, 2600.0)]
    firing = Firing("HearthKeeperReverts", "steady", 1100.0, 3300.0)
    assert judge(reorgs, [firing], 4.0) == []
    assert len(judge([reorgs[0], reorgs[2]], [firing], 4.0)) == 1


def test_judge__fault_of_the_chain__explains_an_alert_of_every_pair() -> None:
    stalled = Window("chain_stalls", "killed", 1000.0, 1100.0)
    fired = [
        Firing(alert, of, 1050, 1100) for alert in alerts.TABLE["chain_stalls"].alerts for of in ("killed", "steady")
    ]
    assert judge([stalled], fired, 4.0) == []
    assert alerts.TABLE["chain_stalls"].everywhere and not Row().everywhere


def test_hurried__for_windows_and_ages__are_divided_and_nothing_else() -> None:
    usual = {rule["alert"]: rule for rule in alerts.rules()}
    fast = {rule["alert"]: rule for group in alerts.hurried(4.0)["groups"] for rule in group["rules"]}
    assert (usual["HearthWorkerDiskFull"]["for"], fast["HearthWorkerDiskFull"]["for"]) == ("2m", "30000ms")
    assert fast["HearthWorkerHeadOld"]["expr"] == "hearth_worker_head_age_seconds > 30"
    assert fast["HearthWorkerFailing"]["expr"] == "increase(hearth_worker_failures_total[225000ms]) > 20"
    assert fast["HearthWorkerBeatLate"]["expr"] == usual["HearthWorkerBeatLate"]["expr"]
    assert alerts.needs("HearthWorkerHeadOld", 4.0) == 60.0
