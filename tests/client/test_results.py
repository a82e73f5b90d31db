"""What a job left, fetched over the real contracts and a real store: its files, its words, and their faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hearth import Job
from hearth.base.errors import BadDestination, ConfigError, HearthError, NotFoundError, StorageError
from hearth.client.job import results as subject
from hearth.market.events import Submitted, topic_of
from hearth.protocol import words
from hearth.protocol.types import Outcome
from hearth.storage import cid
from tests.kit.evm_chain import Shop
from tests.kit.fake_chain import Event
from tools import schemas


def refused(call: Any, code: str, kind: type[HearthError]) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.code == code and caught.value.hint
    return caught.value


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def forget(shop: Shop, digest: bytes) -> None:
    """Let the store have lost a document."""
    for path in shop.market.home.rglob("*"):
        if path.is_file() and digest.hex() in str(path).replace("/", ""):
            path.unlink()


# ---- get ----


def test_get__one_unit__its_files_lie_in_the_folder_and_the_report_says_what_they_are(shop: Shop) -> None:
    job = shop.post()
    document = shop.done(job, files={"a.txt": "first", "sub/b.txt": "second"})
    report = shop.client.jobs.get(job, folder="out")
    schemas.validate(report)
    assert tree(Path("out")) == {"a.txt": "first", "sub/b.txt": "second"}
    (row,) = report["units"]
    assert {name: value for name, value in report.items() if name != "units"} == {
        "schema": "hearth.results/1",
        "job": job,
        "verdict": "ok",
        "judged": False,
        "folder": "out",
        "bytes": len("firstsecond"),
        "missing": 0,
        "unread": 0,
    }
    assert row == {
        "unit": 0,
        "outcome": "ok",
        "exit_code": 0,
        "result_cid": row["result_cid"],
        "outputs": document["outputs"]["cid"],
        "path": "out",
    }
    assert shop.store.get_json(cid.parse(row["result_cid"]).digest) == document
    assert [facts["what"] for kind, facts in shop.market.told if kind == "progress"][-1] == "fetch unit 0"
    assert [facts["total"] for kind, facts in shop.market.told if kind == "progress"][-1] == document["outputs"]["size"]


def test_get__no_folder_named__is_the_jobs_own_and_the_end_is_seen(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    assert [one["job"] for one in shop.client.session.records.unseen(_fingerprint(shop, job))] == [job]
    report = shop.client.jobs.get(job)
    assert report["folder"] == f"results-{job[2:10]}" and tree(Path(report["folder"])) == {"a": "1"}
    assert list(shop.client.session.records.unseen(_fingerprint(shop, job))) == []


def test_get__job_that_still_runs_another_unit__is_not_seen_to_its_end(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, files={"a": "1"})
    shop.client.jobs.get(job, folder="out")
    assert [one["job"] for one in shop.client.session.records.unseen(_fingerprint(shop, job))] == [job]


def _fingerprint(shop: Shop, job: str) -> str:
    (record,) = (one for one in shop.client.session.records.of_spec(shop.terms(job).spec, 8) if one["job"] == job)
    return record["fingerprint"]


def test_get__array__units_lie_side_by_side_and_the_folder_says_what_is_missing(shop: Shop) -> None:
    job = shop.post(array={"units": 3})
    shop.done(job, 0, files={"a": "zero"})
    shop.done(job, 1, files={"a": "one", "b": "more"})
    report = shop.client.jobs.get(job, folder="out")
    schemas.validate(report)
    assert [(row["unit"], row["path"]) for row in report["units"]] == [(0, "out/0000"), (1, "out/0001")]
    assert (report["missing"], report["unread"], report["bytes"]) == (1, 0, len("zeroonemore"))
    assert tree(Path("out")) == {"0000/a": "zero", "0001/a": "one", "0001/b": "more"}
    # One alone lies in the folder itself, and nothing else is missing of it.
    one = shop.client.jobs.get(job, folder="one", unit=1)
    assert tree(Path("one")) == {"a": "one", "b": "more"}
    assert (one["missing"], [row["unit"] for row in one["units"]], one["units"][0]["path"]) == (0, [1], "one")
    refused(lambda: shop.client.jobs.get(job, folder="two", unit=2), "NO_RESULT", NotFoundError)
    refused(lambda: shop.client.jobs.get(job, folder="two", unit=3), "NOT_FOUND", NotFoundError)
    assert not Path("two").exists()


def test_get__unit_whose_result_no_store_has__is_told_in_its_row_and_hides_no_other(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, files={"a": "zero"})
    shop.done(job, 1, files={"a": "one"})
    lost = cid.parse(shop.client.jobs.get(job, folder="all")["units"][0]["result_cid"])
    forget(shop, lost.digest)
    report = shop.client.jobs.get(job, folder="out")
    schemas.validate(report)
    assert (report["unread"], report["missing"]) == (1, 0)
    bad, good = report["units"]
    assert bad["fault"]["code"] == "BLOCK_MISSING" and bad["fault"]["message"].startswith("the result of unit 0 cannot")
    assert {name: bad[name] for name in ("unit", "outcome", "exit_code", "result_cid", "outputs", "path")} == {
        "unit": 0,
        "outcome": "ok",
        "exit_code": None,
        "result_cid": str(lost),
        "outputs": None,
        "path": None,
    }
    assert "fault" not in good and good["path"] == "out/0001"
    note = Path("out/INCOMPLETE.txt").read_text().splitlines()
    assert note[0].endswith(f"hearth job get {job[:14]} --unit N -o DIR") and note[1:] == [bad["fault"]["message"]]
    error = refused(lambda: shop.client.jobs.get(job, folder="one", unit=0), "BLOCK_MISSING", StorageError)
    assert error.hint.startswith(f"hearth job get {job[:14]} --unit 0 -o DIR tries again; hearth job rerun {job[:14]}")


def test_get__outputs_that_no_store_has__are_a_fault_of_their_unit(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    gone = {"cid": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", "size": 4}
    shop.done(job, 0, outputs=gone)
    shop.done(job, 1, files={"a": "one"})
    report = shop.client.jobs.get(job, folder="out")
    bad, good = report["units"]
    assert (bad["fault"]["code"], bad["outputs"], bad["path"]) == ("BLOCK_MISSING", gone["cid"], None)
    assert (report["unread"], report["missing"], report["bytes"], good["path"]) == (1, 0, 3, "out/0001")
    assert bad["fault"]["message"] in Path("out/INCOMPLETE.txt").read_text()
    single = shop.post()
    shop.done(single, outputs=gone)
    refused(lambda: shop.client.jobs.get(single, folder="single"), "BLOCK_MISSING", StorageError)


def test_get__unit_without_outputs__has_a_row_and_no_files(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, outcome=Outcome.TRAP, exit_code=None)
    shop.done(job, 1, files={"a": "one"})
    report = shop.client.jobs.get(job, folder="out")
    assert [(row["outcome"], row["exit_code"], row["path"]) for row in report["units"]] == [
        ("trap", None, None),
        ("ok", 0, "out/0001"),
    ]
    assert report["verdict"] == "failed" and not Path("out/0000").exists()
    assert not Path("out/INCOMPLETE.txt").exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [({"a": "x" * 1500}, "larger|more than|at most"), ({"a": "1", "big": "x" * 2000}, "larger|more than|at most")],
)
def test_get__more_than_the_spec_lets_a_unit_leave__is_not_fetched(shop: Shop, files: dict[str, str], why: str) -> None:
    job = shop.post(outputs=[{"path": "/out", "max_size": "1KiB"}])
    shop.done(job, files=files)
    with pytest.raises(StorageError, match=why) as caught:
        shop.client.jobs.get(job, folder="out")
    assert caught.value.code == "TOO_LARGE" and tree(shop.folder / "out") == {}


def test_get__spec_that_cannot_be_had__is_bound_by_the_disk_that_the_terms_pay_for(shop: Shop) -> None:
    job = shop.post(outputs=[{"path": "/out", "max_size": "1KiB"}])
    shop.done(job, files={"a": "x" * 2000})
    forget(shop, shop.terms(job).spec)
    assert shop.client.jobs.get(job, folder="out")["bytes"] == 2000


def test_get__names_that_programs_obey__are_written_under_others_and_told(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={".envrc": "rm -rf /", "a": "1"})
    (row,) = shop.client.jobs.get(job, folder="out")["units"]
    ((renamed),) = row["renamed"]
    assert renamed["path"] == ".envrc" and renamed["name"] != ".envrc"
    assert not Path("out/.envrc").exists() and (Path("out") / renamed["name"]).read_text() == "rm -rf /"
    outputs = shop.client.jobs.open(job).results("again")
    assert dict(outputs.units[0].renamed) == {".envrc": renamed["name"]}


def test_get__folder_that_holds_something__is_refused_before_anything_is_fetched(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    Path("mine").mkdir()
    Path("mine/mine.txt").write_text("mine")
    with pytest.raises(BadDestination):
        shop.client.jobs.get(job, folder="mine")
    assert tree(Path("mine")) == {"mine.txt": "mine"}
    Path("file").touch()
    with pytest.raises(BadDestination):
        shop.client.jobs.get(job, folder="file/out")


def test_get__pinned__is_kept_by_this_store_and_else_not(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.post()
    document = shop.done(job, files={"a": "1"})
    pinned: list[str] = []
    store = type(shop.client.session.store)
    plain = store.pin

    def pin(self: Any, root: Any) -> None:
        pinned.append(str(root))
        plain(self, root)

    monkeypatch.setattr(store, "pin", pin)
    shop.client.jobs.get(job, folder="one")
    assert pinned == []
    shop.client.jobs.get(job, folder="two", pin=True)
    assert pinned == [document["outputs"]["cid"]]
    shop.market.open(dry_run=True).jobs.get(job, folder="three", pin=True)
    assert len(pinned) == 1


def test_get__dry_run__tells_the_rows_and_writes_nothing(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, files={"a": "1"})
    shop.done(job, 1, files={"a": "1"})
    Path("script.py").write_text("print(1)")
    report = shop.market.open(dry_run=True).jobs.get(job, folder="out", reduce="script.py")
    assert [(row["unit"], row["path"]) for row in report["units"]] == [(0, None), (1, None)]
    assert (report["bytes"], report["unread"], "reduced" in report) == (0, 0, False) and not Path("out").exists()


def test_get__script_of_the_users__is_run_on_the_folder_when_all_is_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shop.post()
    document = shop.done(job, files={"a": "41"})
    script = Path("script.py")
    script.write_text("import sys, pathlib\nprint(int((pathlib.Path(sys.argv[1]) / 'a').read_text()) + 1)")
    assert shop.client.jobs.get(job, folder="out", reduce="script.py")["reduced"] == "42\n"
    script.write_text("import sys\nsys.exit('no such thing')")
    error = refused(lambda: shop.client.jobs.get(job, folder="two", reduce="script.py"), "REDUCE_FAILED", ConfigError)
    assert error.message == "script.py ended with 1: no such thing"
    monkeypatch.setattr(subject, "REDUCE_SECONDS", 0.2)
    script.write_text("import time\ntime.sleep(20)")
    error = refused(lambda: shop.client.jobs.get(job, folder="six", reduce="script.py"), "REDUCE_FAILED", HearthError)
    assert "ran longer than" in error.message
    refused(lambda: shop.client.jobs.get(job, folder="three", reduce="none.py"), "NO_SCRIPT", NotFoundError)
    assert not Path("three").exists() and document["outputs"]


def test_get__script_where_a_unit_is_missing__is_not_run(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, outputs={"cid": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", "size": 4})
    shop.done(job, 1, files={"a": "1"})
    Path("script.py").write_text("print(1)")
    assert "reduced" not in shop.client.jobs.get(job, folder="out", reduce="script.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_get__folder_that_this_user_may_not_make__is_refused(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    Path("locked").mkdir(mode=0o500)
    with pytest.raises(BadDestination, match="cannot be made in"):
        shop.client.jobs.get(job, folder="locked/deep/out")


def test_get__folder_below_one_that_is_not_there__is_made(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    for folder in ("new/deep/out", "new/deep/other"):
        shop.client.jobs.get(job, folder=folder)
        assert tree(Path(folder)) == {"a": "1"}


def test_get__array_fetched_while_one_is_missing__says_so_until_all_is_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that is killed leaves no folder that looks whole."""
    job = shop.post(array={"units": 2})
    for index in range(2):
        shop.done(job, index, files={"a": str(index)})
    seen: list[str] = []
    client = shop.market.open()
    client.session.meter = lambda what, total: seen.append(Path("out/INCOMPLETE.txt").read_text()) or _silent  # type: ignore
    client.jobs.get(job, folder="out")
    assert len(seen) == 2 and "the fetch has not come to its end" in seen[0] and job[:14] in seen[0]
    assert tree(Path("out")) == {"0000/a": "0", "0001/a": "1"}


