"""A home that a tree before wrote is read as it is: keys, network, chain, journals, records, worker and keeper.

tests/data/home-0.1.0.tar.xz was written by tests/kit/old_home.py, once, in the first tree whose jobs name a GPU vendor:
a devnet whose programs were killed, a worker with a lease, a keeper's books, and a job that nobody takes.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator

import pytest

from hearth.local.devnet import free_port
from hearth.local.market import DEVNET_ACCOUNTS
from tests.kit.old_home import ARCHIVE, FOLDER, URL
from tests.kit.town import Town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The old home, its chain running again on another port."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        # The modes of private folders are kept. Python 3.11.2, which is Debian 12's, knows no filter.
        archive.extractall(folder, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
    port = free_port()
    worker = folder / "home" / "worker.toml"
    worker.write_text(worker.read_text().replace(FOLDER, str(folder)).replace(URL, f"http://127.0.0.1:{port}"))
    made = Town(folder / "home", port)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def jobs(place: Town) -> dict[str, str]:
    """The ids of its jobs, "waiting" and "taken"."""
    found: dict[str, str] = json.loads((place.home.parent / "jobs.json").read_text())
    return found


def test_old_home__its_jobs__are_listed_and_the_same_file_finds_its_own(place: Town, jobs: dict[str, str]) -> None:
    listed = place.hearth("jobs", "--json")
    assert {row["job"] for row in listed.json["jobs"]} == set(jobs.values())
    again = place.hearth("submit", str(place.home.parent / "job.yaml"), "--anyway", "--json")
    assert again.code == 0, again.out + again.err
    assert (again.json["job"], again.json["already_posted"], again.json["transactions"]) == (jobs["waiting"], True, [])


def test_old_home__its_chain_on_another_port__is_found_there(place: Town) -> None:
    assert json.loads((place.home / "networks" / "devnet.json").read_text())["rpc"] == [place.url]


def test_old_home__its_keys__sign(place: Town, jobs: dict[str, str]) -> None:
    names = {row["name"] for row in place.hearth("wallet", "list", "--json").json["keys"]}
    assert names == set(DEVNET_ACCOUNTS)
    told = place.hearth("job", "cancel", jobs["waiting"], "--json")
    assert told.code == 0, told.out + told.err
    assert place.hearth("job", "show", jobs["waiting"], "--json").json["state"] == "cancelled"


def test_old_home__its_keeper__goes_on_with_its_books(place: Town) -> None:
    before = json.loads((place.home / "keeper" / "ledger.json").read_text())
    assert place.hearth("keeper", "status", "--json").json["network"] == "devnet"
    ran = place.hearth("keeper", "run", "--account", "keeper", "--cycles", "2", "--json")
    assert ran.code == 0, ran.out + ran.err
    after = json.loads((place.home / "keeper" / "ledger.json").read_text())
    assert int(after["gas_paid"]) >= int(before["gas_paid"]) and after["credited_before"] == before["credited_before"]


def test_old_home__its_worker__beats_again_as_the_same_node(place: Town) -> None:
    config = place.home / "worker.toml"
    said = place.hearth("worker", "status", "--config", str(config), "--json").json
    assert said["node"] == 1
    place.start("worker", "-m", "worker", "--config", str(config))
    place.wait_beat(1)
    earned = place.hearth("worker", "earnings", "--config", str(config), "--json")
    assert earned.code == 0, earned.out + earned.err
