"""What a provider refuses, and how it gets its node back: real workers on a real chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import RefusedError
from hearth.chain import keys
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.local import devnet
from hearth.market.events import Declined, Settled, Started
from hearth.protocol.types import ZERO_ADDRESS, Outcome, State
from tests.kit.exchange import ETH, PASSWORD, Exchange, Scenario, status
from tests.kit.running import wait
from tests.kit.town import hearth

pytestmark = pytest.mark.e2e


def test_worker__denied_submitter__costs_the_node_nothing_and_the_allowed_job_runs(
    exchange: Exchange, scenario: Scenario
) -> None:
    """What a cheat gains: nothing. Matched by a keeper, the denied job is not acked: no bond, no decline, no gas."""
    config, node = scenario.home / "worker.toml", scenario.node
    allowed, stranger = exchange.submitter, exchange.sender(3)
    config.write_text(
        config.read_text().replace("[accept]", f'[accept]\nsubmitters = ["{allowed.address}"]\nmin_pay = "1 wei"')
    )
    before = exchange.market.node(node)
    scenario.start()
    scenario.working()
    wait(lambda: exchange.market.node(node).state.beat, "the node beats")
    denied = scenario.post(window=1, by=stranger)
    terms = exchange.market.terms_of(denied).packed
    # A keeper knows nothing of a provider's wishes, and proposes whom the chain finds fit.
    exchange.owner.send(exchange.market.calls.propose(terms, 0, node), key=f"propose/{denied.hex()}")
    won = exchange.market.unit(denied, 0)
    assert won.best.node == node
    reasons = wait(lambda: (status(scenario.home) or {}).get("reasons", {}).get(denied.hex()), "the reason is told")
    assert reasons[0]["reason"] == "submitter_refused"
    job = scenario.post()
    scenario.settled(job)
    scenario.assert_once(job)
    lapsed = won.unit.window_end + exchange.market.policies().policy.ack_time
    wait(lambda: exchange.chain.head().timestamp > lapsed, "the proposal lapses")
    assert scenario.state(denied) is State.OPEN
    after = exchange.market.node(node)
    assert (after.stake, after.state.bond, after.state.quarantine) == (before.stake, 0, 0)
    taken = {event.job_id for event in exchange.logs() if isinstance(event, Started | Declined) and event.node == node}
    assert taken == {job}
    for call, count in (("propose", 0), ("ack", 0), ("decline", 0), ("claim", 1)):
        assert exchange.transactions_of(scenario.operator, call, scenario.first_block) == count, call

    network = ("--network", str(exchange.net.network_file))
    why = hearth(exchange.user_home, "worker", "why", denied.hex(), "--config", str(config), *network)
    assert f"the worker: accept.submitters does not name {stranger.address}" in why.out


def test_status__worker_of_another_market_than_the_usual_one__is_asked_where_its_file_says(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    """No --network, a HEARTH_NETWORK of another market, and a network file whose own RPC is dead."""
    config, dead = scenario.home / "worker.toml", tmp_path / "dead.json"
    document = json.loads(exchange.net.network_file.read_text())
    dead.write_text(json.dumps({**document, "rpc": ["http://127.0.0.1:1"]}))
    config.write_text(config.read_text().replace(str(exchange.net.network_file), str(dead)))
    environ = {"HEARTH_NETWORK": "nowhere"}
    for command in ("status", "earnings"):
        told = hearth(tmp_path, "worker", command, "--config", str(config), "--json", environ=environ)
        assert told.code == 0 and told.json["node"] == scenario.node, told.out
    # What the command line says wins.
    given = ("--config", str(config), "--network", str(dead), "--json")
    assert hearth(tmp_path, "worker", "status", *given).error["code"] == "RPC_UNAVAILABLE"


# ---- a home that is another worker's ----


def test_register__home_of_another_worker__is_refused_before_money_moves(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    """What a provider loses who changes the key alone in a worker.toml: no stake for a node that cannot work."""
    config, chain, state = tmp_path / "worker.toml", exchange.chain, scenario.home / "state"
    text = (scenario.home / "worker.toml").read_text().replace('home = "state"', f'home = "{state}"')
    config.write_text(text)
    key = keys.create_key(tmp_path / "keys", "operator", PASSWORD, devnet=True)
    keys.create_key(tmp_path / "keys", "cold", PASSWORD, secret=bytes(devnet.account(1).key), devnet=True)
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    key_of = ("--account", "cold", "--password-file", str(tmp_path / "password"))
    given = ("--config", str(config), "--network", str(exchange.net.network_file), *key_of, "--json")
    before = (chain.nonce(exchange.owner.address), chain.balance(exchange.owner.address))

    def refused(*flags: str) -> dict[str, Any]:
        told = hearth(tmp_path, "worker", "register", *given, *flags)
        assert (told.code, told.error["code"]) == (3, "HOME_IN_USE"), told.out
        assert str(state) in told.error["message"] and "set another home" in told.error["hint"]
        assert (chain.nonce(exchange.owner.address), chain.balance(exchange.owner.address)) == before
        return told.error

    scenario.start()
    scenario.working()
    assert scenario.process is not None
    assert refused()["details"]["pid"] == scenario.process.pid
    scenario.stop()
    for flags in ((), ("--print-tx",), ("--dry-run",)):
        assert (
            f"node {scenario.node}'s worker, whose key is {scenario.operator}, and this" in refused(*flags)["message"]
        )
    doctor = hearth(tmp_path, "worker", "doctor", *given)
    (row,) = [row for row in doctor.json["checks"] if row["name"] == "node"]
    assert (row["level"], row["fix"]) == ("FAIL", "set another home in worker.toml: every worker has one of its own")
    config.write_text(text.replace(str(state), "state"))
    told = hearth(tmp_path, "worker", "register", *given)
    assert told.code == 0 and exchange.market.node(told.json["node"]).operator == key.address, told.out


# ---- a key that is lost ----


def test_start__key_whose_node_another_operates_now__says_so_and_stakes_no_second_one(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    """What a provider loses who follows the next command: no second stake."""
    scenario.start()
    scenario.working()
    scenario.kill()
    new, calls = exchange.submitter.address, exchange.market.calls
    exchange.owner.send(calls.set_operator(scenario.node, new), key=f"operator/{scenario.name}")
    exchange.submitter.send(calls.beat(scenario.node), key=f"first beat/{scenario.name}")
    given = ("--config", str(scenario.home / "worker.toml"), "--network", str(exchange.net.network_file), "--json")
    for command in ("start", "status"):
        told = hearth(exchange.user_home, "worker", command, *given)
        assert (told.code, told.error["code"]) == (3, "NOT_OPERATOR"), told.out
        assert f"node {scenario.node} has another operator now, {new}, and this key is" in told.error["message"]
        assert "set account.keystore" in told.error["hint"] and "register" not in told.error["hint"]
    rows = hearth(exchange.user_home, "worker", "doctor", *given).json["checks"]
    (row,) = [row for row in rows if row["name"] == "node"]
    assert row["level"] == "FAIL" and "another operator now" in row["detail"] and "register" not in row["fix"]
    # What a home says of another chain is of no use: this one has no journal of the key.
    for journal in (scenario.home / "state").glob("tx-*.db*"):
        journal.unlink()
    told = hearth(exchange.user_home, "worker", "start", *given)
    assert told.error["code"] == "NO_NODE"


@pytest.mark.parametrize("scenario", [{"turns": 1_000_000_000}], indirect=True)
def test_worker_operator__key_stolen_while_a_lease_runs__the_owner_takes_the_node_back(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    """What a thief gains: nothing of stake and pay. The lease goes on under the new key and is paid once."""
    market, node, network = exchange.market, scenario.node, ("--network", str(exchange.net.network_file))
    stake, earned = market.node(node).stake, market.credit(exchange.owner.address)
    scenario.start()
    scenario.working()
    job = scenario.post()
    wait(lambda: any(row["job"] == job.hex() for row in (status(scenario.home) or {}).get("attempts", [])), "it runs")
    # The machine is gone, and its key and its password are somebody else's.
    scenario.kill()
    thief = keys.unlock(keys.read_key(scenario.home / "keys" / "operator.json"), PASSWORD)
    (scenario.home / "keys" / "operator.json").unlink()

    new = keys.create_key(scenario.home / "keys", "operator2", PASSWORD, devnet=True)
    devnet.fund(exchange.chain, exchange.net.network, new.address, wei=ETH)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    for name, number in (("cold", 1), ("stranger", 2)):
        keys.create_key(tmp_path / "keys", name, PASSWORD, secret=bytes(devnet.account(number).key), devnet=True)
    command = ("worker", "operator", new.address, "--node", str(node), "--password-file", str(password), *network)
    # Neither worker.toml nor the lost key is needed, and only the owner's key will do.
    other = hearth(tmp_path, *command, "--account", "stranger", "--json")
    assert (other.code, other.error["code"]) == (3, "NOT_OWNER")

    def named(operator: str) -> None:
        """Have the owner name an operator, twice: the second time nothing is sent."""
        for sent in (True, False):
            told = hearth(tmp_path, *(operator if one == new.address else one for one in command), *cold)
            assert told.code == 0, told.err + told.out
            said = told.json
            assert (said["node"], said["operator"], said["kept"]) == (node, operator, operator == old)
            assert (len(said["transactions"]), said.get("already_sent", False)) == (int(sent), not sent)
        assert market.node(node).operator == old
        assert market.offered_operator(node) == (ZERO_ADDRESS if operator == old else operator)

    old, cold = scenario.operator, ("--account", "cold", "--json")
    for operator in (new.address, old, new.address):
        named(operator)

    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace("keys/operator.json", "keys/operator2.json"))
    scenario.start()
    wait(lambda: market.node(node).operator == new.address, "the new key's first beat")
    # The thief has the old key and nothing to do with it.
    journal = TxJournal(
        tmp_path / "thief.db",
        chain_id=exchange.net.network.chain_id,
        genesis_hash=exchange.net.network.genesis_hash,
        address=thief.address,
    )
    stolen = Sender(exchange.chain, thief, journal, SenderConfig(MAX_FEE, poll=0.1))
    terms = market.terms_of(job).packed
    calls = market.calls
    for name, call in {
        "submit": calls.submit(job, 0, b"\x01" * 32, b"\x02" * 32, Outcome.OK, 0),
        "decline": calls.decline(terms, 0, Outcome.BAD_INPUT, b"\x02" * 32),
        "beat": calls.beat(node),
        "operator": calls.set_operator(node, thief.address),
        "exit": calls.exit_start(node),
        "ask": calls.set_ask(node, 1),
    }.items():
        with pytest.raises(RefusedError, match="not the o"):
            stolen.send(call, key=name)
    journal.close()

    scenario.settled(job)
    scenario.assert_once(job)
    settled = [event for event in exchange.logs() if isinstance(event, Settled) and event.job_id == job]
    assert market.credit(exchange.owner.address) - earned == sum(event.pay - event.fee for event in settled) > 0
    assert (market.node(node).stake, market.node(node).state.bond) == (stake, 0)
