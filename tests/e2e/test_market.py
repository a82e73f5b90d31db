"""The command line on a real market, on both assets: from a job file to money, and the proof of the books."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from eth_utils.crypto import keccak

from hearth.base.errors import SpecError
from hearth.chain.port import ChainPort, Log, Topics
from hearth.client import Client
from hearth.client.job.results import Results
from hearth.config.settings import Settings
from hearth.market.abi import artifact
from hearth.market.events import Settled, Split, topic_of
from hearth.protocol import words
from hearth.storage import canonical
from tests.kit.town import EXAMPLES, ROOT, Town, example_text, hearth, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["native", pytest.param("erc20", marks=pytest.mark.deep)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with one worker and a keeper, on which digits, wordcount-array and failing have run."""
    home = tmp_path_factory.mktemp(request.param)
    with town(home, erc20=request.param == "erc20") as made:
        made.add_worker()
        if request.param == "native":
            made.add_keeper()
        yield made


@pytest.fixture(scope="module")
def done(place: Town) -> dict[str, Any]:
    """Run the jobs from the command line, each to its end; return their reports by name."""
    reports = {}
    for name, code in (("digits", 0), ("failing", 100)):
        told = place.hearth("submit", str(EXAMPLES / name / "job.yaml"), "--wait", "--json", "--timeout", "3m")
        assert told.code == code, told.err + told.out
        reports[name] = told.json
    return reports


def test_submit__good_job__result_verified_and_paid(place: Town, done: dict[str, Any], tmp_path: Path) -> None:
    report = done["digits"]
    assert report["results"]["verdict"] == "ok"
    assert "held-out digits read correctly" in report["results"]["stdout"]
    told = place.hearth("job", "get", report["job"][:20], "-o", str(tmp_path / "out"), "--json")
    assert told.code == 0, told.err
    accuracy = json.loads((tmp_path / "out" / "accuracy.json").read_text())
    assert int(accuracy["correct"]) > 300
    receipt = place.hearth("job", "receipt", report["job"], "--json").json
    parts = sum(int(receipt[name]) for name in ("workers", "market_fee", "keepers", "refunded", "still_locked"))
    assert parts == int(receipt["escrow"])
    assert int(receipt["workers"]) > 0 and int(receipt["still_locked"]) == 0


def test_check__after_a_run__expects_of_each_billing_what_that_run_would_have_cost(
    place: Town, done: dict[str, Any]
) -> None:
    told = place.hearth("check", str(EXAMPLES / "digits" / "job.yaml"), "--json")
    assert told.code == 0, told.err
    plan = told.json
    receipt = place.hearth("job", "receipt", done["digits"]["job"], "--json").json
    unit = place.client.jobs.reads.look(done["digits"]["job"]).units[0]
    costs = {row["billing"]: row for row in plan["costs"]}
    assert plan["billing"] == "fuel" and list(costs) == ["fuel", "metered", "fixed"]
    assert plan["cost_basis"]["rate"] == str(unit.rate) and plan["cost_basis"]["units"] >= 1
    assert costs["fuel"]["unit_seconds"] == unit.seconds
    keepers = int(plan["keeper_fee"]) // 2 + int(plan["keeper_fee"]) // 8
    assert int(costs["fuel"]["expected"]) - keepers == int(receipt["workers"]) + int(receipt["market_fee"])
    assert int(costs["metered"]["expected"]) < int(costs["fixed"]["expected"]) < int(plan["escrow"])
    assert any(line.startswith("expected: fuel (chosen) ") for line in plan["text"])


def test_net_events_and_params__for_people__no_raw_figures(place: Town, done: dict[str, Any]) -> None:
    told = place.hearth("net", "events")
    symbol = place.session.asset.symbol
    assert told.code == 0, told.err
    assert f"registered: 2 slots at 0.6 {symbol}/h, stake 20 {symbol}, owner 0x" in told.out
    job = done["digits"]["job"]
    jobs_of = f"the jobs of {place.client.jobs.reads.look(job).terms.submitter}"
    assert f" locked for {jobs_of}\n" in told.out and f" {jobs_of}: " in told.out
    params = place.hearth("net", "params")
    assert f"  min_keeper_fee: 0.0000001 {symbol}\n" in params.out and f"  minimum_stake: 1 {symbol}\n" in params.out
    for amount in re.findall(rf"([0-9.]+) {symbol}", told.out + params.out):
        assert len(amount.replace(".", "").strip("0")) <= 6, amount


