"""Logs that no contract of Hearth writes, on a real chain under the registry's own address, and every command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.local import devnet
from tests.e2e.test_hostile_results import TRAPS, Cheat
from tests.kit.nonsense import Said, emit, nonsense
from tests.kit.town import Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CHANGED = 60
"""The last logs of `nonsense`: true ones changed by chance, some of which can be placed and lie."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("strays")) as made:
        yield made


@pytest.fixture(scope="module")
def job(place: Town) -> str:
    """Return a job of two units whose good results were accepted."""
    operator = Cheat(place)
    name, terms = operator.post(2)
    operator.submit(terms, TRAPS[:1] * 2)
    for index in range(2):
        place.sender(1).send(place.market.calls.accept(terms, index), key=f"accept/{index}")
    return name


@pytest.fixture(scope="module")
def said(place: Town, job: str) -> list[Said]:
    """Return logs to write: impossible ones, then CHANGED true ones."""
    real = [
        ([bytes.fromhex(topic[2:]) for topic in log["topics"]], bytes.fromhex(log["data"][2:]))
        for log in place.rpc("eth_getLogs", {"address": place.session.network.jobs, "fromBlock": "0x0"})
    ]
    return list(nonsense(bytes.fromhex(job[2:]), real, seed=3))


def write(place: Town, logs: list[Said]) -> None:
    stranger = devnet.account(6).address
    emit(place.rpc, stranger, place.session.network.jobs, logs)


def commands(job: str, folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the commands that read logs, by a name."""
    return {
        "status": ("net", "status"),
        "jobs": ("net", "jobs"),
        "mine": ("jobs",),
        "verify": ("net", "verify"),
        "market events": ("net", "events"),
        "show": ("job", "show", job[:12]),
        "wait": ("job", "wait", job),
        "events": ("job", "events", job),
        "follow": ("job", "events", job, "--follow"),
        "logs": ("job", "logs", job),
        "receipt": ("job", "receipt", job),
        "spec": ("job", "spec", job),
        "get": ("job", "get", job, "-o", str(folder)),
    }


MOVING = {"block", "at_block", "time", "at_time", "folder", "units", "units_text", "end", "workers", "workers_text"}
"""What differs between two runs of a command: time, the folder, and whether the node has beaten."""
STREAMS = ("market events", "events", "follow")


def told(place: Town, job: str, folder: Path) -> dict[str, Any]:
    """Run every command; return what it printed, without what later blocks and strays change."""
    found: dict[str, Any] = {}
    for name, words in commands(job, folder).items():
        done = place.hearth(*words, "--json")
        if name in STREAMS:
            assert done.code == 0, (name, done.out, done.err)
            found[name] = [json.loads(line) for line in done.out.splitlines()]
            continue
        report = done.json
        found[name] = (done.code, report, done.err)
    return found


def test_commands__impossible_logs__none_stops_one_and_each_says_so(
    place: Town, job: str, said: list[Said], tmp_path: Path
) -> None:
    before = told(place, job, tmp_path / "before")
    assert all(row[0] == 0 and "strays" not in row[1] for row in before.values() if isinstance(row, tuple)), before
    write(place, said[:-CHANGED])
    after = told(place, job, tmp_path / "after")
    for name in STREAMS:
        assert after[name] == before[name], name
    for name in set(after) - {*STREAMS, "verify"}:
        (code, report, err), plain = after[name], before[name][1]
        assert code == 0, (name, report)
        strays = report.pop("strays", report.get("end", {}).pop("strays", None))
        # A spec is a document and no report.
        assert (strays is not None) == (name != "spec"), name
        for key in set(plain) - MOVING:
            assert report[key] == plain[key], (name, key)
        assert "stepped over: log " in err, name
    (code, report, _), plain = after["verify"], before["verify"][1]
    assert code == 4 and report["error"]["code"] == "RPC_LIES" and "doubtful" in report["error"]["message"]
    assert report["strays"]["count"] == len(said) - CHANGED and len(report["strays"]["first"]) == 5
    assert report["solvent"] is True
    for key in ("jobs", "units", "settled", "failed", "reclaimed", "results_checked"):
        assert report[key] == plain[key], key


def test_commands__true_logs_changed_by_chance__none_stops_one_and_verify_is_not_content(
    place: Town, job: str, said: list[Said], tmp_path: Path
) -> None:
    write(place, said[-CHANGED:])
    after = told(place, job, tmp_path / "out")
    code, report, _ = after.pop("verify")
    assert code in (1, 4) and report["strays"]["count"] > 0 and (report["solvent"] or report["faults"])
    for name, row in after.items():
        if isinstance(row, tuple):
            # A changed digest of a result is a placed log that lies: its result cannot be had, which the report says.
            assert row[0] in ((0, 9) if name in ("get", "logs", "wait") else (0,)), (name, row)
    assert after["events"][0]["event"] == "JobPosted"
    assert {facts["unit"] for facts in after["events"] if "unit" in facts} <= {0, 1}