def _silent(name: str, count: int) -> None:
    """Hear nothing of what moves."""


def test_get__disk_that_takes_no_more__is_no_fault_of_the_unit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.post(array={"units": 2})
    for index in range(2):
        shop.done(job, index, files={"a": str(index)})

    def full(*_: object, **__: object) -> None:
        raise BadDestination("no space left", hint="free some room", path="out")

    monkeypatch.setattr("hearth.storage.stores.base.StoreBase.fetch", full)
    with pytest.raises(BadDestination, match="no space left"):
        shop.client.jobs.get(job, folder="out")
    Path("blocked").mkdir()
    monkeypatch.setattr(Path, "write_text", _refuse_write)
    with pytest.raises(BadDestination, match=r"INCOMPLETE\.txt cannot be written: no room"):
        shop.client.jobs.get(job, folder="blocked")


def _refuse_write(*_: object, **__: object) -> int:
    raise OSError(28, "no room")


def test_get__folder_that_cannot_be_looked_at__is_refused(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    with pytest.raises(BadDestination):
        shop.client.jobs.get(job, folder="x" * 300 + "/out")


def test_get__log_that_names_another_result_than_storage_keeps__is_told_as_a_stray(shop: Shop) -> None:
    job = shop.post(verify={"keep": True})
    shop.done(job, files={"a": "1"}, logs={"stdout": "1", "stderr": ""})
    network, chain = shop.market.network, shop.market.chain
    topic = topic_of(Submitted)
    logs = chain.logs([network.jobs], from_block=0, to_block=10**6)
    (log,) = (one for one in logs if one.topics[0] == topic)
    real = next(shop.client.session.market.events_in([log]))
    assert isinstance(real, Submitted)
    chain.mine([Event(log.address, log.topics, log.data.replace(real.result, b"\x66" * 32))])
    report = shop.client.jobs.get(job, folder="out")
    assert report["strays"]["count"] == 1 and tree(Path("out")) == {"a": "1"}
    assert "strays" not in shop.market.open().jobs.get(shop_ok(shop), folder="other")


def shop_ok(shop: Shop) -> str:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    return job


# ---- logs ----


def test_logs__of_each_unit__what_it_wrote_and_its_workers_words(shop: Shop) -> None:
    job = shop.post(array={"units": 3})
    refused(lambda: shop.client.jobs.logs(job), "NO_LOGS", NotFoundError)
    told = {"detail": "it went well", "stderr_tail": "last words"}
    shop.done(job, 0, files={"a": "1"}, logs={"stdout": "out 0", "stderr": "err 0"}, report=told)
    shop.done(job, 1, outcome=Outcome.EXIT, report=told)
    report = shop.client.jobs.logs(job)
    schemas.validate(report)
    assert report["units"] == [
        {"unit": 0, "node": shop.node, "stdout": "out 0", "stderr": "err 0", "detail": "it went well"},
        {"unit": 1, "node": shop.node, "stdout": "", "stderr": "last words", "detail": "it went well"},
    ]
    assert (report["job"], report["unread"]) == (job, 0)
    logs = shop.client.jobs.open(job).logs()
    assert (logs.stdout, logs.stderr, repr(logs)) == (
        "out 0",
        "err 0last words",
        f"<Logs of job {job[:14]}: 2 units>",
    )
    assert [row["unit"] for row in shop.client.jobs.logs(job, unit=1)["units"]] == [1]
    refused(lambda: shop.client.jobs.logs(job, unit=2), "NO_LOGS", NotFoundError)
    refused(lambda: shop.client.jobs.logs(job, unit=3), "NOT_FOUND", NotFoundError)


def test_logs__that_cannot_be_had__leave_the_last_words_and_say_why(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    gone = {"cid": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"}
    shop.done(job, 0, report={"detail": "it failed", "stderr_tail": "last words", "logs": gone})
    shop.done(job, 1, logs={"stdout": "only this"})
    report = shop.client.jobs.logs(job)
    schemas.validate(report)
    lost, odd = report["units"]
    assert (lost["fault"]["code"], lost["detail"], lost["stderr"]) == ("BLOCK_MISSING", "it failed", "last words")
    assert odd["fault"]["message"] == "the logs hold no stdout and stderr" and report["unread"] == 2
    fault = shop.client.jobs.open(job).logs().units[1].fault
    assert fault == "the logs hold no stdout and stderr"


def test_logs__more_than_one_call_shows__names_the_command_for_the_rest(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_LOGS_BYTES", 10)
    job = shop.post(array={"units": 3})
    for index in range(3):
        shop.done(job, index, logs={"stdout": "12345", "stderr": "123"})
    first, second, third = shop.client.jobs.logs(job)["units"]
    assert first["stdout"] == second["stdout"] == "12345" and "fault" not in second
    assert third["stdout"] == "" and third["fault"]["code"] == "TOO_LARGE"


def test_logs__unit_that_was_given_back__has_its_reason(shop: Shop) -> None:
    job = shop.post()
    shop.start(job)
    digest = shop.store.put_json({"detail": "no such image"})
    world, terms = shop.world, shop.terms(job)
    world.jobs.send.decline(words.pack_terms(terms), 0, 6, digest, sender=world.operator)
    (row,) = shop.client.jobs.logs(job)["units"]
    assert (row["detail"], row["node"]) == ("no such image", shop.node)


def test_logs__worker_that_gave_no_reason__says_that(shop: Shop) -> None:
    job = shop.post()
    shop.start(job)
    packed = words.pack_terms(shop.terms(job))
    shop.world.jobs.send.decline(packed, 0, 6, bytes(32), sender=shop.world.operator)
    (row,) = shop.client.jobs.logs(job)["units"]
    assert row["detail"] == "its worker gave no reason, and left no logs" and "fault" not in row


def test_logs__longer_than_any_worker_keeps__are_not_fetched(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from hearth.protocol import runtimes

    monkeypatch.setattr(runtimes, "MAX_LOG_BYTES", 100)
    most = 100 + subject.GAP_BYTES
    job = shop.post(array={"units": 3})
    shop.done(job, 0, logs={"stdout": "x" * most, "stderr": "y" * most})
    shop.done(job, 1, logs={"stdout": "x" * (most + 1), "stderr": ""})
    shop.done(job, 2, logs={"stdout": "x", "stderr": "", "more": "z"})
    whole, long, many = shop.client.jobs.logs(job)["units"]
    assert (len(whole["stdout"]), len(whole["stderr"])) == (most, most) and "fault" not in whole
    assert long["fault"]["code"] == many["fault"]["code"] == "TOO_LARGE"


# ---- the end, as one hears of it ----


def attach(shop: Shop, job: str, **how: Any) -> Any:
    report = shop.client.jobs.posting.attach(job, **how)
    schemas.validate(report)
    return report["results"]


def test_end__of_a_job_that_went_well__is_verified_and_its_output_is_shown(shop: Shop) -> None:
    job = shop.post()
    document = shop.done(
        job, files={"a": "12345"}, logs={"stdout": "hello", "stderr": ""}, report={"kept_until": 1_900_000_000}
    )
    end = attach(shop, job, results="out")
    assert tree(Path("out")) == {"a": "12345"}
    fetched = end.pop("fetched")
    assert fetched["bytes"] == 5
    assert end == {
        "verdict": "ok",
        "ok": 1,
        "failed": 0,
        "verified": 1,
        "unread": 0,
        "units": [
            {
                "unit": 0,
                "outcome": "ok",
                "text": end["units"][0]["text"],
                "exit_code": 0,
                "outputs": document["outputs"]["cid"],
            }
        ],
        "failure": None,
        "kept_until": 1_900_000_000,
        "stdout": "hello",
        "parents_failed": False,
    }
    assert attach(shop, job)["fetched"] is None


def test_end__of_a_job_that_failed__says_how_in_its_own_words(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, files={"a": "1"}, report={"kept_until": 1_900_000_005})
    shop.done(
        job,
        1,
        outcome=Outcome.EXIT,
        files={"b": "2"},
        report={"detail": "it ended", "stderr_tail": "Traceback", "kept_until": 1_900_000_001},
    )
    end = attach(shop, job)
    assert (end["verdict"], end["ok"], end["failed"], end["verified"]) == ("failed", 1, 1, 2)
    assert end["failure"] == {
        "unit": 1,
        "exit_code": 3,
        "status": "exit",
        "detail": "it ended",
        "stderr_tail": "Traceback",
    }
    assert (end["kept_until"], end["stdout"]) == (1_900_000_001, "")
    assert [row["text"] for row in end["units"]][1] == "failed: the program ended with exit code 3"


def test_end__result_that_cannot_be_read__is_counted_and_said(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    shop.done(job, 0, index=7)
    shop.done(job, 1, files={"a": "1"})
    end = attach(shop, job)
    assert (end["verified"], end["unread"]) == (1, 1)
    assert [row["unit"] for row in end["units"]] == [0, 1]
    bad = end["units"][0]
    assert (bad["exit_code"], bad["outputs"], bad["outcome"]) == (None, None, "ok")
    assert ", but the result of unit 0 cannot be read: the result's index is 7" in bad["text"]
    fetched = attach(shop, job, results="out")
    assert (fetched["unread"], fetched["fetched"]["unread"]) == (1, 1)


def test_end__of_a_large_array__looks_at_some_reports_and_shows_the_first_units(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, looked = subject.Results._told, []

    def counted(self: subject.Results, one: Any) -> dict[str, Any]:
        looked.append(one.index)
        return told(self, one)

    monkeypatch.setattr(subject.Results, "_told", counted)
    job = shop.post(array={"units": 10})
    for index in range(10):
        # The chain's node promises less with each unit; only of the first eight is it asked.
        failed = {"outcome": Outcome.TRAP, "exit_code": None} if index == 9 else {}
        report = {"kept_until": 1_900_000_000 - index, "detail": f"unit {index}"}
        shop.done(job, index, files={"a": "1"}, report=report, seconds=1, **failed)
    end = attach(shop, job)
    assert end["kept_until"] == 1_900_000_000 - 7 and len(end["units"]) == 10
    assert (end["failure"]["unit"], end["failure"]["detail"]) == (9, "unit 9")
    # Whoever waits for the job waits for each report that is fetched, which may be from a machine that is off.
    assert looked == [*range(8), 9]


@pytest.mark.parametrize(
    ("outcome", "status", "code", "text"),
    [
        (Outcome.OK, "cancelled", None, "cancelled while it ran: this is what there was"),
        (Outcome.EXIT, "output_missing", 0, "failed: the program left less than the outputs that it must"),
        (Outcome.TRAP, "exit", 4, "failed: the program trapped"),
    ],
)
def test_end__by_its_status__is_one_sentence(shop: Shop, outcome: Outcome, status: str, code: int, text: str) -> None:
    job = shop.post()
    shop.done(job, outcome=outcome, status=status, exit_code=code)
    assert attach(shop, job)["units"][0]["text"] == text


# ---- as objects ----


def test_job__wait_and_results__are_the_end_and_its_files(shop: Shop) -> None:
    job = shop.client.jobs.submit(dict(shop.JOB))
    shop.done(job.id, files={"a": "12"}, logs={"stdout": "hello", "stderr": "warned"})
    assert job.wait() is job and isinstance(job, Job)
    assert (job.state, job.verdict, job.name) == ("settled", "ok", "digits")
    outputs = job.results("out")
    (unit,) = outputs.units
    assert (outputs.bytes, outputs.missing, outputs.complete, outputs.folder) == (2, 0, True, Path("out"))
    assert (unit.unit, unit.outcome, unit.exit_code, unit.path, unit.fault) == (0, "ok", 0, Path("out"), None)
    assert dict(unit.renamed) == {} and unit.cid
    assert repr(outputs) == f"<Outputs of job {job.id[:14]} in out: 2 bytes>"
    (log,) = job.logs().units
    assert (log.unit, log.node, log.stdout, log.stderr, log.detail, log.fault) == (
        0,
        shop.node,
        "hello",
        "warned",
        "",
        None,
    )
    assert job.spec()["name"] == "digits"


def test_job__array_of_which_something_is_missing__is_not_complete(shop: Shop) -> None:
    job = shop.client.jobs.open(shop.post(array={"units": 2}))
    shop.done(job.id, 0, files={"a": "12"})
    outputs = job.results("out")
    assert (outputs.missing, outputs.complete) == (1, False) and repr(outputs).endswith("2 bytes, not complete>")
    shop.done(job.id, 1, index=9)
    outputs = job.results("two")
    assert (outputs.missing, outputs.complete) == (0, False)
    assert (outputs.units[1].path, outputs.units[1].cid) == (None, None) and outputs.units[1].fault
    assert [one.unit for one in job.results("three", unit=0).units] == [0]


def test_spec__of_a_job__is_the_document_that_the_chain_names_and_names_it(shop: Shop) -> None:
    job = shop.post()
    (shop.client.session.state / "names" / shop.terms(job).spec.hex()).unlink(missing_ok=True)
    document = shop.client.jobs.spec(job)
    assert (document["name"], document["runtime"]) == ("digits", "wasm")
    assert (shop.client.session.state / "names" / shop.terms(job).spec.hex()).read_text() == "digits"


def test_get__unit_that_left_an_empty_folder__is_fetched_as_one(shop: Shop) -> None:
    job = shop.post()
    document = shop.done(job, files={})
    report = shop.client.jobs.get(job, folder="out")
    assert document["outputs"]["size"] == report["bytes"] == 0 and report["unread"] == 0
    assert Path("out").is_dir() and tree(Path("out")) == {}


def test_get__job_that_somebody_else_posted__is_known_by_its_name_from_then_on(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, files={"a": "1"})
    kept = shop.client.session.state / "names" / shop.terms(job).spec.hex()
    kept.unlink()
    shop.client.jobs.get(job, folder="out")
    assert kept.read_text() == "digits"


def test_get__two_faults_of_two_units__are_each_told_and_nothing_is_pinned_for_them(shop: Shop) -> None:
    job = shop.post(array={"units": 3})
    gone = {"cid": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", "size": 4}
    shop.done(job, 0, files={"a": "1"})
    shop.done(job, 1, outputs=gone)
    shop.done(job, 2, status={"a": 1})
    report = shop.client.jobs.get(job, folder="out", pin=True)
    good, lost, odd = report["units"]
    assert "fault" not in good and lost["fault"]["code"] == "BLOCK_MISSING" and report["unread"] == 2
    assert lost["fault"]["message"].startswith("the result of unit 1 cannot be read: ")
    assert odd["fault"]["message"] == "the result of unit 2 cannot be read: the result document lacks a field"
    error = refused(lambda: shop.client.jobs.get(job, folder="two", unit=2), odd["fault"]["code"], StorageError)
    # What no later try can mend is not to be tried again.
    assert error.hint == f"hearth job rerun {job[:14]} posts the job anew"
    end = attach(shop, job, results="three")
    assert (end["verified"], end["unread"]) == (2, 2)


def test_end__of_an_array__shows_nobodys_output_as_the_jobs(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    for index in range(2):
        shop.done(job, index, logs={"stdout": f"hello {index}", "stderr": ""})
    assert attach(shop, job)["stdout"] == ""


def test_nothing_left__of_a_unit_of_an_array__is_named_as_that(shop: Shop) -> None:
    job = shop.post(array={"units": 2})
    jobs = shop.client.jobs
    error = refused(lambda: jobs.get(job, folder="out", unit=1), "NO_RESULT", NotFoundError)
    assert error.message.startswith(f"unit 1 of job {job[:14]} has no result yet: no machine")
    error = refused(lambda: jobs.get(job, folder="out"), "NO_RESULT", NotFoundError)
    assert error.message.startswith(f"job {job[:14]} has no result yet: ")
    shop.done(job, 0)
    error = refused(lambda: jobs.get(job, folder="out", unit=1), "NO_RESULT", NotFoundError)
    assert error.message.endswith("has no result yet: no machine has taken it"), "its state, and not the job's"
    one = shop.post()
    error = refused(lambda: jobs.get(one, folder="out", unit=0), "NO_RESULT", NotFoundError)
    assert error.message.startswith(f"job {one[:14]} has no result yet: ")
    shop.start(one)
    shop.market.pass_time(2_000)
    for _ in range(3):
        shop.world.reclaim(shop.terms(one))
        if shop.world.state(shop.terms(one)).terminal:
            break
        other = shop.world.register(ask=10**12, operator=shop.world.stranger)
        shop.world.claim(shop.terms(one), other, sender=shop.world.stranger)
        shop.market.pass_time(2_000)
    error = refused(lambda: jobs.get(one, folder="out"), "NO_RESULT", NotFoundError)
    assert error.message.endswith("has no result, and none will come: it ended without one")
    error = refused(lambda: jobs.logs(one), "NO_LOGS", NotFoundError)
    assert error.message.endswith("has no logs, and none will come: no worker reported of it")


def test_logs__stray_of_the_chain__is_told_beside_them(shop: Shop) -> None:
    job = shop.post()
    shop.done(job, logs={"stdout": "1", "stderr": ""})
    assert "strays" not in shop.client.jobs.logs(job)
    network, chain = shop.market.network, shop.market.chain
    (log,) = (
        one for one in chain.logs([network.jobs], from_block=0, to_block=10**6) if one.topics[0] == topic_of(Submitted)
    )
    # A unit that the job does not have.
    chain.mine([Event(log.address, log.topics, (9).to_bytes(32, "big") + log.data[32:])])
    assert shop.client.jobs.logs(job)["strays"]["count"] == 1
