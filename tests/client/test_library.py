"""The library as a program uses it: settings by name, paths of any form, jobs as objects, errors and nothing else."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hearth
from hearth import Amount, Client, HearthError, Job, JobTable
from hearth.base.errors import BadDestination, ConfigError, NotFoundError, SpecError, UsageError
from hearth.base.files import path_of
from hearth.client import face
from hearth.client.job.courses import Courses
from hearth.client.job.results import Results
from hearth.client.judges.attesting import Attesting
from hearth.client.names import Moments, Names
from hearth.client.posting.post import Posting
from hearth.client.posting.preflight import Preflight
from hearth.client.posting.quick import RunOptions, spec_of_run
from hearth.client.reading import JobReader
from hearth.client.records import Records
from hearth.client.session import Session
from hearth.config.settings import Settings, home_folder, settings_of
from hearth.config.trust import Trust
from hearth.jobfile import load_spec, spec_of
from hearth.local.market import LocalMarket
from hearth.local.project import convert_file, write_project
from hearth.market.events import Split, topic_of
from hearth.protocol import words
from hearth.protocol.formulas import escrow_at_post, lock_key
from hearth.protocol.types import State, Unit
from hearth.protocol.units import NATIVE, amount_at_least, show_rate
from hearth.storage import canonical
from hearth.storage.stores import FolderStore
from keeper.manage import Keeping
from tests.client.test_parents import ACCOUNT, WELL, Place
from tests.kit import build
from tests.kit.evm import ROOT
from tests.kit.fake_chain import Event
from tests.market.test_events import own_log
from worker.manage import Provider, selftest
from worker.scaffold import write_settings

SILENT = ("hearth/base", "hearth/chain", "hearth/client", "hearth/config", "hearth/market", "hearth/protocol")
JOB = "0x" + "ab" * 32


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


# ---- the package ----


def test_package__every_name_of_its_face__is_there_and_typed() -> None:
    assert all(getattr(hearth, name) is not None for name in hearth.__all__)
    assert sorted(hearth.__all__) == hearth.__all__ == dir(hearth)
    typed = {
        alias.name
        for node in ast.walk(ast.parse(Path(str(hearth.__file__)).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(hearth.__all__) - {"__version__"} <= typed
    assert issubclass(hearth.StorageError, HearthError) and "py.typed" in os.listdir(ROOT / "hearth")
    with pytest.raises(AttributeError, match="no attribute 'Clientt'"):
        _ = hearth.Clientt  # type: ignore[attr-defined]


def test_package__script_beside_a_folder_of_its_name__imports_the_package(tmp_path: Path) -> None:
    """A clone is such a folder: without __init__.py it is a namespace package, found before any finder asked last."""
    (tmp_path / "hearth" / "docs").mkdir(parents=True)
    script = tmp_path / "script.py"
    script.write_text("import hearth\nfrom hearth import HearthError\nprint(hearth.__file__)\n")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{hearth.__file__}\n", "")


def test_library__none_of_its_files__prints_asks_or_ends_the_process() -> None:
    loud = []
    for path in (path for folder in SILENT for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            named |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            ended = isinstance(node, ast.Name) and node.id == "SystemExit"
            if called in ("print", "input", "exit", "quit") or ended or named & {"click", "rich"}:
                loud.append(f"{path.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.exit":
                loud.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert loud == []


# ---- settings ----


def test_client__settings_by_name__win_over_environment_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTH_NETWORK", "other")
    (tmp_path / "hearth.toml").write_text('account = "filed"\nstore = "folder"\n')
    with pytest.raises(ConfigError, match=r"hearth\.toml.* says account") as refused:
        Client(network="devnet", home="home2")
    assert refused.value.code == "UNKNOWN_FILE"
    for home in (tmp_path / "home2", home_folder(os.environ)):
        Trust(home).record(tmp_path / "hearth.toml", (tmp_path / "hearth.toml").read_bytes())
    client = Client(
        network="devnet", rpc="http://127.0.0.1:1", timeout=90, home="home2", password_file=Path("~/secret")
    )
    found = client.session.settings
    assert (found.network, found.account, found.rpc, found.timeout) == ("devnet", "filed", ("http://127.0.0.1:1",), 90)
    assert (found.home, found.password_file) == (tmp_path / "home2", Path.home() / "secret")
    assert repr(client) == f"<Client network='devnet', account='filed', home='{tmp_path / 'home2'}'>"
    assert Client(network=Path("net.json")).session.settings.network == str(tmp_path / "net.json")
    assert Client(rpc=["http://a:1", "http://b:2"], timeout="2m").session.settings.timeout == 120
    assert Client().session.settings.network == "other"


def test_client__names_of_its_settings__are_all_settings() -> None:
    named = set(inspect.signature(Client).parameters) - {"settings", "tell", "dry_run", "ask_password", "port"}
    # `origins`, `project` and `trust` are found, `rpc_file` becomes `rpc`.
    assert named == set(Settings.__dataclass_fields__) - {"origins", "project", "trust"} | {"rpc_file"}


@pytest.mark.parametrize("given", [{"rpc": "nowhere"}, {"timeout": 0}, {"network": "x y"}, {"store": "x"}])
def test_client__settings_that_cannot_be__are_refused_with_a_hint(given: dict[str, Any]) -> None:
    with pytest.raises((UsageError, ConfigError)) as caught:
        Client(**given)
    assert caught.value.hint and caught.value.code and caught.value.exit_code in (2, 3)


def test_client__whole_settings_and_one_more__is_a_mistake() -> None:
    with pytest.raises(TypeError, match="network beside them would be lost"):
        Client(settings_of(), network="devnet")


# ---- paths ----


def test_path_of__text_path_or_none__is_a_path(tmp_path: Path) -> None:
    assert path_of("out") == Path("out") and path_of(Path("~") / "out") == Path.home() / "out"
    assert path_of(None) is None
    for wrong in (7, b"out", ["out"]):
        with pytest.raises(TypeError, match="a path is a str or a"):
            path_of(wrong)  # type: ignore[call-overload]
    for none in ("", "a\0b"):
        with pytest.raises(UsageError, match="names no file"):
            path_of(none)


def test_methods__whoever_takes_a_path__takes_text_too() -> None:
    client = Client()
    owners = {type(one) for one in (*vars(client).values(), *vars(client.jobs).values()) if not inspect.isroutine(one)}
    owners |= {Client, Job, Attesting, Provider, Keeping, LocalMarket}
    functions: list[Any] = [write_project, convert_file, selftest, write_settings, load_spec, spec_of, Results.get]
    for owner in owners - {Session, JobReader}:
        functions += [one for name, one in vars(owner).items() if inspect.isfunction(one) and name.strip("_") == name]
    assert len(functions) > 80
    narrow = {
        f"{function.__qualname__}({name})"
        for function in functions
        for name, one in inspect.signature(function).parameters.items()
        if re.search(r"\bPath\b", str(one.annotation))
    }
    assert narrow == set()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda client: client.jobs.submit("job.yaml", wait=True, results="taken"), BadDestination),
        (lambda client: client.jobs.submit("job.yaml", wait=True, results=7), TypeError),
        (lambda client: client.jobs.submit("job.yaml", results="out"), UsageError),
        (lambda client: client.jobs.run("x.wasm", wait=True, results="taken"), BadDestination),
        (lambda client: client.jobs.run("x.wasm", "--epochs 3"), TypeError),
        (lambda client: client.jobs.get(JOB, folder=7), TypeError),
        (lambda client: client.jobs.get(JOB, folder="out", reduce="nowhere.py"), NotFoundError),
        (lambda client: client.jobs.confirm(JOB, (), ["one"], attesters=7), TypeError),
        (lambda client: client.jobs.attest(JOB, out=7), TypeError),
        (lambda client: client.store.export("bafk", 7), TypeError),
        (lambda client: client.net.snapshot(7), TypeError),
    ],
)
def test_call__path_that_cannot_be__is_refused_before_anything_is_asked_or_paid(
    call: Callable[[Client], object], error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    (tmp_path / "job.yaml").write_text("version: 1\nruntime: wasm\nmodule: x.wasm\nlimits: {runtime: 1m}\n")
    for owner, name in ((Preflight, "planned"), (Results, "_look")):
        monkeypatch.setattr(owner, name, lambda *given: pytest.fail("asked"))
    with pytest.raises(error):
        call(Client())


def test_call__file_that_the_system_refuses__is_an_error_with_a_code_and_a_hint(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("a long password of mine")
    secret.chmod(0o600)
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "keys").touch()
    with pytest.raises(HearthError) as caught:
        Client(password_file=secret).wallet.new()
    assert (caught.value.code, caught.value.exit_code) == ("FILE_REFUSED", 9)
    assert str(tmp_path / "home") in caught.value.message and caught.value.hint


def _public() -> list[Any]:
    """Return the public methods of a client and of what it holds, each with its owner."""
    client = Client()
    held = [client.jobs, client.jobs.posting, client.wallet, client.workers, client.net, client.gov, client.store]
    held += [Results(client.jobs.reads), Attesting(client.jobs.reads), Job(client.jobs, JOB)]
    return [
        (getattr(owner, name), param)
        for owner in held
        for name, one in vars(type(owner)).items()
        if inspect.isfunction(one) and not name.startswith("_")
        for param in inspect.signature(getattr(owner, name)).parameters.values()
    ]


def test_methods__each_argument_that_is_none_or_of_a_wrong_type__is_refused_by_its_name() -> None:
    """Before anything is asked: this client has no chain. 1j is no argument of anything."""
    tried = 0
    for method, wrong in _public():
        if wrong.kind is wrong.VAR_KEYWORD:
            continue
        for value in (1j, *([] if "None" in wrong.annotation else [None])):
            needed = {
                param.name: PLAUSIBLE[param.annotation]
                for param in inspect.signature(method).parameters.values()
                if param.default is param.empty and param.kind is not param.VAR_KEYWORD
            }
            with pytest.raises((TypeError, HearthError)) as caught:
                method(**{**needed, wrong.name: value})
            said = str(caught.value)
            assert re.search(rf"\b{wrong.name}\b", said) and " is " in said, f"{method}: {wrong.name}: {said}"
            tried += 1
    assert tried > 200


PLAUSIBLE = {
    "str": "1h",
    "AnyJob": "job.yaml",
    "AnyPath": "file",
    "int": 1,
    "bytes": b"",
    "Sequence[int]": (),
    "Sequence[str]": (),
    "Path | None": None,
    "Sequence[AnyPath]": (),
    "Node": SimpleNamespace(),
    "Offer": SimpleNamespace(),
    "Holder": SimpleNamespace(),
}
"""What stands beside the argument that is wrong, of each type that has no default."""


def test_client__each_argument_of_a_wrong_type__is_refused_by_its_name() -> None:
    for name, param in inspect.signature(Client).parameters.items():
        for value in (1j, {"a": 1}, {"a"}, [7], *([] if "None" in param.annotation else [None])):
            with pytest.raises(TypeError, match=rf"^Client: {name}(\[0\])? is "):
                Client(**{name: value})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rpc": ["http://a:1", 7]}, 'rpc[1] is text, not int: write "7"'),
        ({"rpc": {"http://a:1"}}, "rpc is text or a list, of which each is text or None, not set: a set has no order"),
        ({"store": 7}, 'store is text or None, not int: write "7"'),
        ({"timeout": 1.5}, "timeout is text or a whole number or None, not float"),
        ({"network": 5}, "network is a path or None, not int"),
        ({"tell": 7}, "tell is a function, not int"),
    ],
)
def test_client__argument_of_a_wrong_type__says_what_to_write(given: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        Client(**given)
    assert str(caught.value) == f"Client: {said}"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["--epochs", 3], 'command[1] is text, not int: write "3"'),
        (("a", None), "command[1] is text, not None"),
        ({"a", "b"}, "command is a list, of which each is text, not set: a set has no order"),
        ("--epochs 3", "command is a list, of which each is text, not str"),
        ((one for one in "ab"), "command is a list, of which each is text, not generator"),
    ],
)
def test_run__command_that_is_no_list_of_text__is_refused_by_its_place(command: Any, said: str) -> None:
    for run in (Client().jobs.run, Client().jobs.posting.run):
        with pytest.raises(TypeError) as caught:
            run("x.wasm", command)
        assert str(caught.value) == f"run: {said}"


def test_run__command_as_a_tuple_or_a_list__is_the_same_job(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def planned(self: Preflight, loaded: Any, *given: Any, **named: Any) -> None:
        made.append(loaded.spec)
        raise UsageError("far enough")

    monkeypatch.setattr(Preflight, "planned", planned)
    for run in (Client().jobs.run, Client().jobs.posting.run):
        for command in (["a", "b"], ("a", "b")):
            with pytest.raises(UsageError, match="far enough"):
                run("x.wasm", command)
    assert len(made) == 4 and all(one == made[0] and one.command == ["a", "b"] for one in made)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_total": 0.5}, 'max_total is text or None, not float: write "0.5"'),
        ({"max_rate": 1.2}, 'max_rate is text or None, not float: write "1.2/h"'),
        ({"runtime": 60}, 'runtime is text, not int: write "60s"'),
        ({"memory": 4}, 'memory is text, not int: write "4GiB"'),
        ({"env": None}, "env is a mapping, not None"),
        ({"inputs": "a:/in/a"}, "inputs is a list, of which each is text, not str"),
        ({"gpu": "1"}, "gpu is a whole number, not str"),
        ({"env": {"A": 3}}, "env['A'] is text, not int: write \"3\""),
        ({"env": {1: "a"}}, 'a key of env is text, not int: write "1"'),
        ({"outputs": ["/out/a", 7]}, 'outputs[1] is text, not int: write "7"'),
    ],
)
def test_run__option_of_a_wrong_type__is_refused_by_its_name(given: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        Client().jobs.run("x.wasm", **given)
    assert str(caught.value) == f"run: {said}"


def test_job__price_that_is_a_float__is_to_be_written_as_text() -> None:
    job: dict[str, Any] = {"version": 1, "runtime": "wasm", "module": "x.wasm", "limits": {"runtime": "1m"}}
    for price, hint in (({"max_total": 0.5}, 'quote it: "0.5"'), (0.5, 'write {max_total: "0.5"}')):
        with pytest.raises(SpecError) as caught:
            Client().jobs.check({**job, "price": price})
        assert caught.value.hint == hint and "not a mapping" not in caught.value.message
    with pytest.raises(SpecError) as caught:
        Client().jobs.check({**job, "limits": {"runtime": 1.5}})
    assert caught.value.hint == 'did you mean "1h30m"?'


def test_python_page__every_kind_that_a_client_tells__is_a_row_of_its_table() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "hearth" / "client").rglob("*.py")]
    told = {kind for source in sources for kind in re.findall(r'\btell\(\s*"([a-z]+)"', source)}
    page = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8").partition("## Progress")[2].partition("## ")[0]
    listed = {kind for row in re.findall(r"^\| (`.*?) \|", page, re.M) for kind in re.findall("`([a-z]+)`", row)}
    assert told == listed


# ---- errors in a program's words ----


def test_errors__of_a_client__name_arguments_and_those_of_commands_options(tmp_path: Path) -> None:
    calls: list[Callable[[Client], object]] = [
        lambda client: client.jobs.submit("job.yaml", results="out"),
        lambda client: client.jobs.run("x.wasm", after=["0x12:never"]),
        lambda client: client.net.events(limit=0),
    ]
    (tmp_path / "job.yaml").write_text("version: 1\nruntime: wasm\nmodule: x.wasm\nlimits: {runtime: 1m}\n")
    said = {}
    for commands in (False, True):
        client = Client()
        client.session.program = not commands
        for number, call in enumerate(calls):
            with pytest.raises(UsageError) as caught:
                call(client)
            assert caught.value.message == str(caught.value)
            said[commands, number] = (caught.value.message, caught.value.hint)
    assert said[True, 0][0] == "--results needs --wait" and said[False, 0][0] == "results needs wait=True"
    assert said[True, 1][1].startswith("write --after JOB,") and said[False, 1][1].startswith("write after=[JOB],")
    assert said[True, 2][0] == "--limit must be at least 1" and said[False, 2][0] == "limit must be at least 1"
    with pytest.raises(HearthError) as caught_too:
        Client(rpc="nowhere")
    assert caught_too.value.hint.startswith("use rpc=")


def test_in_python__every_argument__is_one_of_a_client_or_its_methods() -> None:
    named = {param.name for _, param in _public()} | set(inspect.signature(Client).parameters)
    named |= set(RunOptions.__annotations__)
    assert {name for name, _ in face.ARGUMENTS.values()} <= named


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("use --rpc https://HOST, or --rpc URL", 'use rpc="https://HOST", or rpc=URL'),
        ("--limit 5 and --cpus 4", "limit=5 and cpus=4"),
        ("--timeout 1h", 'timeout="1h"'),
        ("--unit 3", "units=[3]"),
        ("--var A=...", 'variables={"A": ...}'),
        ("-e API_KEY: no; -e my_key: no", 'env={"API_KEY": ...}: no; env={"my_key": ...}: no'),
        ('-o "yaml": not absolute', 'outputs=["yaml"]: not absolute'),
        ("or --network '/my dir/x.json'", "or network='/my dir/x.json'"),
        ('the command "-o" of sh', 'the command "-o" of sh'),
        ("hearth job get 0x12 -o DIR --unit 3; add --wait", "hearth job get 0x12 -o DIR --unit 3; add wait=True"),
    ],
)
def test_in_python__value_of_an_option__is_written_as_its_argument_takes_it(text: str, said: str) -> None:
    assert face.in_python(text) == said


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        ({"memory": "1MiB"}, 'memory="1MiB": ', 'memory="6MiB"'),
        ({"runtime": "10"}, 'runtime="10": ', '"10s"'),
        ({"cpus": 5000}, "cpus=5000: ", ""),
        ({"gpu": 1}, "gpu=1: ", ""),
        ({"tier": "rtx-4090"}, "gpu=0: ", "gpu=1"),
        ({"max_total": "1,2"}, 'max_total="1,2": ', ""),
        ({"env": {"API_KEY": "x"}}, 'env={"API_KEY": ...}: ', ""),
        ({"outputs": ["yaml"]}, 'outputs=["yaml"]: ', ""),
        ({"inputs": ["x:/data"]}, 'inputs=["x:/data"]: ', ""),
    ],
)
def test_run__bad_option__is_named_as_a_program_gave_it(given: Any, said: str, hint: str) -> None:
    with pytest.raises(HearthError) as caught:
        Client().jobs.run("x.wasm" if {"gpu"} & set(given) else "a:1", **given)
    assert said in caught.value.message and hint in caught.value.hint
    assert not re.search(r"(?<![\w-])--?[a-z]", caught.value.message + caught.value.hint), caught.value


COMMANDS_ALONE = {"--tx", "--port", "--home", "--version", "--help", "--name", "--force", "--decimals", "--token"}
COMMANDS_ALONE |= {"--treasury", "--council", "--confirmations", "--per-ether", "--hash", "--epochs"}
"""Options without an argument: of devnet and web, of `ape run deploy`, and of other programs."""


def test_in_python__every_error_of_the_library__leaves_no_option_that_has_an_argument() -> None:
    left = set()
    for folder in SILENT:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(("Error", "error", "refused")):
                    continue
                for text in (*node.args, *(one.value for one in node.keywords)):
                    plain = re.sub(r"\{[^}]*\}", "X", ast.unparse(text).strip("f'\""))
                    plain = re.sub(r"\bhearth [a-z][^;,)]*", "", face.in_python(plain))
                    left |= {(path.name, option) for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", plain)}
    assert {option for _, option in left} <= COMMANDS_ALONE, left


# ---- jobs as objects ----


class Told:
    """`client.jobs` as a job asks it: what it answers, and what it was asked."""

    def __init__(self, **row: Any) -> None:
        self.session = SimpleNamespace(asset=NATIVE)
        known = {
            "job": JOB,
            "name": "digits",
            "state": "settled",
            "state_text": "done",
            "verdict": "ok",
            "units": 1,
            "submitter": ACCOUNT,
        }
        known |= {"posted_at": 1_700_000_000, "started_at": 1_700_000_060, "ended_at": 1_700_000_090, "escrow": "9"}
        self.row = {**known, "cost": str(10**16), "cost_text": "0.01 ETH", "deadline": 1 << 39, **row}
        self.asked: list[str] = []

    def show(self, job: str) -> Any:
        self.asked.append("show")
        return self.row

    def cancel(self, job: str, *, unit: int | None = None) -> Any:
        self.row = {**self.row, "state": "cancelled", "verdict": "refunded"}
        return {"schema": "hearth.action/1"}


def test_job__its_properties__show_one_look_until_it_is_asked_again() -> None:
    told = Told(state="open", state_text="waiting for a machine", verdict="pending", cost="0", cost_text="0 ETH")
    job = Job(told, JOB)  # type: ignore[arg-type]
    assert repr(job) == "<Job 0xabababababab>" and not told.asked
    assert job.state_text == "waiting for a machine"
    assert (job.state, job.ok, job.ended, job.name, job.units, job.cost) == ("open", False, False, "digits", 1, 0)
    assert (
        told.asked == ["show"]
        and repr(job) == '<Job 0xabababababab "digits": waiting for a machine, 1 unit, cost 0 ETH>'
    )
    job.cancel()
    assert (job.state, job.ended, told.asked) == ("cancelled", True, ["show", "show"])
    assert job.refresh() is job and len(told.asked) == 3
    assert job.posted_at is not None and job.posted_at.isoformat() == "2023-11-14T22:13:20+00:00"
    assert job.deadline is None and job == Job(Told(), JOB) and len({job, Job(Told(), JOB)}) == 1  # type: ignore[arg-type]


def test_job__of_a_list__is_shown_as_a_table_whose_words_are_escaped() -> None:
    hostile = Told(name="<script>alert(1)</script>\u202e\x1b[2J", state="open", verdict="pending", cost_text=None)
    job = Job(hostile, JOB, row=hostile.row)  # type: ignore[arg-type]
    for shown in (job._repr_html_(), JobTable([job, Job(hostile, JOB)])._repr_html_()):  # type: ignore[arg-type]
        assert "&lt;script&gt;" in shown and "<script" not in shown and "\x1b" not in shown and "\u202e" not in shown
        assert shown.count("<tr>") == shown.count("</tr>") and "None" not in shown
    assert "\x1b" not in repr(job) and repr(job).count("\n") == 0 and not hostile.asked
    table = JobTable([job, job], unnamed=3)
    assert (len(table), table[0], len(table[1:]), table.unnamed) == (2, job, 1, 3)
    assert repr(table) == f"{job!r}\n{job!r}" and repr(JobTable([])) == "<no jobs>"


def test_amount__is_exact_and_says_itself_for_people() -> None:
    amount = Amount(12_345 * 10**12, NATIVE)
    assert amount == 12_345 * 10**12 and amount + 1 == 12_345 * 10**12 + 1
    assert f"{amount} {amount:d}" == "0.012345 ETH 12345000000000000"
    for form in (".4", "020", ".2f", ",", "x"):
        with pytest.raises(ValueError, match="an amount has a width"):
            format(amount, form)
    assert format(amount, ">14") == "  0.012345 ETH" and f"{amount:.^14}" == ".0.012345 ETH."
    assert str(pickle.loads(pickle.dumps(amount))) == str(amount)


def test_run__no_price__is_refused_with_the_markets_own_unless_that_is_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, asked = Place(), list[bool]()
    terms = build.terms(submitter=ACCOUNT, salt=0)
    made = SimpleNamespace(
        lines=(), gates={}, fingerprint="print", auto_price=True, packed=(), terms=terms, parents=(), paused_until=0,
        fleet=SimpleNamespace(now=0),
    )  # fmt: skip
    place.session.records = Records(tmp_path, tmp_path / "posted")
    place.session.unlocked = lambda key: None
    place.session.tell = lambda kind, facts: asked.append(facts["needed"]) if kind == "confirm" else None
    posting = place.jobs.posting
    monkeypatch.setattr(posting._preflight, "planned", lambda loaded, allowed: nullcontext(made))
    monkeypatch.setattr(posting, "_require_taker", lambda *given: None)
    monkeypatch.setattr(posting, "_require_price", lambda *given: 0)
    monkeypatch.setattr(posting, "_upload", lambda plan: None)
    with pytest.raises(SpecError) as caught:
        place.jobs.run("x.wasm")
    total = amount_at_least(escrow_at_post(terms), place.session.asset)
    rate = show_rate(terms.ceiling, place.session.asset)
    assert caught.value.code == "NO_PRICE" and place.sent == [] and asked == []
    assert caught.value.message == f"no price is named, and the market's own is {rate}, {total} at most"
    assert f'max_total="{total}"' in caught.value.hint and "auto_price=True" in caught.value.hint
    made.loaded = spec_of_run("x.wasm")
    assert place.jobs.run("x.wasm", auto_price=True).id.startswith("0x")
    assert [call.label for call, _ in place.sent] == ["jobs.post"] and asked == [True]


def test_submit__client_that_is_a_dry_run__says_so_and_posts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Posting, "submit", lambda self, job, **options: {"schema": "hearth.plan/1"})
    for call in (Client(dry_run=True).jobs.submit, Client(dry_run=True).jobs.prepare):
        with pytest.raises(UsageError) as caught:
            call("job.yaml")
        assert caught.value.code == "DRY_RUN"


# ---- what a job came to ----


class OneTransaction(Place):
    """A market whose blocks have one transaction each."""

    def __init__(self) -> None:
        super().__init__()
        logs = self.chain.logs
        self.chain.logs = lambda *given, **where: [  # type: ignore[method-assign]
            log._replace(tx_hash=log.block_hash) for log in logs(*given, **where)
        ]


def _split(place: Place, amounts: tuple[int, int, int, int]) -> Event:
    shares = tuple(words.pack(words.SHARE, {"account": 5, "amount": amount}) for amount in amounts)
    log = own_log("Split", controller=place.network.jobs, key=lock_key(ACCOUNT), shares=shares)
    assert log.topics[0] == topic_of(Split)
    return Event(place.network.escrow, log.topics, log.data)


def _unit(place: Place, name: str, job: str, unit: Unit = WELL) -> Event:
    log = own_log(name, job_id=place.session.job_id(job), index=0, node=5, word=words.pack_unit(unit))
    return Event(place.network.jobs, log.topics, log.data)


def test_courses__two_jobs_of_one_lock_in_one_transaction__are_told_apart() -> None:
    place = OneTransaction()
    first, second = place.post(WELL), place.post(Unit(state=State.REFUNDED))
    started = place.chain.mine([_unit(place, "Started", first)])
    budget = escrow_at_post(place.view(first).terms)
    # The refund of the second stands after an event of the first that pays nobody.
    events = [_unit(place, "Settled", first), _split(place, (1, 1, 1, budget - 3)), _unit(place, "Submitted", first)]
    ended = place.chain.mine([*events, _unit(place, "Expired", second), _split(place, (budget, 0, 0, 0))])
    views = [place.view(second), place.view(first)]
    found = Courses(place.reads).of_all(views, all_of_it=True)
    one, other = (found[place.session.job_id(job)] for job in (first, second))
    assert (one.spent, other.spent) == (3, 0)
    assert (one.started_at, one.ended_at) == (started.timestamp, ended.timestamp)
    assert (other.started_at, other.ended_at) == (None, ended.timestamp)
    assert Courses(place.reads).of(views[1]) == one
    row = next(row for row in place.jobs.list()["jobs"] if row["job"] == first)
    assert (row["cost"], row["cost_text"], row["name"]) == ("3", "3 wei", None)


def test_courses__read_once__a_later_command_knows_when_it_was_posted_without_asking(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    place, file = Place(), tmp_path / "moments.json"
    view = place.view(place.post(Unit(state=State.OPEN)))
    place.session.moments = Moments(tmp_path, file)
    posted = Courses(place.reads).of(view).posted_at
    place.session.moments = Moments(tmp_path, file)
    assert Courses(place.reads).known(view).posted_at == posted is not None


def test_courses__two_transactions_of_one_block__keep_their_splits_where_logs_count_in_each() -> None:
    """There are chains whose log indexes begin again with each transaction."""
    place = Place()
    first, second = place.post(WELL), place.post(Unit(state=State.REFUNDED))
    budget = escrow_at_post(place.view(first).terms)
    logs = place.chain.logs
    place.chain.logs = lambda *given, **where: [  # type: ignore[method-assign]
        log._replace(tx_hash=bytes([9 - log.log_index // 2] * 32), log_index=log.log_index % 2)
        for log in logs(*given, **where)
    ]
    events = [_unit(place, "Settled", first), _split(place, (1, 1, 1, budget - 3))]
    place.chain.mine([*events, _unit(place, "Expired", second), _split(place, (budget, 0, 0, 0))])
    found = Courses(place.reads).of_all([place.view(second), place.view(first)], all_of_it=True)
    assert [found[place.session.job_id(job)].spent for job in (first, second)] == [3, 0]


def test_courses__some_of_a_locks_jobs__are_told_apart_by_the_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    place = OneTransaction()
    first, second = place.post(WELL), place.post(Unit(state=State.REFUNDED))
    budget = escrow_at_post(place.view(first).terms)
    events = [_unit(place, "Settled", first), _split(place, (1, 1, 1, budget - 3)), _unit(place, "Submitted", first)]
    block = place.chain.mine([*events, _unit(place, "Expired", second), _split(place, (budget, 0, 0, 0))])
    logs = place.chain.logs([], block_hash=block.hash)
    monkeypatch.setattr(place.chain, "receipt", lambda tx_hash: SimpleNamespace(logs=logs))
    views = [place.view(first)]
    found = Courses(place.reads).of_all(views, all_of_it=False)[place.session.job_id(first)]
    assert found.spent == 3
    monkeypatch.setattr(place.chain, "receipt", lambda tx_hash: None)
    with pytest.raises(HearthError, match="no receipt"):
        Courses(place.reads).of_all(views, all_of_it=False)


def test_courses__refund_that_was_never_locked__leaves_the_cost_unknown() -> None:
    place = OneTransaction()
    job = place.post(WELL)
    budget = escrow_at_post(place.view(job).terms)
    place.chain.mine([_unit(place, "Settled", job), _split(place, (0, 0, 0, budget + 1))])
    (row,) = place.jobs.list()["jobs"]
    assert (row["cost"], row["cost_text"]) == (None, None)


def test_list__by_name__leaves_out_and_counts_what_nobody_has_read(tmp_path: Path) -> None:
    place = Place()
    place.session.names = names = Names(tmp_path, tmp_path / "names", None)
    known, _ = place.post(WELL, spec=b"\x01" * 32), place.post(WELL, spec=b"\x02" * 32)
    other = place.post(WELL, spec=b"\x03" * 32, submitter="0x" + "66" * 20)
    names.note(b"\x01" * 32, "Train 7")
    names.note(b"\x03" * 32, "train 8")
    listed = place.jobs.list(name="train", everyone=True)
    assert ([row["job"] for row in listed["jobs"]], listed["unnamed"]) == ([other, known], 1)
    # Of another account's job nothing is read but what it stands at.
    assert [row["cost"] is None for row in listed["jobs"]] == [True, False]
    for none in (0, -1):
        with pytest.raises(UsageError, match=f"last is at least 1, not {none}"):
            place.jobs.find(last=none)
    found = place.jobs.find(name="7")
    assert (list(found), found.unnamed, found[0].name) == ([place.jobs.open(known)], 1, "Train 7")
    assert [row["name"] for row in place.jobs.list()["jobs"]] == [None, "Train 7"]


def test_names__of_a_document_in_the_own_store__is_found_and_kept(tmp_path: Path) -> None:
    documents = tmp_path / "store"
    spec, odd = (canonical.digest({"name": name}) for name in ("digits", "<b>"))
    assert FolderStore(documents).put_json({"name": "digits"}) == spec
    FolderStore(documents).put_json({"name": "<b>"})
    names = Names(tmp_path, tmp_path / "names", documents)
    tmp_path.chmod(0o700)
    assert (names.of(spec), names.of(odd), names.of(bytes(32))) == ("digits", None, None)
    assert Names(tmp_path, tmp_path / "names", None).of(spec) == "digits"
    for spoilt in (b"\xff", b"\x1b[2J"):
        (tmp_path / "names" / spec.hex()).write_bytes(spoilt)
        assert Names(tmp_path, tmp_path / "names", None).of(spec) is None
    silent = Names(tmp_path, tmp_path / "other", None, writes=False)
    silent.note(spec, "digits")
    assert not (tmp_path / "other").exists()


def test_moments__of_a_block__are_asked_for_once(tmp_path: Path) -> None:
    place = Place()
    tmp_path.chmod(0o700)
    block = place.chain.mine()
    moments = Moments(tmp_path, tmp_path / "moments.json")
    assert moments.at(block.hash, None) is None
    assert moments.at(block.hash, place.chain) == moments.at(block.hash, place.chain) == block.timestamp
    assert place.chain.counts["block"] == 1
    moments.save()
    assert Moments(tmp_path, tmp_path / "moments.json").at(block.hash, None) == block.timestamp
    for broken in ("[]", "{", '{"00": -1, "01": "x"}', "[" * 10_000):
        (tmp_path / "moments.json").write_text(broken)
        assert Moments(tmp_path, tmp_path / "moments.json").at(block.hash, None) is None