def test_submit__failing_job__exit_100_with_last_words(done: dict[str, Any]) -> None:
    report = done["failing"]
    assert report["error"]["code"] == "JOB_FAILED"
    assert report["error"]["details"]["job_exit_code"] == 3
    assert "no rows" in report["error"]["message"]


def test_submit__good_job__says_how_long_its_worker_keeps_the_outputs(place: Town, done: dict[str, Any]) -> None:
    job = done["digits"]["job"]
    reads = place.client.jobs.reads
    document = place.session.store.get_json(Results(reads)._reports(reads.look(job))[0].report)
    assert done["digits"]["results"]["kept_until"] == document["kept_until"] == document["ended"] + 7 * 86_400


def test_submit__every_state_change__prints_hash_block_gas_and_fee(done: dict[str, Any]) -> None:
    sent = done["digits"]["transactions"]
    assert sent and all(facts["tx"].startswith("0x") and facts["block"] > 0 for facts in sent)
    assert all(facts["gas"] > 20_000 and int(facts["fee"]) > 0 for facts in sent)


def test_submit__same_file_while_pending__finds_the_job_and_pays_once(place: Town, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    # Nobody asks this little, so the job stays open.
    job.write_text(example_text("failing", tmp_path).replace("1.20/h", "0.01/h"))
    first = place.hearth("submit", str(job), "--anyway", "-q")
    assert first.code == 0, first.err
    before = place.client.wallet.balance()
    second = place.hearth("submit", str(job), "--anyway", "-q")
    after = place.client.wallet.balance()
    assert (second.code, second.out) == (0, first.out)
    assert "posted already" not in second.out
    assert before == after
    third = place.hearth("submit", str(job), "--anyway", "--again", "-q")
    assert third.code == 0 and third.out != first.out
    for job_id in (first.out.strip(), third.out.strip()):
        cancelled = place.hearth("job", "cancel", job_id, "--json")
        assert cancelled.code == 0, cancelled.err
    shown = place.hearth("job", "show", first.out.strip()[:14], "--json")
    assert shown.json["state"] == "cancelled"


def test_run__module_without_a_price__asks_first_then_runs(place: Town, done: dict[str, Any], tmp_path: Path) -> None:
    command = ("run", "-i", f"{EXAMPLES / 'digits' / 'digits.csv'}:/in/digits.csv", "-o", "/out/accuracy.json")
    program = (str(EXAMPLES / "digits" / "digits.wasm"), "--epochs", "1")
    nonce = place.session.market.port.nonce(place.session.key().address)
    asked = place.hearth(*command, "--json", *program)
    assert (asked.code, asked.error["code"], asked.error["hint"]) == (
        3,
        "NOT_CONFIRMED",
        "use --yes, before IMAGE or MODULE",
    )
    assert place.session.market.port.nonce(place.session.key().address) == nonce
    results = tmp_path / "out"
    told = place.hearth(*command, "--yes", "--timeout", "3m", "--results", str(results), *program)
    assert told.code == 0, told.out + told.err
    assert "held-out digits" in told.out and (results / "accuracy.json").is_file()
    assert "nobody can challenge this result" in told.err and "costs at most" in told.err


def test_submit__plain_values__post_the_same_job_as_the_file(place: Town, tmp_path: Path) -> None:
    values = {
        "version": 1,
        "name": "values",
        "runtime": "wasm",
        "module": str(shutil.copy(EXAMPLES / "failing" / "failing.wasm", tmp_path)),
        "resources": {"cpus": 1, "memory": "64MiB"},
        "limits": {"runtime": "10s", "deadline": "1h"},
        # Nobody asks this little, so the job stays open.
        "price": {"max_rate": "0.01/h"},
    }
    with pytest.raises(SpecError, match=r"failing\.wasm lies outside"):
        place.client.jobs.submit(values, anyway=True)
    first = place.client.jobs.submit(values, anyway=True, allow_outside=True)
    assert first.submission is not None and not first.submission["already_posted"]
    file = tmp_path / "job.json"
    file.write_text(json.dumps(values))
    again = place.client.jobs.submit(str(file), anyway=True)
    assert again.submission is not None and again.submission["already_posted"] and again == first
    with pytest.raises(TypeError, match="not int"):
        place.client.jobs.submit(7)  # type: ignore[arg-type]
    assert place.hearth("job", "cancel", first.id).code == 0


def test_submit__credit_of_a_refund__pays_for_the_next_job(place: Town, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(example_text("failing", tmp_path).replace("1.20/h", "0.01/h"))
    job = place.hearth("submit", str(file), "--anyway", "--again", "-q").out.strip()
    assert place.hearth("job", "cancel", job).code == 0
    receipt = place.hearth("job", "receipt", job)
    assert "refunds are credit in Escrow" in receipt.out
    credit = int(place.client.wallet.balance()["credit"])
    assert credit > 0
    named = place.hearth("submit", str(file), "--anyway", "--again", "--dry-run")
    assert "more is your credit in Escrow; --use-credit" in named.err
    paid = place.hearth("submit", str(file), "--anyway", "--again", "--use-credit", "--json")
    assert paid.code == 0, paid.err
    escrow = int(place.hearth("job", "show", paid.json["job"], "--json").json["escrow"])
    actions = [one["action"] for one in paid.json["transactions"]]
    assert actions[0] == "escrow.withdraw" and actions[-1] == "jobs.post" and set(actions[1:-1]) <= {"token.approve"}
    assert int(place.client.wallet.balance()["credit"]) == credit - min(credit, escrow)
    assert place.hearth("job", "cancel", paid.json["job"]).code == 0


def test_job_wait__ended_job__shows_what_submit_shows(place: Town, done: dict[str, Any], tmp_path: Path) -> None:
    told = place.hearth("job", "wait", done["digits"]["job"], "--results", str(tmp_path / "out"), "--json")
    assert told.code == 0, told.err
    assert told.json["results"]["units"] == done["digits"]["results"]["units"]
    assert (tmp_path / "out" / "accuracy.json").is_file()
    failed = place.hearth("job", "wait", done["failing"]["job"], "--json")
    assert (failed.code, failed.error["code"]) == (100, "JOB_FAILED")


def test_job_rerun__good_job__same_outputs_as_a_new_job(place: Town, done: dict[str, Any]) -> None:
    first = done["digits"]
    told = place.hearth("job", "rerun", first["job"], "--wait", "--json", "--timeout", "3m")
    assert told.code == 0, told.out + told.err
    assert told.json["job"] != first["job"]
    outputs = [report["results"]["units"][0]["outputs"] for report in (first, told.json)]
    assert outputs[0] == outputs[1]


def test_job_actions__nothing_to_do_or_not_ours__refused(place: Town, done: dict[str, Any]) -> None:
    job = done["digits"]["job"]
    for command, code in (("cancel", "NOTHING_TO_CANCEL"), ("accept", "NOTHING_TO_ACCEPT")):
        told = place.hearth("job", command, job, "--json")
        assert (told.code, told.error["code"]) == (5, code)
        other = place.hearth("job", command, job, "--account", "provider", "--json")
        assert (other.code, other.error["code"]) == (5, "NOT_YOURS")
    missing = place.hearth("job", "cancel", job, "--unit", "1", "--json")
    assert (missing.code, missing.error["code"]) == (7, "NOT_FOUND")


def test_worker_exit__start_cancel_finish__follow_the_contract(place: Town, done: dict[str, Any]) -> None:
    config = str(place.worker_file("worker2"))
    registered = place.hearth("worker", "register", "--config", config, "--stake", "2", "--json")
    assert registered.code == 0, registered.out
    unsure = place.hearth("worker", "exit", "--config", config, "--json")
    assert (unsure.code, unsure.error["code"], unsure.error["hint"]) == (3, "NOT_CONFIRMED", "use --yes")
    assert place.hearth("worker", "status", "--config", config, "--json").json["exit_at"] is None
    assert place.hearth("worker", "exit", "--config", config, "--yes").code == 0
    early = place.hearth("worker", "exit", "--finish", "--config", config, "--json")
    assert (early.code, early.error["code"]) == (5, "UNBONDING")
    status = place.hearth("worker", "status", "--config", config, "--json").json
    assert status["status"] == "exiting" and status["exit_at"]
    assert place.hearth("worker", "exit", "--cancel", "--config", config).code == 0
    assert place.hearth("worker", "status", "--config", config, "--json").json["exit_at"] is None
    for mode in ("pause", "resume", "drain"):
        told = place.hearth("worker", mode, "--config", config, "--json")
        assert told.code == 0 and told.json["alive"] is False


def test_job_events__json__one_line_each_until_settled(place: Town, done: dict[str, Any]) -> None:
    told = place.hearth("job", "events", done["digits"]["job"], "--json")
    events = [json.loads(line) for line in told.out.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["JobPosted", "Settled"]
    assert {event["schema"] for event in events} == {"hearth.event/1"}


def test_job_spec__posted_job__hashes_to_what_the_chain_holds(place: Town, done: dict[str, Any]) -> None:
    told = place.hearth("job", "spec", done["digits"]["job"], "--json")
    shown = place.hearth("job", "show", done["digits"]["job"], "--json")
    assert canonical.digest(told.json).hex() == shown.json["spec"]


def test_wallet_withdraw__owner_credit__arrives(place: Town, done: dict[str, Any]) -> None:
    before = place.hearth("wallet", "balance", "provider", "--json").json
    told = place.hearth("wallet", "withdraw", "--account", "provider", "--json")
    assert told.code == 0, told.err
    after = place.hearth("wallet", "balance", "provider", "--json").json
    assert int(before["credit"]) > 0 and int(after["credit"]) == 0
    gained = int(after["asset"]) - int(before["asset"])
    fee = int(told.json["transactions"][0]["fee"]) if before["asset"] == before["native"] else 0
    assert gained == int(before["credit"]) - fee


def test_reads__every_look__succeeds_without_a_password(place: Town, done: dict[str, Any]) -> None:
    job = done["digits"]["job"]
    config = str(place.home / "worker.toml")
    looks = [
        ["jobs"], ["jobs", "--all", "--state", "settled"], ["jobs", "--last", "100"], ["offers", "--max-price", "2/h"],
        ["net", "status"], ["net", "workers"], ["net", "jobs"], ["net", "params"],
        ["job", "show", job], ["job", "logs", job],
        ["wallet", "list"], ["wallet", "show", "dev"], ["keeper", "list"],
        ["worker", "status", "--config", config], ["worker", "earnings", "--config", config],
        ["worker", "doctor", "--config", config], ["worker", "why", job, "--config", config],
    ]  # fmt: skip
    hidden = [path.rename(path.with_suffix(".hidden")) for path in (place.home / "keys").glob("*.password")]
    try:
        for look in looks:
            if "doctor" in look:
                continue
            told = place.hearth(*look, "--json")
            assert told.code == 0, (look, told.err, told.out)
            assert told.json["schema"].startswith("hearth.")
            plain = place.hearth(*look)
            assert plain.code == 0 and plain.out.strip(), look
    finally:
        for path in hidden:
            path.rename(path.with_suffix(".password"))


@pytest.mark.parametrize("last", [1, 2, 10_000])
def test_jobs__newest_ones__are_those_that_all_logs_tell(place: Town, done: dict[str, Any], last: int) -> None:
    everything = place.hearth("jobs", "--all", "--json").json["jobs"]
    assert len(everything) > 2
    newest = place.hearth("jobs", "--all", "--last", str(last), "--json").json["jobs"]
    assert newest == everything[:last]
    mine = place.hearth("jobs", "--last", str(last), "--json").json["jobs"]
    assert mine == [row for row in newest if row["submitter"] == place.session.key().address.lower()]


def test_jobs__of_this_account__have_names_times_and_costs(place: Town, done: dict[str, Any]) -> None:
    listed = {row["job"]: row for row in place.hearth("jobs", "--json").json["jobs"]}
    for name in ("digits", "failing"):
        row, receipt = listed[done[name]["job"]], place.hearth("job", "receipt", done[name]["job"], "--json").json
        assert row["name"] == name
        assert row["posted_at"] <= row["started_at"] <= row["ended_at"]
        assert int(row["cost"]) == sum(int(receipt[part]) for part in ("workers", "market_fee", "keepers")) > 0
        shown = place.hearth("job", "show", row["job"], "--json").json
        assert {key: shown[key] for key in row} == row
        assert row["cost_text"] in place.hearth("job", "show", row["job"]).out
    assert {row["name"] for row in place.hearth("jobs", "--name", "DIG", "--json").json["jobs"]} == {"digits"}
    # A machine that never read its spec has no name for it, and says so; the spec is read once.
    home = place.home / "stranger"
    (home / "networks").mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    shutil.copy(place.home / "networks" / "devnet.json", home / "networks")
    gateway = ("--rpc", place.url, "--account", place.session.key().address)
    told = hearth(home, "jobs", "--all", "--name", "digits", *gateway)
    assert told.code == 0 and "no jobs" in told.out and f"{len(listed)} jobs have names that are not read" in told.out
    shutil.copytree(place.home / "store", home / "store")
    assert "digits" in hearth(home, "jobs", "--all", "--name", "digits", *gateway).out
    shutil.rmtree(home / "store")
    assert "digits" in hearth(home, "jobs", "--all", "--name", "digits", *gateway).out


@pytest.mark.parametrize("account", ["dev", "provider", "keeper"])
def test_wallet_history__whole_market__is_exact_to_the_wei(place: Town, done: dict[str, Any], account: str) -> None:
    told = place.hearth("wallet", "history", account, "--json")
    assert told.code == 0, told.err
    report = told.json
    number = {name: int(value) for name, value in report.items() if isinstance(value, str) and value.isdigit()}
    for column in ("locked", "spent", "refunded", "earned"):
        assert number[column] == sum(int(row[column]) for row in report["jobs"])
    assert number["locked"] == number["spent"] + number["refunded"] + number["still_locked"]
    credit = place.session.market.credit(report["address"])
    assert credit == number["refunded"] + number["earned"] + number["from_nodes"] - number["withdrawn"]
    blocks = (place.rpc("eth_getBlockByNumber", hex(at), True) for at in range(report["block"] + 1))
    mine = [tx["hash"] for block in blocks for tx in block["transactions"] if tx["from"] == report["address"]]
    assert report["gas_transactions"] + report["other_transactions"] == len(mine) and report["gas_unknown"] == 0
    receipts = [place.session.market.port.receipt(bytes.fromhex(tx[2:])) for tx in mine]
    costs = sorted(receipt.fee for receipt in receipts if receipt is not None)
    if report["other_transactions"] == 0:
        assert number["gas"] == sum(costs)
    else:
        assert number["gas"] <= sum(costs[-report["gas_transactions"] :])
    if account == "dev":
        assert number["spent"] == sum(int(row["cost"]) for row in place.hearth("jobs", "--json").json["jobs"]) > 0
        assert {row["name"] for row in report["jobs"]} >= {"digits", "failing"} and number["gas"] > 0
    later = place.hearth("wallet", "history", account, "--since", "1s", "--json").json
    assert later["first_block"] > report["first_block"] and int(later["spent"]) <= number["spent"]
    text = place.hearth("wallet", "history", account).out
    assert f"locked by posting and top-ups: {report['text']['locked']}" in text or report["locked"] == "0"
    assert "\nlocked = spent + refunded + still locked\n" in text, "which holds, as is asserted above"
    assert f"spent: {report['text']['spent']}" in text and f"in {report['gas_transactions']} transactions" in text


def test_python_page__its_blocks__run_as_written(
    place: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) >= 7
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEARTH_HOME", str(place.home))
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "PYTHON.md", "exec"), names)
    said = capsys.readouterr().out
    assert "held-out digits" in said and "NOT_FOUND" in said
    job = names["job"]
    assert repr(job) == f'<Job {job.id[:14]} "digits": done, 1 unit, cost {job.cost}>'
    assert f"<td>{job.id[:14]}</td><td>digits</td>" in job._repr_html_()
    receipt = job.receipt()
    assert job.cost == sum(int(receipt[part]) for part in ("workers", "market_fee", "keepers"))
    assert job.posted_at <= job.started_at <= job.ended_at


def test_worker_earnings__after_the_jobs__counts_paid_and_failed(place: Town, done: dict[str, Any]) -> None:
    books = place.hearth("worker", "earnings", "--config", str(place.home / "worker.toml"), "--json").json
    assert books["paid"] >= 1 and books["failed_theirs"] >= 1
    assert int(books["income"]) > int(books["fees"]) > 0
    # The sums are those of the accounts: its owner's from work, and its own key's from keeper's work.
    status = place.hearth("worker", "status", "--config", str(place.home / "worker.toml"), "--json").json
    earned = {who: place.client.wallet.history(status[who]) for who in ("owner", "operator")}
    had = {who: int(one["earned"]) + int(one["from_nodes"]) for who, one in earned.items()}
    assert status["owner"] != status["operator"]
    assert had == {"owner": int(books["income"]), "operator": int(books["keeping"])}


def test_worker_owner_actions__price_and_stake__change_the_node(
    place: Town, done: dict[str, Any], tmp_path: Path
) -> None:
    config = str(place.home / "worker.toml")
    before = place.hearth("worker", "status", "--config", config, "--json").json
    prepared = place.hearth("worker", "stake", "1", "--config", config, "--print-tx", "--json")
    assert prepared.code == 0, prepared.err
    file = tmp_path / "tx.json"
    file.write_text(prepared.out)
    lie = json.loads(prepared.out)
    lie["prepared"]["data"] = "0x" + bytes(36).hex()
    (tmp_path / "lie.json").write_text(json.dumps(lie))
    refused = place.hearth(
        "worker", "stake", "1", "--tx", str(tmp_path / "lie.json"), "--account", "provider", "--json"
    )
    assert (refused.code, refused.error["code"]) == (2, "BAD_TX") and "NodeRegistry" in refused.error["message"]
    sent = place.hearth("worker", "stake", "1", "--tx", str(file), "--account", "provider", "--json")
    assert sent.code == 0, sent.err + sent.out
    priced = place.hearth("worker", "price", "0.55/h", "--config", config, "--json")
    assert priced.code == 0, priced.err
    updated = place.hearth("worker", "update", "--config", config, "--json")
    assert updated.code == 0, updated.err
    after = place.hearth("worker", "status", "--config", config, "--json").json
    assert int(after["stake"]) - int(before["stake"]) == 10**18


# ---- the books, sabotaged ----


class Hiding:
    """A provider that keeps one log back."""

    def __init__(self, port: ChainPort, topic: bytes) -> None:
        self._port, self._topic = port, topic
        self.hidden = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def logs(self, addresses: Sequence[str], topics: Topics = (), **bounds: Any) -> list[Log]:
        found = self._port.logs(addresses, topics, **bounds)
        for position, log in enumerate(found):
            if log.topics[0] == self._topic and not self.hidden:
                self.hidden += 1
                return found[:position] + found[position + 1 :]
        return found


def test_web3__over_the_clients_providers__answers_and_refusals_are_web3s_own(place: Town) -> None:
    from eth_utils.address import to_checksum_address
    from web3.exceptions import ContractCustomError

    network, own = place.session.network, to_checksum_address(place.session.key().address)
    w3 = place.client.web3()
    assert w3.is_connected() and w3.eth.chain_id == network.chain_id
    assert w3.eth.get_block(0)["hash"] == network.genesis_hash
    assert w3.eth.get_balance(own) == place.session.market.port.balance(own.lower())
    registry = w3.eth.contract(to_checksum_address(network.jobs), abi=artifact("JobRegistry").abi)
    assert registry.functions.ESCROW().call().lower() == network.escrow.lower()
    rules = w3.eth.contract(to_checksum_address(network.rules), abi=artifact("Rules").abi)
    # web3 decodes no custom error by itself: the number is in the data, and Lens knows what it says.
    with pytest.raises(ContractCustomError) as refusal:
        rules.functions.pause().call({"from": own})
    number = int(str(refusal.value.data)[10:], 16)
    lens = w3.eth.contract(to_checksum_address(network.lens), abi=artifact("Lens").abi)
    assert lens.functions.reason(number).call() == "rules: not the governor"


def _verify(place: Town, port: Any = None) -> dict[str, Any]:
    return Client(Settings(home=place.home), port=port).net.verify()


def test_net_verify__honest_chain__solvent(place: Town, done: dict[str, Any]) -> None:
    told = place.hearth("net", "verify", "--json")
    assert told.code == 0, told.out
    report = told.json
    assert list(report) == [
        "schema", "jobs", "units", "settled", "failed", "reclaimed", "results_checked", "solvent", "seconds", "council",
        "guardian", "delay",
    ]  # fmt: skip
    assert report["solvent"] is True and report["settled"] == report["results_checked"] >= 2
    assert report["failed"] == 1


@pytest.mark.parametrize("event", [Settled, Split])
def test_net_verify__one_event_hidden__not_solvent(place: Town, done: dict[str, Any], event: Any) -> None:
    port = Hiding(place.session.market.port, topic_of(event))
    report = _verify(place, port)
    assert port.hidden == 1
    assert report["solvent"] is False and report["faults"]


def _asset_slot(place: Town, holder: str, contract: str, value: int) -> str:
    """Return the storage slot of a HashMap[address, uint256] in which a holder's value lies."""
    for base in range(12):
        slot = "0x" + keccak(base.to_bytes(32, "big") + bytes(12) + bytes.fromhex(holder[2:])).hex()
        if int(place.rpc("eth_getStorageAt", contract, slot, "latest"), 16) == value:
            return slot
    raise AssertionError("no slot holds the value")


def _set(place: Town, contract: str, slot: str, value: int) -> None:
    place.rpc("anvil_setStorageAt", contract, slot, f"0x{value:064x}")
    place.rpc("evm_mine")


def test_net_verify__escrow_one_short__not_solvent_and_donation_changes_nothing(
    place: Town, done: dict[str, Any]
) -> None:
    escrow, token = place.session.network.escrow, place.session.network.asset.address
    held = place.session.market.asset_balance(escrow)
    slot = _asset_slot(place, escrow, token, held) if token else ""

    def hold(amount: int) -> None:
        if token:
            _set(place, token, slot, amount)
        else:
            place.rpc("anvil_setBalance", escrow, hex(amount))
            place.rpc("evm_mine")

    try:
        hold(held - 1)
        told = place.hearth("net", "verify", "--json")
        assert (told.code, told.json["solvent"]) == (1, False)
        hold(held + 12_345)
        told = place.hearth("net", "verify", "--json")
        assert (told.code, told.json["solvent"]) == (0, True)
    finally:
        hold(held)


def test_net_verify__one_credit_raised__not_solvent(place: Town, done: dict[str, Any]) -> None:
    from hearth.local import devnet

    escrow, treasury = place.session.network.escrow, devnet.account(devnet.TREASURY).address.lower()
    credit = place.session.market.credit(treasury)
    assert credit > 0
    word = words.pack(words.BOOK, {"amount": credit, "used": 1})
    slot = _asset_slot(place, treasury, escrow, word)
    try:
        _set(place, escrow, slot, word + 1)
        told = place.hearth("net", "verify", "--json")
        assert (told.code, told.json["solvent"]) == (1, False)
    finally:
        _set(place, escrow, slot, word)
    assert place.hearth("net", "verify").code == 0


@pytest.mark.parametrize("damage", ["dropped", "altered"])
@pytest.mark.parametrize("block", ["result", "outputs"])
def test_net_verify__result_block_damaged__exit_9(place: Town, done: dict[str, Any], block: str, damage: str) -> None:
    from hearth.storage import cid
    from hearth.storage.stores import FolderStore

    outputs = cid.parse(done["digits"]["results"]["units"][0]["outputs"])
    events = place.hearth("job", "events", done["digits"]["job"], "--json").out.splitlines()
    submitted = [json.loads(line) for line in events if '"Submitted"' in line][-1]
    wanted = outputs if block == "outputs" else canonical.cid_of_digest(bytes.fromhex(submitted["result"]))
    store = place.session.store
    assert isinstance(store, FolderStore)
    path = next(path for path in (place.home / "store").rglob("*") if path.is_file() and _is(path, wanted))
    kept = path.read_bytes()
    mode = path.stat().st_mode
    try:
        if damage == "dropped":
            path.unlink()
        else:
            path.chmod(0o600)
            path.write_bytes(bytes([kept[0] ^ 1]) + kept[1:])
        told = place.hearth("net", "verify", "--json")
        assert told.code == 9, told.out
        got = place.hearth("job", "get", done["digits"]["job"], "-o", str(place.home / "never"), "--json")
        assert got.code == 9 and not (place.home / "never").exists()
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
        path.chmod(mode)
    assert place.hearth("net", "verify").code == 0


def _is(path: Path, wanted: Any) -> bool:
    import hashlib

    return hashlib.sha256(path.read_bytes()).digest() == wanted.digest
