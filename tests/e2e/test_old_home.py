"""A home that the version before wrote is read as it is: keys, network, chain, journals, records, worker and keeper.

tests/data/home-0.1.0.tar.xz was written by the first tree that ran end to end: a devnet, a registered worker that had
proposed for a job, a keeper's books, a job that nobody takes and one that was waited for in vain. `@FOLDER@` in
worker.toml stands for where it lay.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator

import pytest

from hearth.local.devnet import free_port
from tests.kit.town import ROOT, Town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

WAITING = "0xf4f609c818fc75550a7b33229979e212cdf39554c23c488bbdb362700db58606"
PROPOSED = "0x3e6d09ffef423f8f384c741a018b785020851df0b1307312d0002920a15a2617"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The old home, its chain running again on another port."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ROOT / "tests" / "data" / "home-0.1.0.tar.xz") as archive:
        # The modes of private folders are kept. Python 3.11.2, which is Debian 12's, knows no filter.
        archive.extractall(folder, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
    port = free_port()
    worker = folder / "home" / "worker.toml"
    worker.write_text(worker.read_text().replace("@FOLDER@", str(folder)).replace(":19545", f":{port}"))
    made = Town(folder / "home", port)
    try:
        yield made
    finally:
        made.close()


def test_old_home__its_jobs__are_listed_and_the_same_file_finds_its_own(place: Town) -> None:
    listed = place.hearth("jobs", "--json")
    assert {row["job"] for row in listed.json["jobs"]} == {WAITING, PROPOSED}
    again = place.hearth("submit", str(place.home.parent / "job.yaml"), "--anyway", "--json")
    assert again.code == 0, again.out + again.err
    assert (again.json["job"], again.json["already_posted"], again.json["transactions"]) == (WAITING, True, [])


def test_old_home__its_chain_on_another_port__is_found_there(place: Town) -> None:
    assert json.loads((place.home / "networks" / "devnet.json").read_text())["rpc"] == [place.url]


def test_old_home__its_keys__sign(place: Town) -> None:
    assert len(place.hearth("wallet", "list", "--json").json["keys"]) == 6
    told = place.hearth("job", "cancel", WAITING, "--json")
    assert told.code == 0, told.out + told.err
    assert place.hearth("job", "show", WAITING, "--json").json["state"] == "cancelled"


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
