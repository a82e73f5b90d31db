"""Attack L11 with all programs: a chain changes its id, and what was posted before ends as it would have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import wasmtime

from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit.town import Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

OTHER = 31_338
JOB = """
version: 1
name: %s
runtime: wasm
module: "./nothing.wasm"
outputs: [{path: /out, required: false, max_size: 1MiB}]
resources: {cpus: 1, memory: 64MiB}
limits: {runtime: 10s, deadline: 2h}
price: {max_rate: "1.20/h"}
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Town]:
    with town(tmp_path / "town") as made:
        yield made


def say(place: Town, **ids: int) -> None:
    """Write into the network file what the chain's id is, and what it was."""
    path = place.home / "networks" / "devnet.json"
    network = json.loads(path.read_text())
    path.write_text(json.dumps({**network, **ids}))


def test_chain__changes_its_id__no_new_job_is_paid_for_and_those_of_before_end(place: Town) -> None:
    worker = place.worker_file()
    assert place.hearth("worker", "register", "--config", str(worker), "--stake", "20").code == 0
    folder = place.home / "jobs"
    folder.mkdir()
    (folder / "nothing.wasm").write_bytes(
        wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))')
    )
    jobs = {}
    for name in ("ran", "cancelled"):
        file = folder / f"{name}.yaml"
        file.write_text(JOB % name)
        told = place.hearth("submit", str(file), "--anyway", "--json")
        assert told.code == 0, told.out + told.err
        jobs[name] = told.json["job"]
    ran = str(folder / "ran.yaml")

    place.rpc("anvil_setChainId", OTHER)
    told = place.hearth("jobs", "--json")
    assert (told.code, told.error["code"]) == (4, "WRONG_CHAIN")
    say(place, chain_id=OTHER)
    told = place.hearth("jobs", "--json")
    assert (told.code, told.error["code"]) == (4, "WRONG_CONTRACTS")
    assert "deployed_chain_id" in told.error["message"]
    say(place, deployed_chain_id=LOCAL_CHAIN_ID)
    status = place.hearth("net", "status", "--json").json
    assert (status["chain_id"], status["deployed_chain_id"]) == (OTHER, LOCAL_CHAIN_ID)
    assert (
        f"chain {OTHER} (it was {LOCAL_CHAIN_ID} at deployment: nobody can post)" in place.hearth("net", "status").out
    )

    # The same file finds its job; a new one is refused before anything is stored or sent.
    mine = ("--account", "dev", "--json")
    told = place.hearth("submit", ran, "--anyway", *mine)
    assert told.code == 0 and told.json["job"] == jobs["ran"] and told.json["already_posted"], told.out
    submitter = place.session.key().address
    before = place.chain.nonce(submitter), place.chain.balance(submitter)
    for again in (("submit", ran, "--anyway", "--again"), ("check", ran), ("job", "rerun", jobs["ran"], "--anyway")):
        told = place.hearth(*again, *mine)
        assert (told.code, told.error["code"]) == (5, "CHAIN_CHANGED"), told.out
    assert (place.chain.nonce(submitter), place.chain.balance(submitter)) == before

    told = place.hearth("job", "cancel", jobs["cancelled"], *mine)
    assert told.code == 0, told.out
    place.start("worker", "-m", "worker", "--config", str(worker))
    place.start("keeper", "-m", "hearth.cli", "keeper", "run", "--account", "keeper")
    told = place.hearth("job", "wait", jobs["ran"], "--anyway", "--timeout", "2m", *mine)
    assert told.code == 0, told.out + told.err
    verified = place.hearth("net", "verify", "--json")
    assert verified.code == 0 and verified.json["solvent"] is True, verified.out
    assert (verified.json["jobs"], verified.json["settled"]) == (2, 1)
