"""worker.doctor and the offer: every row by its condition; the rows that need a chain on a scripted one."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hearth.base.errors import ConfigError
from hearth.chain import keys
from hearth.chain.rpc import RpcChain
from hearth.cli.__main__ import main
from hearth.cli.leaf import GLOBALS, Run
from hearth.client.nodes.obstacles import HOUR, dearest
from hearth.config.settings import asset_of
from hearth.market.profiles import PUBLIC
from hearth.market.reads import Market
from hearth.protocol.gas import BEAT_GAS, LEASE_GAS
from hearth.protocol.gpu_tiers import NVIDIA
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import Node, Runtime
from hearth.protocol.units import GIB, Asset, amount_at_least, format_amount, show_amount, show_rate
from tests.kit import build
from tests.kit.disks import MIB, small_disk
from tests.kit.exchange import PASSWORD
from tests.kit.fake_chain import FakeChain
from tests.kit.hints import faults_in
from tests.worker.runtimes.engines import need
from tests.worker.runtimes.test_docker_request import GOOD_INFO, GOOD_VERSION
from tests.worker.test_settings import changed
from worker import cgroups, doctor, doctor_gpus, settings
from worker.build import sandboxes_of, unlocked
from worker.commands import _show_checks
from worker.gpu import probing
from worker.gpu.nvidia import device_of
from worker.gpu.port import GpuInfo, GpuProbe
from worker.manage import _row, _wall
from worker.registered import differences
from worker.runtimes.base import Check, Level
from worker.runtimes.docker_engine import judge_engine
from worker.runtimes.profiles import DOCKER_PROFILE, SELFTEST, WASM_PROFILE, State
from worker.settings import (
    Machine,
    chosen_gpus,
    given_gpus,
    make_offer,
    probe_offer,
    refuse_unknown_runtime,
    wanted_runtimes,
)

ETH = Asset("ETH", 18)
A, B = "GPU-aaaa", "GPU-bbbb"


def card(uuid: str, *, vram: int = 24, tier: int = 30, problems: tuple[str, ...] = ()) -> GpuInfo:
    return GpuInfo(0, "NVIDIA X", device_of(uuid), NVIDIA, vram << 30, vram, tier, (8, 9), "570", (), problems)


def told(tmp_path: Path, **changes: Any) -> settings.Settings:
    data = changed(**changes)
    data["storage"] = {"reserve": "1GiB", **data.get("storage", {})}
    return settings.parse(data, tmp_path / "worker.toml")


ETHER = 10**18
MACHINE = Machine(cores=8, memory=64 * GIB, disk=501 * GIB, runtimes=Runtime.WASM | Runtime.DOCKER)


# ---- the offer ----


def test_make_offer__plain_machine__shares_it_among_the_slots(tmp_path: Path) -> None:
    offer = make_offer(told(tmp_path, offer__slots=2), ETH, MACHINE)
    assert (offer.slots, offer.cores, offer.ram_gib, offer.disk_gib) == (2, 4, 28, 250)
    assert (offer.gpu_count, offer.tier, offer.vram_gib) == (0, 0, 0)
    assert offer.runtimes == Runtime.WASM | Runtime.DOCKER
    assert offer.ask == settings.parse(changed(), tmp_path / "w").ask(ETH)


def test_make_offer__two_kinds_of_gpu__promises_the_lesser(tmp_path: Path) -> None:
    machine = replace(MACHINE, gpus=(card(A, vram=24, tier=30), card(B, vram=16, tier=20)))
    offer = make_offer(told(tmp_path, offer__slots=2), ETH, machine)
    assert (offer.gpu_count, offer.vram_gib, offer.tier) == (1, 16, 20)
    assert offer.runtimes & Runtime.NVIDIA


@pytest.mark.parametrize(
    ("changes", "machine", "message"),
    [
        ({"offer__slots": 9}, MACHINE, "offer.cores: a slot would have none"),
        ({"offer__memory": "65GiB"}, MACHINE, "offer.memory: 1 slots of 65GiB, and the machine has 64GiB"),
        ({"offer__disk": "502GiB"}, MACHINE, "offer.disk"),
        ({"offer__slots": 2}, replace(MACHINE, gpus=(card(A),)), "2 slots share 1 GPUs"),
        ({"offer__gpus_per_slot": 2}, replace(MACHINE, gpus=(card(A),)), "1 slots of 2 GPUs, and there are 1"),
        ({}, replace(MACHINE, disk=GIB), "offer.disk: a slot would have none"),
    ],
)
def test_make_offer__more_than_the_machine_has__is_refused(
    tmp_path: Path, changes: dict[str, Any], machine: Machine, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_offer(told(tmp_path, **changes), ETH, machine)
    assert message in caught.value.message


def test_make_offer__mig_slices__one_a_slot(tmp_path: Path) -> None:
    machine = replace(MACHINE, gpus=tuple(replace(card(uuid), part=place) for place, uuid in enumerate((A, B))))
    assert make_offer(told(tmp_path, offer__slots=2), ETH, machine).gpu_count == 1
    with pytest.raises(ConfigError, match="set slots = 2"):
        make_offer(told(tmp_path, offer__slots=1), ETH, machine)


def test_make_offer__gpus_kept_out_of_slots__offers_none(tmp_path: Path) -> None:
    machine = replace(MACHINE, gpus=(card(A),))
    offer = make_offer(told(tmp_path, offer__slots=2, offer__gpus_per_slot=0), ETH, machine)
    assert (offer.gpu_count, offer.tier, offer.vram_gib, offer.runtimes & Runtime.NVIDIA) == (0, 0, 0, 0)


def test_chosen_gpus__all__leaves_the_unfit_out_and_named_ones_must_be_fit(tmp_path: Path) -> None:
    found = GpuProbe((card(A), card(B, problems=("a memory row could not be remapped",))))
    assert chosen_gpus(told(tmp_path).offer, found) == (found.gpus[0],)
    assert given_gpus(told(tmp_path, offer__gpus="none")) == ()
    assert chosen_gpus(told(tmp_path, offer__gpus=[A]).offer, found) == (found.gpus[0],)
    for uuid, message in ((B, "could not be remapped"), ("GPU-cccc", "is not on this machine")):
        with pytest.raises(ConfigError, match=message):
            chosen_gpus(told(tmp_path, offer__gpus=[uuid]).offer, found)


def test_wanted_runtimes__named_one_that_does_not_work__is_refused(tmp_path: Path) -> None:
    working = {"wasm": (True, "50"), "docker": (False, "no engine answers")}
    assert wanted_runtimes(told(tmp_path).offer, working) == Runtime.WASM
    with pytest.raises(ConfigError, match="docker does not work here: no engine answers"):
        wanted_runtimes(told(tmp_path, offer__runtimes=["docker"]).offer, working)
    with pytest.raises(ConfigError, match="no runtime works"):
        wanted_runtimes(told(tmp_path).offer, {})


def test_probe_offer__this_machine__can_be_offered(tmp_path: Path) -> None:
    offer = settings.probe_offer(told(tmp_path, offer__gpus="none", offer__runtimes=["wasm"]), ETH)
    assert offer.runtimes == Runtime.WASM
    assert 1 <= offer.cores <= cgroups.usable_cores()
    assert 1 <= offer.ram_gib <= cgroups.memory_bytes() // GIB


# ---- rows ----


def levels(rows: list[Check]) -> dict[str, str]:
    return {row.name: row.level.value for row in rows}


@pytest.fixture
def keyed(tmp_path: Path) -> settings.Settings:
    key = keys.create_key(tmp_path / "keys", "operator", "pw", devnet=True)
    password = tmp_path / "password"
    password.write_text("pw")
    password.chmod(0o600)
    return told(tmp_path, account__keystore=str(key.path), account__password_file=str(password))


def test_look_at_keys__private_files__pass_and_open_ones_fail(keyed: settings.Settings) -> None:
    assert levels(doctor.look_at_keys(keyed)) == {"key file": "PASS", "payout address": "PASS"}
    keyed.account.keystore.chmod(0o644)
    with pytest.raises(ConfigError) as caught:
        doctor.look_at_keys(keyed)
    assert caught.value.code == "OPEN_FILE"


def test_look_at_keys__password_of_another_key__fails_and_says_where_it_stands(keyed: settings.Settings) -> None:
    keyed.account.password_file.write_text("another")
    with pytest.raises(ConfigError) as caught:
        doctor.look_at_keys(keyed)
    assert caught.value.code == "WRONG_PASSWORD"
    assert caught.value.hint == "mend account.password_file in worker.toml, then hearth worker doctor"


@pytest.mark.parametrize(("left", "code"), [(None, "NO_ACCOUNT"), ("{", "BAD_KEY_FILE")])
def test_operator_key__lost_or_damaged__names_the_command_that_gives_the_node_another(
    keyed: settings.Settings, left: str | None, code: str
) -> None:
    keyed.account.keystore.unlink()
    if left is not None:
        keyed.account.keystore.write_text(left)
    for look in (doctor.look_at_keys, unlocked):
        with pytest.raises(ConfigError) as caught:
            look(keyed)
        assert caught.value.code == code and faults_in(caught.value.hint) == []
        assert "on the owner's machine: hearth worker operator ADDRESS --node N --account owner" in caught.value.hint


def test_look_at_keys__paid_to_the_hot_key__warns(keyed: settings.Settings) -> None:
    address = keys.read_key(keyed.account.keystore).address
    hot = keyed.model_copy(update={"account": keyed.account.model_copy(update={"payout": address})})
    assert levels(doctor.look_at_keys(hot))["payout address"] == "WARN"


def test_look_at_gpus__none_on_the_machine__is_normal_and_fails_where_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        probing, "probe", lambda *_: GpuProbe((), reason="no NVIDIA driver", answers=False, absent=True)
    )
    assert levels(doctor.look_at_gpus(told(tmp_path), 1)) == {"gpu": "PASS"}
    assert levels(doctor.look_at_gpus(told(tmp_path, offer__gpus=[A]), 1)) == {"gpu": "FAIL"}
    assert levels(doctor.look_at_gpus(told(tmp_path, offer__gpus="none"), 1)) == {"gpu": "PASS"}


def test_look_at_gpus__unfit_card__warns_with_its_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "probe", lambda *_: GpuProbe((card(A, problems=("MIG is on",)),)))
    monkeypatch.setattr(doctor_gpus.shutil, "which", lambda _: None)
    rows = doctor.look_at_gpus(told(tmp_path), 1)
    assert [(r.level, "MIG is on" in r.detail) for r in rows[:1]] == [(Level.WARN, True)]
    assert levels(rows)["nvidia-container-toolkit"] == "WARN"


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        ({}, Level.PASS, "any job that fits, but no job with attesters or another judge, since accept.attesters and"),
        ({"accept__attesters": ["0x" + "12" * 32]}, Level.PASS, "any job that fits, and of judged ones those that"),
        (
            {"accept__refuse_images": ["evil/*"], "accept__images": ["me/*"]},
            Level.PASS,
            "images has 1, refuse_images has 1",
        ),
        ({"accept__gpu_only": True}, Level.FAIL, "a slot has none"),
        ({"accept__min_price": "1.21/h"}, Level.WARN, "the node asks 1.2 ETH/h, less than accept.min_price"),
        (
            {"accept__min_pay": "1", "accept__max_runtime": "5m"},
            Level.WARN,
            "0.1 ETH, less than accept.min_pay",
        ),
    ],
)
def test_look_at_accept__rules__say_what_they_narrow_and_which_refuses_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], level: Level, text: str
) -> None:
    wish = told(tmp_path, **changes)
    monkeypatch.setattr(doctor, "probe_offer", lambda given, asset, lent: make_offer(given, asset, MACHINE))
    row = doctor.look_at_accept(wish, ETH)[0]
    assert (row.level, text in row.detail) == (level, True), row
    assert bool(row.fix) is (level is not Level.PASS)


def test_look_at_disk__below_the_reserve__fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, level in ((GIB - 1, "FAIL"), (GIB, "PASS")):
        monkeypatch.setattr(doctor, "free_bytes", lambda _, free=free: free)
        assert levels(doctor.look_at_disk(told(tmp_path))) == {"disk": level}


def test_look_at_disk__home_that_cannot_be_made_or_written__fails(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.write_text("")
    for home in (flat, flat / "home"):
        (row,) = doctor.look_at_disk(told(tmp_path, home=str(home)))
        assert row.level is Level.FAIL and f"home {home} cannot be written: Not a directory" in row.detail
        assert f"ls -ld {flat}" in row.fix
    with small_disk(tmp_path / "shut", MIB) as shut:
        looked = told(tmp_path, home=str(shut), storage__reserve="0B")
        assert levels(doctor.look_at_disk(looked)) == {"disk": "PASS"} and list(shut.iterdir()) == []
        subprocess.run(["mount", "-o", "remount,ro", str(shut)], check=True)
        (row,) = doctor.look_at_disk(looked)
        assert row.level is Level.FAIL and "Read-only file system" in row.detail


def test_look_at_stores__one_folder__passes_and_warns_of_one_copy(tmp_path: Path) -> None:
    rows = doctor.look_at_stores(told(tmp_path))
    assert levels(rows) == {"store": "PASS", "copies": "WARN"}
    two = told(tmp_path, stores=[str(tmp_path / "a"), str(tmp_path / "b")])
    assert levels(doctor.look_at_stores(two)) == {"store": "PASS"}


def test_look_at_stores__nothing_to_write_to__fails(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    rows = doctor.look_at_stores(told(tmp_path, stores=[str(blocked / "store")]))
    assert "FAIL" in levels(rows).values()
    assert any(row.detail == "none of the stores can be written" for row in rows)


def test_look_at_wasm__engine_installed__passes() -> None:
    found = levels(doctor.look_at_wasm())
    assert found.pop("wasm") == "PASS"
    assert list(found) == ["wasm files", "wasm system calls"]  # what they say is the kernel's: see test_walls


def test_look_at_docker__not_offered__is_not_looked_for(tmp_path: Path) -> None:
    assert levels(doctor.look_at_docker(told(tmp_path, offer__runtimes=["wasm"]), 1)) == {"docker": "PASS"}


class Third:
    """A runtime that no look of its own knows."""

    def __init__(self, works: bool) -> None:
        self.works = works

    def available(self) -> tuple[bool, str]:
        return self.works, "vm 3"


@pytest.mark.parametrize(("works", "level"), [(True, Level.PASS), (False, Level.FAIL)])
def test_look_at_runtime__third_kind__says_what_its_sandbox_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool, level: Level
) -> None:
    monkeypatch.setattr(doctor, "runtimes_of", lambda _: {"vm": Third(works)})
    (row,) = doctor.look_at_runtime("vm", told(tmp_path), 1)
    assert (row.name, row.level, row.detail) == ("vm", level, "vm 3")


@pytest.mark.parametrize(("offered", "looked"), [(Runtime.WASM, ["wasm"]), (Runtime.DOCKER, ["docker"])])
def test_refuse_unfit__offer__looks_at_what_it_offers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: Runtime, looked: list[str]
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(doctor, "look_at_wasm", lambda: seen.append("wasm") or [])
    monkeypatch.setattr(
        doctor, "look_at_docker", lambda *_: seen.append("docker") or [Check("runc", Level.FAIL, "old", "update it")]
    )
    offer = make_offer(told(tmp_path), ETH, replace(MACHINE, runtimes=offered))
    if offered is Runtime.DOCKER:
        with pytest.raises(ConfigError, match="runc: old") as caught:
            doctor.refuse_unfit(told(tmp_path), 1, offer)
        assert caught.value.code == "UNSAFE_ENGINE"
    else:
        doctor.refuse_unfit(told(tmp_path), 1, offer)
    assert seen == looked


def test_runtimes_of__any_settings__opens_every_runtime_of_the_table(tmp_path: Path) -> None:
    found = settings.runtimes_of(told(tmp_path), tmp_path)
    assert {name: sandbox.name for name, sandbox in found.items()} == {name: name for name in RUNTIMES}


@pytest.mark.parametrize(
    ("half_days", "level", "lasts"), [(60, "PASS", ""), (30, "WARN", "15d"), (1, "FAIL", "12h"), (0, "FAIL", "0s")]
)
def test_look_at_gas__some_days_worth__says_how_long_it_lasts_and_sends_the_rest(
    keyed: settings.Settings, half_days: int, level: str, lasts: str
) -> None:
    chain = FakeChain()
    market = Market(chain, build.network(chain))
    address = keys.read_key(keyed.account.keystore).address
    beats = 86_400 * 3 // market.network.node_parameters.dead_after
    price = chain.base_fee + chain.priority_fee
    assert price <= keyed.max_gas_wei
    half_day = (beats * BEAT_GAS + doctor.LEASES_A_DAY * LEASE_GAS) * price // 2
    chain.set_balance(address, half_day * half_days)
    (row,) = doctor.look_at_gas(keyed, market)
    assert row.level.value == level
    assert row.detail.endswith(f": enough for {lasts}" if lasts else "")
    missing = amount_at_least(half_day * (60 - half_days), ETH)
    command = f'on the owner\'s machine: hearth wallet send {address} "{missing}" --account owner'
    assert row.fix == (command if lasts else "") and faults_in(row.fix) == []


@pytest.mark.parametrize(
    ("base_fee", "changes", "level", "says"),
    [
        (1, {}, "PASS", "at most 200 gwei"),
        (101, {}, "WARN", "nothing new is taken"),
        (201, {}, "FAIL", "beats and submits wait"),
        (1, {"gas": settings.Gas(max_per_day="0.000001")}, "FAIL", "a day of beats costs"),
        # By the tip too, which is a tenth here: a day of beats and leases is 0.00047 and a tenth.
        (1, {"gas": settings.Gas(max_per_day="0.00001")}, "FAIL", "at 1.1 gwei: it lasts "),
    ],
)
def test_look_at_gas_limits__what_keeps_beats_back__is_said_with_its_key(
    keyed: settings.Settings, base_fee: int, changes: dict[str, Any], level: str, says: str
) -> None:
    chain = FakeChain()
    chain.base_fee = base_fee * 10**9
    chain.mine()
    (row,) = doctor.look_at_gas_limits(keyed.model_copy(update=changes), Market(chain, build.network(chain)))
    assert row.level.value == level and says in row.detail
    assert ("hearth worker reload" in row.fix) == (level != "PASS")


def test_look_at_gas_limits__budget_between_beats_and_a_day__is_the_sum_of_the_row_above(
    keyed: settings.Settings,
) -> None:
    chain = FakeChain()
    market = Market(chain, build.network(chain))
    day = doctor.gas_of_a_day(keyed, market)
    assert day.price == chain.base_fee + chain.priority_fee and day.beats < day.all
    (above,) = doctor.look_at_gas(keyed, market)
    assert f"which take {show_amount(30 * day.all, ETH)} at 1.1 gwei" in above.detail
    for wei, level in ((day.all, "PASS"), (day.all - 1, "WARN"), (day.beats, "WARN"), (day.beats - 1, "FAIL")):
        limited = keyed.model_copy(update={"gas": settings.Gas(max_per_day=format_amount(wei, ETH))})
        (row,) = doctor.look_at_gas_limits(limited, market)
        assert row.level.value == level, wei
        assert ("it lasts 23h of 24h" in row.detail) == (level != "PASS")


@pytest.mark.net
def test_diagnose__amount_of_another_asset_and_no_engine__a_row_for_the_one_and_none_for_volumes(
    keyed: settings.Settings,
) -> None:
    docker = settings.Docker(host="unix:///nowhere.sock")
    chain = FakeChain()
    network = build.network(chain)
    found = {}
    for name, text in (("good", "1 ETH"), ("bad", "1 BTC")):
        looked = keyed.model_copy(update={"docker": docker, "withdraw_at": text, "rpc": ("http://127.0.0.1:1",)})
        port = RpcChain(looked.rpc, chain_id=network.chain_id, genesis_hash=network.genesis_hash, attempts=1)
        found[name] = {row.name: row for row in doctor.diagnose(looked, network, port, keyed.home)}
        assert found[name]["docker"].level is Level.WARN and "volumes" not in found[name]
    assert "amounts" not in found["good"] and found["bad"]["amounts"].level is Level.FAIL
    assert "withdraw_at: " in found["bad"]["amounts"].detail and "worker doctor" in found["bad"]["amounts"].fix


@pytest.mark.net
def test_diagnose__rpc_of_the_settings_is_dead__fails_once_and_names_who_was_asked(keyed: settings.Settings) -> None:
    dead = keyed.model_copy(update={"rpc": ("http://127.0.0.1:1/v1/key",)})
    chain = FakeChain()
    network = build.network(chain)
    port = RpcChain(dead.rpc, chain_id=network.chain_id, genesis_hash=network.genesis_hash, attempts=1)
    rows = {row.name: row for row in doctor.diagnose(dead, network, port, keyed.home)}
    assert rows["rpc"].level is Level.FAIL and "asks http://127.0.0.1:1/..., rpc in worker.toml" in rows["rpc"].detail
    assert rows["rpc"].fix == "mend rpc in worker.toml, then hearth worker doctor"
    for name in ("gas", "gas limits", "node"):
        assert (rows[name].level, rows[name].detail, rows[name].fix) == (Level.FAIL, "see rpc", "")


def test_diagnose__runtime_that_the_engine_does_not_know__is_told_once(
    keyed: settings.Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "the engine has no runtime kata"
    monkeypatch.setattr(
        doctor, "look_at_docker", lambda *_: [Check("docker", Level.FAIL, f"docker.runtime: {why}", "register it")]
    )
    chain = FakeChain()
    found = doctor.diagnose(keyed, build.network(chain), chain, keyed.home)
    rows = {row.name: row for row in found}
    for name in ("offer", "accept", "machine"):
        assert (rows[name].level, rows[name].detail) == (Level.FAIL, "see docker")
    walls = [wall for wall in doctor.walls_of(keyed, found) if wall.runtime == "docker"]
    _show_checks(
        Run(dict.fromkeys(GLOBALS)),
        {"schema": "hearth.doctor/1", "result": "FAIL", "checks": [_row(row) for row in found]},
        [_wall(wall) for wall in walls],
    )
    shown = capsys.readouterr().out
    assert shown.count(why) == 1 and shown.count("cannot be seen  see docker\n") > 5


def _check(level: str, name: str) -> dict[str, str]:
    return {"level": level, "name": name, "detail": f"of {name}", "fix": "" if level == "PASS" else f"mend {name}"}


CHECKS = [_check("PASS", "a"), _check("WARN", "b"), _check("PASS", "c"), _check("FAIL", "d")]
WALLS = [
    {"runtime": "docker", "name": name, "state": state, "detail": detail, "fix": fix}
    for name, state, detail, fix in (
        ("one", "stands", "it holds", ""),
        ("two", "missing", "it does not", "raise it"),
        ("three", "missing", "of d", "mend d"),
    )
]


@pytest.mark.parametrize("command", [("doctor",), ("worker", "doctor")])
def test_doctor__what_needs_an_act__comes_first_and_the_rest_is_asked_for(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"schema": "hearth.doctor/1", "result": "FAIL", "checks": CHECKS}
    walls = {"walls": WALLS} if "worker" in command else {}
    monkeypatch.setattr("hearth.client.Client.doctor", lambda self: report)
    monkeypatch.setattr("worker.manage.Provider.doctor", lambda self: {**report, **walls})

    def names(*options: str) -> list[str]:
        assert main([*command, *options]) == 3
        lines = capsys.readouterr().out.splitlines()
        return [line.split("  ")[0] if line.startswith("docker") else line.split(" of ")[0] for line in lines if line]

    assert [" ".join(line.split()) for line in names()][1:4] == ["FAIL d", "WARN b", "passed: 2 (--all shows them)"]
    shown = " ".join(names())
    assert ("docker two" in shown, "docker one" in shown, "docker three" in shown) == (bool(walls), False, False)
    everything = " ".join(" ".join(line.split()) for line in names("--all"))
    assert "PASS a WARN b PASS c FAIL d" in everything and "--all" not in everything
    assert all((wall["name"] in everything) is bool(walls) for wall in WALLS)
    assert main([*command, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["checks"] == CHECKS


def test_look_at_gas_limits__token_whose_price_nobody_said__warns(keyed: settings.Settings) -> None:
    chain = FakeChain()
    market = Market(chain, build.network(chain, asset=build.TOKEN))
    (row,) = doctor.look_at_gas_limits(keyed, market)
    assert (row.level.value, row.fix) == ("WARN", "set gas.coin, then hearth worker reload")
    priced = keyed.model_copy(update={"gas": settings.Gas(coin="2650.40")})
    assert [one.level.value for one in doctor.look_at_gas_limits(priced, market)] == ["PASS"]


@pytest.mark.parametrize(
    ("stake", "times", "registered", "level", "fix"),
    [
        (ETHER, 1, True, "PASS", ""),
        (ETHER, 2, True, "WARN", "hearth worker stake"),
        (0, 1, True, "FAIL", "hearth worker stake"),
        (ETHER, 2, False, "WARN", "hearth worker register --stake"),
        (ETHER, 1, False, "WARN", "hearth net params"),  # covered, and on probation no job is so dear
    ],
)
def test_look_at_price__stake__covers_an_hour_a_shorter_lease_or_none(
    tmp_path: Path, stake: int, times: int, registered: bool, level: str, fix: str
) -> None:
    network = build.network(FakeChain())
    policy, least = PUBLIC.policy, network.node_parameters.minimum_stake
    market: Any = SimpleNamespace(network=network, policies=lambda: SimpleNamespace(policy=policy))
    ask = times * dearest(stake or ETHER if registered else least, HOUR, policy)
    node = replace(build.node(1), stake=stake)
    node = replace(node, offer=replace(node.offer, pending=True), next_ask=ask)
    found = told(tmp_path, offer__price=show_rate(ask, asset_of(network)))
    row = doctor.look_at_price(found, market, node if registered else None)
    assert (row.name, row.level.value) == ("price", level) and row.fix.startswith(fix) and bool(row.fix) == bool(fix)
    assert "binds at least" in row.detail and faults_in(row.fix) == []


def test_look_at_clock__old_head_of_a_chain_that_mines_on_demand__is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = FakeChain()
    chain.mine(count=9)
    market = Market(chain, build.network(chain))
    head = chain.head()
    monkeypatch.setattr("hearth.market.network.LOCAL_CHAIN_ID", 1)
    monkeypatch.setattr(doctor.time, "time", lambda: head.timestamp + 4_000)
    assert doctor.look_at_clock(market, head).level is Level.FAIL
    monkeypatch.setattr(
        chain, "block", lambda at: replace(head, number=at, timestamp=head.timestamp - 100 * (head.number - at))
    )
    assert doctor.look_at_clock(market, head).level is Level.WARN
    monkeypatch.setattr(doctor.time, "time", lambda: head.timestamp - 4_000)
    assert doctor.look_at_clock(market, head).level is Level.FAIL, "a clock that is behind is no idle chain"


# ---- what the chain has ----


def written(tmp_path: Path, **changes: Any) -> settings.Settings:
    sizes = {"offer__slots": 2, "offer__cores": 2, "offer__memory": "4GiB", "offer__disk": "10GiB"}
    return told(tmp_path, **{**sizes, "offer__runtimes": ["wasm"], "offer__gpus": "none", **changes})


@pytest.mark.parametrize(
    ("changes", "text", "fix"),
    [
        ({}, "", ""),
        ({"offer__price": "0.75 ETH/h"}, "offer.price is 0.75 ETH/h here, and the chain has 1.2 ETH/h",
         'hearth worker price "0.75 ETH/h", or set offer.price = "1.2 ETH/h" in worker.toml'),
        ({"offer__slots": 3}, "offer.slots is 3 here, and the chain has 2", "hearth worker update"),
        ({"offer__cores": 1}, "offer.cores is 1 here, and the chain has 2", "hearth worker update"),
        ({"offer__memory": "8GiB"}, "offer.memory is 8 GiB here, and the chain has 4 GiB", "hearth worker update"),
        ({"offer__disk": "9GiB"}, "offer.disk is 9 GiB here, and the chain has 10 GiB", "hearth worker update"),
        ({"offer__country": "de"}, "offer.country is de (Central Europe) here, and the chain has South Asia",
         "hearth worker update"),
        ({"offer__runtimes": ["wasm", "docker"]}, "offer.runtimes is docker and wasm here, and the chain has wasm",
         "hearth worker update"),
        # What the file leaves out is the machine's: more of it is no mistake.
        ({"offer__cores": None, "offer__memory": None, "offer__disk": None}, "", ""),
        ({"offer__slots": 20, "offer__cores": None, "offer__memory": None, "offer__disk": None},
         "offer.slots is 20 here, and the chain has 2; offer.memory is 2 GiB here, and the chain has 4 GiB", ""),
    ],
)  # fmt: skip
def test_differences__worker_toml_that_was_edited__names_each_with_the_command(
    tmp_path: Path, changes: dict[str, Any], text: str, fix: str
) -> None:
    machine = replace(MACHINE, cores=64, runtimes=Runtime.WASM)
    registered = make_offer(written(tmp_path), ETH, machine)
    node = replace(build.node(3), offer=registered)
    now = written(tmp_path, **changes)
    runs = Runtime.WASM | Runtime.DOCKER if "docker" in (now.offer.runtimes or ()) else Runtime.WASM
    found = differences(now.offer, make_offer(now, ETH, replace(machine, runtimes=runs)), node, ETH)
    assert "; ".join(one for one, _ in found) == text
    assert not fix or {one for _, one in found} == {fix}
    assert [fault for _, one in found for fault in faults_in(one)] == []


def test_differences__price_that_waits_for_its_notice__is_registered(tmp_path: Path) -> None:
    now = written(tmp_path, offer__price="0.75/h")
    offer = make_offer(now, ETH, MACHINE)
    old = make_offer(written(tmp_path), ETH, MACHINE)
    node = replace(build.node(3), offer=replace(old, pending=True), next_ask=offer.ask)
    assert differences(now.offer, offer, node, ETH) == []
    assert len(differences(written(tmp_path).offer, old, node, ETH)) == 1


def test_differences__gpus__their_number_memory_and_tier(tmp_path: Path) -> None:
    now = told(tmp_path, offer__slots=1, offer__gpus=[A, B])
    two = make_offer(now, ETH, replace(MACHINE, gpus=(card(A), card(B))))
    node = replace(build.node(3), offer=two)
    one = told(tmp_path, offer__slots=1, offer__gpus=[A])
    (found,) = differences(one.offer, make_offer(one, ETH, replace(MACHINE, gpus=(card(A),))), node, ETH)
    assert found == ("offer.gpus is 1 a slot here, and the chain has 2", "hearth worker update")
    other = make_offer(now, ETH, replace(MACHINE, gpus=(card(A), card(B, vram=16, tier=20))))
    assert [text for text, _ in differences(now.offer, other, node, ETH)] == [
        "offer.gpus is of 16 GiB here, and the chain has 24 GiB",
        "offer.gpus is of tier 20 here, and the chain has tier 30",
    ]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("blind", [True, False])
def test_look_at_blooms__block_of_the_creation__says_whether_each_block_costs_a_request(
    known: bool, blind: bool
) -> None:
    from hearth.market.reads import Market
    from tests.chain.test_follow import ACCOUNT, Blind, logging_transaction

    chain = Blind() if blind else FakeChain()
    chain.set_balance(ACCOUNT.address, 10**18)
    created = chain.send_raw(logging_transaction(chain))
    chain.mine()
    network = replace(build.network(chain), creations={"Rules": created} if known else {})
    row = doctor.look_at_blooms(Market(chain, network))
    assert row.level is (Level.WARN if blind or not known else Level.PASS)
    what = "cannot be seen" if not known else "is not so here" if blind else "cost no request"
    assert what in row.detail and bool(row.fix) == (row.level is Level.WARN)


# ---- on a chain ----


@pytest.mark.e2e
def test_diagnose__working_scenario__passes_where_it_should(scenario: Any) -> None:
    found = settings.load(scenario.home / "worker.toml")
    market = scenario.exchange.market
    # A beat every two seconds for a month is dear.
    scenario.exchange.chain.rpc("anvil_setBalance", scenario.operator, hex(10**24))
    rows = doctor.diagnose(found, market.network, market.port, scenario.home / "user")
    shown = levels(rows)
    assert "FAIL" not in shown.values(), [row for row in rows if row.level is Level.FAIL]
    for name in (
        "key file",
        "wasm",
        "offer",
        "disk",
        "store",
        "rpc",
        "rpc logs",
        "rpc blooms",
        "clock",
        "gas",
        "node",
        "registered",
    ):
        assert shown[name] == "PASS", (name, rows)
    assert shown["rpc providers"] == "WARN"
    # What is well needs no mending.
    assert [row for row in rows if row.level is Level.PASS and row.fix] == []


@pytest.mark.e2e
def test_diagnose__poor_unregistered_key__says_what_is_missing(scenario: Any) -> None:
    found = settings.load(scenario.home / "worker.toml")
    market = scenario.exchange.market
    (scenario.home / "keys" / "operator.json").unlink()
    keys.create_key(scenario.home / "keys", "operator", PASSWORD, devnet=True)
    shown = levels(doctor.diagnose(found, market.network, market.port, scenario.home / "user"))
    assert (shown["gas"], shown["node"]) == ("FAIL", "WARN")


@pytest.mark.e2e
def test_look_at_rpc__clock_far_from_the_chain__fails_on_a_real_network(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings.load(scenario.home / "worker.toml")
    market = scenario.exchange.market
    skewed = time.time() + 120
    monkeypatch.setattr(doctor.time, "time", lambda: skewed)
    assert levels(doctor.look_at_rpc(found, market))["clock"] == "WARN"
    monkeypatch.setattr("hearth.market.network.LOCAL_CHAIN_ID", 1)
    assert levels(doctor.look_at_rpc(found, market))["clock"] == "FAIL"


@pytest.mark.docker
def test_look_at_docker__runtime_that_the_engine_has_not__fails_and_a_worker_does_not_start(tmp_path: Path) -> None:
    """A worker that its provider puts behind gVisor must not run a container without it."""
    host = need("runc").host
    wished = told(tmp_path, docker__host=host, docker__runtime="runsc-nowhere")
    (row,) = doctor.look_at_docker(wished, 1)
    assert row.level is Level.FAIL and "the engine has no runtime runsc-nowhere" in row.detail and "gVisor" in row.fix
    for refused in (
        lambda: sandboxes_of(wished, cast(Node, None), tmp_path),
        lambda: probe_offer(wished, ETH),
    ):
        with pytest.raises(ConfigError, match="the engine has no runtime runsc-nowhere, only") as caught:
            refused()
        assert (caught.value.code, caught.value.exit_code) == ("NO_OCI_RUNTIME", 3)
    refuse_unknown_runtime(told(tmp_path, docker__runtime="runsc-nowhere", offer__runtimes=["wasm"]))
    refuse_unknown_runtime(told(tmp_path, docker__host="unix:///nowhere.sock", docker__runtime="runsc"))


# ---- walls ----


def states(rows: list[Check], tmp_path: Path, **changes: Any) -> dict[str, str]:
    walls = doctor.walls_of(told(tmp_path, **changes), rows)
    assert all(bool(wall.fix) is (wall.state is not State.STANDS) and wall.detail for wall in walls)
    return {f"{wall.runtime} {wall.name}": wall.state.value for wall in walls}


WASM_ROWS = [Check(name, Level.PASS, "there") for name in ("wasm", "wasm files", "wasm system calls")]


def engine_rows(**changes: Any) -> list[Check]:
    return judge_engine(GOOD_VERSION, {**GOOD_INFO, **changes}, 1, wished="runsc")


def test_walls_of__engine_and_kernel_that_have_all__stand_but_for_what_shows_inside_only(tmp_path: Path) -> None:
    found = states([*WASM_ROWS, *engine_rows(), Check("volumes", Level.PASS, "2 for 2 slots")], tmp_path)
    assert {name for name, state in found.items() if state == "unseen"} == {
        "docker user",
        "docker capabilities",
        "docker no new privileges",
    }
    assert "missing" not in found.values() and len(found) > 15
    assert "docker gpus" not in found  # none is offered


@pytest.mark.parametrize(
    ("change", "wall"),
    [
        ({"SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin"]}, "docker user namespace"),
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, "docker apparmor"),
        ({"SecurityOptions": ["name=apparmor", "name=userns"]}, "docker system calls"),
        ({"SwapLimit": False}, "docker swap"),
        ({"PidsLimit": False}, "docker processes"),
        ({"Plugins": {"Log": []}}, "docker logs"),
    ],
)
def test_walls_of__engine_that_lacks_one__only_that_is_missing(
    tmp_path: Path, change: dict[str, Any], wall: str
) -> None:
    found = states([*WASM_ROWS, *engine_rows(**change), Check("volumes", Level.PASS, "2 for 2 slots")], tmp_path)
    assert [name for name, state in found.items() if state == "missing"] == [wall]


def test_walls_of__no_engine_and_no_landlock__unseen_and_missing(tmp_path: Path) -> None:
    rows = [
        *(Check(name, Level.WARN, "not in this kernel", "boot another") for name in ("wasm files",)),
        Check("docker", Level.WARN, "no Docker engine answers", "start Docker to take containers"),
    ]
    found = states(rows, tmp_path)
    assert found["wasm files"] == "missing" and found["wasm network"] == "unseen"
    assert {state for name, state in found.items() if name.startswith("docker")} == {"unseen"}
    walls = {wall.name: wall for wall in doctor.walls_of(told(tmp_path), rows) if wall.runtime == "docker"}
    assert walls["user"].fix == walls["user namespace"].fix == "start Docker to take containers"
    assert not any(name.startswith("docker") for name in states(rows, tmp_path, offer__runtimes=["wasm"]))


def test_profiles__rows_that_see_a_rule__are_the_doctors(tmp_path: Path) -> None:
    """A row that was renamed would leave its wall unseen on every machine."""
    rows = {
        row.name for row in [*judge_engine(GOOD_VERSION, GOOD_INFO, 1, gpus=[device_of(A)]), *doctor.look_at_wasm()]
    }
    wanted = {rule.row for rule in (*DOCKER_PROFILE, *WASM_PROFILE)} - {"", SELFTEST}
    assert wanted <= rows
    assert doctor.OWN_DISK.row in {row.name for row in doctor.look_at_volumes(told(tmp_path))}
