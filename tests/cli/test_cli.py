"""The command tree: one client method per command, hints that exist, fast help, errors in the right shape."""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import click.shell_completion
import pytest

from hearth import Client
from hearth.base.errors import BadDestination, ConfigError, UsageError
from hearth.cli.__main__ import main
from hearth.cli.leaf import NO_MARKET, ActingLeaf, Run, carried
from hearth.cli.output import Output
from hearth.cli.root import COMMANDS, EXTENSIONS, extensions, root
from hearth.client import Client as Real
from hearth.client.explain.explaining import explain
from hearth.client.governance.gov import Gov
from hearth.client.job.results import Results
from hearth.client.jobs import Jobs
from hearth.client.judges.attesting import Attesting
from hearth.client.net import Net
from hearth.client.nodes.workers import Workers
from hearth.client.posting.post import Posting
from hearth.client.stored import Stored
from hearth.client.wallet import Wallet
from hearth.config.settings import Settings
from hearth.local.demo import run_demo
from hearth.local.market import LocalMarket
from hearth.local.page import open_page
from hearth.local.project import convert_file, trust_files, write_project
from keeper.manage import Keeping
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.hints import commands_in, faults_in
from tools import schemas
from worker.manage import Provider, selftest
from worker.scaffold import write_settings

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    *("web3", "docker", "wasmtime", "numpy", "pydantic", "ipfshttpclient", "rich", "eth_account", "vyper", "ape"),
    "typing_extensions",
)
ABSENT = ("job challenge", "juror", "worker install-service")


MINED = {"tx": "0x12", "block": 3, "gas": 1, "fee": "1", "fee_text": "1 wei", "explorer": None}
POSTING = {"job": "0x" + "cd" * 32, "once": "the same command finds it", "text": "posting job"}


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


TREE = {" ".join(path): command for path, command in _commands(root)}


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_client__imported_from_the_package__is_the_client() -> None:
    assert Client is Real


def _served_by(path: str) -> tuple[Callable[..., Any], str]:
    """Return what serves a command, and how its callback spells the call."""
    single: dict[str, tuple[Callable[..., Any], str]] = {
        "demo": (run_demo, "run_demo("),
        "init": (write_project, "write_project("),
        "trust": (trust_files, "trust_files("),
        "web": (open_page, "open_page("),
        "convert": (convert_file, "convert_file("),
        "doctor": (Real.doctor, "run.client.doctor("),
        "completion": (click.shell_completion.ShellComplete.source, ".source("),
        "offers": (Workers.offers, "run.client.workers.offers("),
        "jobs": (Jobs.list, "run.client.jobs.list("),
        "wallet import": (Wallet.import_key, "run.client.wallet.import_key("),
        "job explain": (explain, "explain(text, "),
        "check": (Posting.check, "run.client.jobs.check("),
        "job wait": (Posting.attach, "run.client.jobs.posting.attach("),
        "job rerun": (Posting.rerun, "run.client.jobs.posting.rerun("),
        "store import": (Stored.import_file, "run.client.store.import_file("),
        "worker estimate": (Workers.estimate, "run.client.workers.estimate("),
        "worker init": (write_settings, "write_settings(run.client, config, "),
        "worker selftest": (selftest, "selftest("),
        "worker operator": (Provider.replace_operator, "provider.replace_operator("),
    }
    if path in single:
        return single[path]
    group, _, name = path.rpartition(" ")
    owner: Any
    owner, call = {
        "": (Posting, "run.client.jobs.posting"),
        "job": (
            Attesting if name in ("attest", "confirm") else Results if name in ("spec", "get", "logs") else Jobs,
            "run.client.jobs",
        ),
        "wallet": (Wallet, "run.client.wallet"),
        "net": (Net, "run.client.net"),
        "gov": (Gov, "run.client.gov"),
        "store": (Stored, "run.client.store"),
        "devnet": (LocalMarket, "LocalMarket(run.client.session)"),
        "worker": (Provider, "rovider"),
        "keeper": (Keeping, "Keeping(run.client, config)"),
    }[group]
    name = name.replace("-", "_")
    return getattr(owner, name), f".{name}(" if group == "worker" else f"{call}.{name}("


@pytest.mark.parametrize("path", TREE)
def test_command__every_leaf__calls_one_documented_function_of_its_name(path: str) -> None:
    function, call = _served_by(path)
    assert inspect.getdoc(function), f"{function} says nothing of itself"
    callback = TREE[path].callback
    assert callback is not None
    assert call in inspect.getsource(callback)


def test_jobs__what_other_classes_serve__are_members_too(tmp_path: Path) -> None:
    jobs = Real(Settings(home=tmp_path)).jobs
    assert {name for name in vars(jobs) if callable(getattr(jobs, name)) and name != "reads"} == {
        *("check", "attest", "confirm", "spec", "get", "logs")
    }


def test_import_client__a_users_own_worker_and_keeper_beside_the_script__are_not_touched(tmp_path: Path) -> None:
    for name in ("worker", "keeper"):
        (tmp_path / f"{name}.py").write_text('raise SystemExit("not yours to import")\n')
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom hearth import Client\nClient()\n"
        "import hearth.local.demo, hearth.local.market, hearth.cli.root\n"
        'print(sorted(name for name in sys.modules if name.split(".")[0] in ("worker", "keeper")))\n'
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "HEARTH_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# ---- other programs' commands ----


def _extend(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    point = EntryPoint(name, value, EXTENSIONS)
    monkeypatch.setattr("hearth.cli.root.extensions", lambda: {name: point})


def test_extension__of_another_program__is_a_command_and_stands_in_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _extend(monkeypatch, "echo", "hearth.cli.local:completion")
    assert main(["echo", "bash"]) == 0
    assert "_HEARTH_COMPLETE" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "  echo        Print the completion script" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["nowhere.at_all:command", "hearth.cli.root:COMMANDS", "hearth.cli.root:nothing"])
def test_extension__that_cannot_be_loaded__is_named_and_harms_no_other_command(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _extend(monkeypatch, "broken", value)
    assert main(["broken", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "BAD_EXTENSION"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert value in shown and "  demo " in shown


def test_extension__with_a_name_of_ours__does_not_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = EntryPoint("submit", "hearth.cli.local:completion", EXTENSIONS)
    monkeypatch.setattr("hearth.cli.root.entry_points", lambda group: (mine,))
    extensions.cache_clear()
    try:
        assert "submit" not in extensions()
    finally:
        extensions.cache_clear()


def test_tree__what_product_lists__is_there_and_what_is_not_built_is_absent() -> None:
    wanted = """
    demo init trust doctor completion offers check convert run submit jobs|devnet up devnet down devnet fund
    |wallet new wallet import wallet list wallet show wallet balance wallet history wallet send wallet withdraw
    |job show job spec job logs job events job wait job get job cancel job accept job unlock
    |job top-up job attest job confirm job explain
    |job rerun job receipt
    |worker doctor worker selftest worker benchmark worker init worker register worker update worker start worker take
    |worker pause
    |worker resume worker drain worker status worker why worker earnings worker stake worker price worker withdraw
    |worker estimate worker operator worker exit worker volumes worker bundle worker reload
    |keeper list keeper run keeper status keeper explain keeper bundle keeper reload
    |net status net workers net jobs net params net events net verify net snapshot
    |gov status gov queue gov drop gov execute gov pause gov accept
    |store import store export
    |web"""
    names = set()
    for part in wanted.split("|"):
        words = part.split()
        if words[0] in ("devnet", "wallet", "job", "worker", "keeper", "net", "gov", "store"):
            names |= {f"{first} {second}" for first, second in zip(words[::2], words[1::2], strict=True)}
        else:
            names |= set(words)
    assert set(TREE) == names
    assert not set(ABSENT) & set(TREE)


def test_help__root__imports_nothing_heavy_and_lists_every_command() -> None:
    code = (
        "import sys; from hearth.cli.__main__ import main; code = main(['--help']);"
        f"found = [name for name in {HEAVY!r} if name in sys.modules];"
        "print('HEAVY', found, code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY [] 0"
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert not any(name.split()[-1] in done.stdout for name in ABSENT)


@pytest.mark.parametrize("path", TREE)
def test_help__every_command__exits_0_with_the_global_options(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--json", "--quiet", "--yes", "--dry-run", "--network", "--account", "--password-file", "--rpc"):
        assert option in shown


# ---- hints ----


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the text of a string, its f-string fields as a placeholder, and of both sides of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _texts(value)


@cache
def _hints() -> list[tuple[str, str]]:
    """Return every hint in the sources, and every other text that names a command of ours."""
    return list(_read_hints())


def _read_hints() -> Iterator[tuple[str, str]]:
    for folder in ("hearth", "keeper", "worker"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            # A docstring speaks to programmers, and a part of an f-string was seen with its whole.
            passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            passed |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in ast.walk(tree):
                where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.keyword) and node.arg in ("hint", "fix"):
                    for text in _texts(node.value):
                        yield where, text
                elif isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in passed:
                    for text in _texts(node):
                        if re.search(r"\bhearth [a-z]", text):
                            yield where, text


def _unknown(text: str) -> list[str]:
    """Return what a hint calls a command of `hearth` and that is none."""
    faults = []
    for match in re.finditer(r"(?<!from )\bhearth((?: (?:[a-z][a-z-]*|--[a-z-]+))+)", text):
        words = match[1].split()
        command: click.Command | None = root
        used = ["hearth"]
        for word in words:
            if isinstance(command, click.Group):
                if word in ("--help", "--version"):
                    break
                command = command.get_command(click.Context(command), word)
                used.append(word)
                if command is None:
                    faults.append(" ".join(used))
                    break
            elif command is not None and word.startswith("--"):
                options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
                if word not in {*options, "--help"}:
                    faults.append(" ".join([*used, word]))
    return faults


def test_hints__every_one_in_the_sources__names_a_command_that_exists() -> None:
    hints = _hints()
    assert len(hints) > 100
    # What the self-test's programs say.
    faults = [(where, fault) for where, text in hints if where[:18] != "worker/selftest.py" for fault in _unknown(text)]
    assert faults == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_pages__every_command_in_them__exists(path: Path) -> None:
    assert _unknown(path.read_text(encoding="utf-8")) == []


def test_hints__a_command_that_does_not_exist__is_noticed() -> None:
    assert _unknown("hearth job shw JOB; or hearth frob") == ["hearth job shw", "hearth frob"]
    assert _unknown("hearth job show JOB --nonsense") == []
    assert _unknown("hearth worker register --printx") == ["hearth worker register --printx"]
    assert _unknown("did you mean hearth job show?") == []


def test_hints__every_command_in_the_sources__is_what_click_takes() -> None:
    found = [(where, fault) for where, text in _hints() for fault in faults_in(text)]
    assert found == []


def test_hints__every_command_that_carries_options__is_what_click_takes_and_means_the_same() -> None:
    context = root.make_context("hearth", [], resilient_parsing=True)
    options, pointed = {"--config": "second.toml", "--network": "n.json", "--account": "cold"}, 0
    for where, text in _hints():
        led = carried(context, options, text)
        assert faults_in(led) == [], where
        for (path, command, tokens), (_, _, before) in zip(commands_in(led), commands_in(text), strict=True):
            own = {name for param in command.params for name in param.opts}
            takes = path.split()[1] not in NO_MARKET
            if not isinstance(command, ActingLeaf):
                own.discard("--account")
            added = [name for name in options if takes and name in own and name not in before]
            assert sorted(tokens) == sorted([*before, *added, *(options[name] for name in added)]), where
            pointed += bool(added)
    assert pointed > 100


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("hearth worker volumes --home --config w.toml /var/x --slots 2", ["unexpected w.toml /var/x"]),
        ("hearth worker init", ["Missing option '--price'."]),
        ("sudo hearth worker volumes --slots; or", ["Option '--slots' requires an argument."]),
        ("hearth init --template none writes one", ["'none' is not one of"]),
        ("hearth job show JOB; or hearth job get", ["Missing argument 'JOB'."]),
        ("hearth job show JOB --nonsense", ["No such option: --nonsense"]),
        ("hearth worker exit --finish in 5 s, hearth worker take JOB later", []),
        ("hearth worker --help, see hearth worker", []),
    ],
)
def test_hints__command_that_click_refuses__is_noticed(text: str, faults: list[str]) -> None:
    told = faults_in(text)
    assert len(told) == len(faults)
    assert all(fault in one for one, fault in zip(told, faults, strict=True)), told


# ---- errors ----


@pytest.mark.parametrize(
    ("arguments", "code", "name", "hint"),
    [
        (["frob"], 2, "UNKNOWN_COMMAND", "hearth"),
        (["job", "shw"], 2, "UNKNOWN_COMMAND", "did you mean hearth job show?"),
        (["logs"], 2, "UNKNOWN_COMMAND", "did you mean hearth job logs?"),
        (["wallet", "lgos"], 2, "UNKNOWN_COMMAND", "did you mean hearth job logs?"),
        (["regster"], 2, "UNKNOWN_COMMAND", "did you mean hearth worker register?"),
        (["pause"], 2, "UNKNOWN_COMMAND", "did you mean hearth gov pause or hearth worker pause?"),
        (["demo", "--port", "1", "--rpc", "http://127.0.0.1:9"], 2, "USAGE", "leave one of them out"),
        (["worker", "list"], 2, "UNKNOWN_COMMAND", "did you mean hearth net workers?"),
        (["jobs", "--stat", "open"], 2, "UNKNOWN_OPTION", "did you mean --state?"),
        (["submit"], 2, "USAGE", "hearth submit --help"),
        (["jobs"], 3, "NO_NETWORK", "hearth devnet up"),
        (["submit", "none.yaml"], 7, "NO_SPEC_FILE", "hearth init"),
        (["wallet", "new"], 3, "NO_PASSWORD", "--password-file"),
        (["jobs", "--timeout", "10"], 2, "BAD_DURATION", "10s"),
        (["jobs", "--timeout", "banana"], 2, "BAD_DURATION", "2h30m"),
        (["jobs", "--rpc", "notaurl"], 2, "USAGE", "use --rpc https://HOST"),
    ],
)
def test_main__refused__code_error_and_hint(
    arguments: list[str], code: int, name: str, hint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*arguments, "--json"]) == code
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == name
    assert hint in error["hint"]
    assert set(error) == {"code", "message", "hint", "retryable", "component", "details"}
    assert main(arguments) == code
    text = capsys.readouterr()
    assert text.out == ""
    assert text.err.startswith("error: ") and "next: " in text.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["wallet", "new", "--password-file"], ["init"]])
def test_main__disk_that_is_read_only_or_full__says_so_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text("long enough")
    password.chmod(0o600)
    with small_disk(tmp_path / "shut", MIB) as shut:
        monkeypatch.setenv("HEARTH_HOME", str(shut / "home"))
        last = str(password) if arguments[0] == "wallet" else str(shut / "project")
        fill(shut / "rest")
        assert main([*arguments, last, "--json"]) == 9
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "FILE_REFUSED" and ("make room: df -h" in error["hint"] or "ls -ld" in error["hint"])
        assert "No space left on device" in error["message"]
        subprocess.run(["mount", "-o", "remount,ro", str(shut)], check=True)
        assert main([*arguments, last]) == 9
        text = capsys.readouterr().err
        assert text.startswith(f"error: {shut}/") and "Read-only file system" in text and "next: mend it" in text


def test_program__file_where_a_folder_should_be__ends_with_9_and_no_traceback(tmp_path: Path) -> None:
    """A worker's and a keeper's programs, too: their settings lie under a plain file."""
    (tmp_path / "flat").write_text("")
    shut = "import pathlib, sys, {0}.__main__ as m; m.{1} = lambda *a: pathlib.Path('flat').mkdir(); sys.exit({2})"
    for name, place in (("worker", "start"), ("keeper", "_run")):
        call = "m.main(['--config', 'x'])"
        done = subprocess.run(
            [sys.executable, "-c", shut.format(name, place, call)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 9 and "flat: File exists" in done.stderr, done.stderr
        assert f"ls -ld {tmp_path / 'flat'}" in done.stderr and "Traceback" not in done.stderr


def test_main__global_option_before_and_after_the_command__means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "jobs"]) == 3
    first = capsys.readouterr().out
    assert main(["jobs", "--json"]) == 3
    assert capsys.readouterr().out == first
    assert json.loads(first)["error"]["code"] == "NO_NETWORK"


def test_main__version__names_the_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"hearth \d+\.\d+\.\d+ \(protocol 1\)\n", capsys.readouterr().out)


def test_main__interrupted_while_waiting__130_and_the_job_is_alive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = "0x" + "ab" * 32

    def submit(self: Posting, *arguments: object, **options: object) -> None:
        self.session.tell("posted", {"job": job, "text": job})
        raise KeyboardInterrupt

    monkeypatch.setattr(Posting, "submit", submit)
    assert main(["submit", "job.yaml", "--wait"]) == 130
    shown = capsys.readouterr().err
    assert "is alive" in shown and f"hearth job show {job[:14]}" in shown


@pytest.mark.parametrize(
    ("typed", "terminal", "needed", "said", "hint"),
    [
        ("n\n", True, False, "the answer was no: nothing was sent", "the same command"),
        ("n\n", False, True, "leave? There is no terminal to ask on: nothing was sent", "--yes"),
        ("y\n", False, True, "no terminal", "--yes"),
    ],
)
def test_confirm__no__ends_with_3_and_says_that_nothing_was_sent(
    typed: str, terminal: bool, needed: bool, said: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.StringIO(typed)
    monkeypatch.setattr(stdin, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdin", stdin)
    run = Run({"yes": False, "dry_run": False, "as_json": False, "quiet": False})
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        run._tell("confirm", {"text": "leave?", "needed": needed})
    assert (caught.value.code, caught.value.exit_code) == ("NOT_CONFIRMED", 3) and hint in caught.value.hint


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "stopped\n"),
        ([("step", {"text": "x", "sending": "jobs.accept"})], "jobs.accept may be on its way: the same command looks"),
        # What was mined is on the screen; what comes between two transactions is not sent.
        ([("step", {"text": "x", "sending": "jobs.accept"}), ("tx", {**MINED, "action": "jobs.accept"})], "stopped\n"),
        ([("posting", POSTING)], f"the post of job {POSTING['job']} may be on its way: the same command finds it\n"),
        ([("posting", POSTING), ("tx", {**MINED, "action": "escrow.withdraw"})], "may be on its way"),
        ([("posting", POSTING), ("tx", {**MINED, "action": "jobs.post"})], f"job {POSTING['job']} is alive"),
    ],
)
def test_main__interrupted_once_something_is_sent__says_what_goes_on(
    told: list[tuple[str, dict[str, object]]],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def submit(self: Posting, *arguments: object, **options: object) -> None:
        for kind, facts in told:
            self.session.tell(kind, facts)
        raise KeyboardInterrupt

    monkeypatch.setattr(Posting, "submit", submit)
    # With -q too, nothing of what is on the chain is unsaid.
    assert main(["submit", "job.yaml", "-q"]) == 130
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("module", ["click", "hearth.cli.root", "hearth.daemon.loop"])
def test_program__interrupted_while_it_is_loaded__130_without_a_traceback(module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "hearth.cli", "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nstopped\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion__each_shell__prints_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_HEARTH_COMPLETE" in capsys.readouterr().out


def test_completion__words_so_far__are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, wanted in (("hearth jo", {"job", "jobs"}), ("hearth job ca", {"cancel"})):
        monkeypatch.setenv("_HEARTH_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert main() == 0
        assert {line.split(",")[1] for line in capsys.readouterr().out.split()} == wanted


def test_wallet__new_import_list_show__without_printing_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hearth.chain.keys.SCRYPT_N", 1 << 10)
    password = tmp_path / "password"
    password.write_text("correct horse\n")
    password.chmod(0o600)
    secret = tmp_path / "secret"
    secret.write_text("0x" + "11" * 32)
    secret.chmod(0o600)
    assert main(["wallet", "new", "first", "--password-file", str(password), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["wallet", "import", "second", str(secret), "--password-file", str(password), "-q"]) == 0
    address = capsys.readouterr().out.strip()
    assert address == "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a"
    assert main(["wallet", "list"]) == 0
    shown = capsys.readouterr().out
    assert made["address"] in shown and address in shown and "11" * 16 not in shown
    assert main(["wallet", "show", "second", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["address"] == address
    assert main(["wallet", "new", "first", "--password-file", str(password)]) == 3


def test_json__commands_without_a_market__print_reports_of_their_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hearth.chain.keys.SCRYPT_N", 1 << 10)
    password = tmp_path / "password"
    password.write_text("correct horse\n")
    password.chmod(0o600)
    for arguments, code in (
        (["wallet", "new", "--password-file", str(password), "--dry-run"], 0),
        (["wallet", "new", "--password-file", str(password)], 0),
        (["wallet", "list"], 0),
        (["wallet", "show"], 0),
        (["init", str(tmp_path / "project")], 0),
        (["completion", "bash"], 0),
        (["run", "--print-spec", "./x.wasm"], 0),
        (["devnet", "down"], 0),
        (["doctor"], 3),
        (["jobs"], 3),
        (["nothing"], 2),
    ):
        assert main(["--json", *arguments]) == code, arguments
        schemas.validate(json.loads(capsys.readouterr().out))


def test_init__twice__keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--dry-run"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert main(["init"]) == 0
    (tmp_path / "job.yaml").write_text("mine")
    assert main(["init"]) == 0
    assert "kept job.yaml" in capsys.readouterr().out
    assert (tmp_path / "job.yaml").read_text() == "mine"


def test_run__options_of_the_program__are_left_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    from hearth.jobfile import parse_spec

    own = ["cmd", "-q", "-o", "x", "-e", "3", "--gpu", "1", "--json", "--", "--help"]
    given = ["--max-rate", "1.2/h", "-i", "./a:/in/a", "-o", "/out/b", "-e", "EPOCHS=3"]
    assert main(["run", "--print-spec", *given, "x.wasm", *own]) == 0
    spec = parse_spec(capsys.readouterr().out.encode()).spec
    assert (spec.module, spec.command, spec.inputs[0].dst) == ("x.wasm", own, "/in/a")
    assert (spec.outputs[0].path, spec.env, spec.price.max_rate) == ("/out/b", {"EPOCHS": "3"}, "1.2/h")
    # An error is told as Hearth was asked to tell it.
    assert main(["run", *given, "x.wasm", *own]) == 3
    said = capsys.readouterr()
    assert said.out == "" and "\nerror: there is no network" in said.err


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        (["-e", "3", "a.wasm"], '-e "3" is not K=V', "write -e EPOCHS=3"),
        (["-e", "API_KEY=hunter2", "a.wasm"], "-e API_KEY: looks like a secret", "keep secrets out"),
        (["-i", "x:/data", "a.wasm"], '-i "x:/data": "/data" is not under /in', "/in/data"),
        (["-o", "yaml", "a.wasm"], '-o "yaml": "yaml" is not absolute', "/out/data"),
        (["--runtime", "10", "a.wasm"], '--runtime "10": ', '"10s"'),
        (["--runtime", "40d", "a.wasm"], '--runtime "40d": ', "the same command"),
        (["--memory", "1MiB", "a:1"], '--memory "1MiB": ', 'write --memory "6MiB", or more'),
        (["--max-total", "1,2", "a.wasm"], '--max-total "1,2": ', '"1.2"'),
        (["--gpu", "1", "a.wasm"], "--gpu 1: ", "run an image"),
        (["--tier", "rtx-4090", "a:1"], "--gpu 0: tier, vram, vendor and exact say nothing", "use --gpu 1"),
        (
            ["--memory", "64MB", "--runtime", "10", "a.wasm"],
            'did you mean "64MiB"?\n--runtime "10": "10" is not a duration; did you mean "10s"?',
            "correct each of these, then the same command",
        ),
    ],
)
def test_run__bad_option__is_named_as_it_was_given_with_a_hint_that_run_takes(
    given: list[str], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", "run", *given]) == 2
    told = capsys.readouterr().out
    error = json.loads(told)["error"]
    assert said in error["message"] and hint in error["hint"] and "hunter2" not in told
    known = {name for param in TREE["run"].params for name in param.opts}
    assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", error["hint"])) <= known
    assert "command line" not in error["message"] and "hearth submit" not in error["hint"]


@pytest.mark.parametrize("given", [["net", "snapshot", "--out", "-"], ["store", "export", "bafkqaaa", "-"]])
def test_main__stdout_for_a_command_that_writes_a_file__is_refused(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(given) == 2
    assert "name a file" in capsys.readouterr().err and not any(tmp_path.iterdir())


# ---- a stranger's words ----


def test_output__progress__counts_whole_gib_in_gib(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=False, quiet=False)
    for done in (0, (512 << 20) + 1, 1 << 30):
        out.tell("progress", {"what": "upload", "done": done, "total": 1 << 30})
    assert capsys.readouterr().err.splitlines() == [f"upload: {at} of 1GiB" for at in ("0MiB", "512MiB", "1GiB")]


def test_output__control_characters__are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    unseen = "\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2066\u2069"
    text = "a\tb\x1b]0;title\x07 \x9b31m red \u202eback\r\nnext\u00e9" + unseen
    shown = "a\tb\\x1b]0;title\\x07 \\x9b31m red \\u202eback\\r\nnext\u00e9"
    shown += "".join(f"\\u{ord(one):04x}" for one in unseen)
    Output(as_json=False, quiet=False).emit({}, lambda: [text])
    Output(as_json=False, quiet=False).line({}, text)
    Output(as_json=False, quiet=False).say_error(UsageError(text))
    said = capsys.readouterr()
    # Of several lines is only what is ours: a line end among a stranger's words is written out.
    line = shown.replace("\n", "\\n")
    assert said.out == f"{line}\n{line}\n" and said.err == "error: {}\n".format(line.replace("\t", "\\t"))
    Output(as_json=True, quiet=False).emit({"text": text}, list)
    told = capsys.readouterr().out
    assert json.loads(told)["text"] == text and "\x1b" not in told


def test_tell__warning_with_a_command__carries_the_options_too(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=False, quiet=False)
    out.carry = lambda text: text.replace("stake", "stake --account cold")
    for kind, text in (("warning", "too dear; next: hearth worker stake 1"), ("note", "its stake is free")):
        out.tell(kind, {"text": text})
    told = ["warning: too dear; next: hearth worker stake --account cold 1", "its stake is free"]
    assert capsys.readouterr().err.splitlines() == told


@pytest.mark.parametrize(
    ("options", "hint", "wanted"),
    [
        ({"--config": "b.toml"}, "hearth worker doctor", "hearth worker doctor --config b.toml"),
        (
            {"--config": "a b.toml"},
            "hearth worker take 0xab later",
            "hearth worker take --config 'a b.toml' 0xab later",
        ),
        ({"--config": "b.toml"}, "hearth worker stake AMOUNT, or", "hearth worker stake --config b.toml AMOUNT, or"),
        (
            {"--config": "b.toml"},
            "hearth worker volumes --size 2GiB",
            "hearth worker volumes --config b.toml --size 2GiB",
        ),
        (
            {"--config": "b.toml"},
            "sudo /opt/hearth/bin/hearth worker volumes --home /var/lib/hearth --slots 2 --size 20GiB",
            "sudo /opt/hearth/bin/hearth worker volumes --config b.toml --home /var/lib/hearth --slots 2 --size 20GiB",
        ),
        (
            {"--config": "b.toml"},
            "hearth worker drain or hearth worker pause",
            "hearth worker drain --config b.toml or hearth worker pause --config b.toml",
        ),
        ({"--network": "n.json"}, "hearth devnet up", None),
        (
            {"--account": "cold"},
            "hearth worker exit --finish then; hearth worker exit --cancel stays; hearth worker status",
            "hearth worker exit --account cold --finish then; hearth worker exit --account cold --cancel stays; "
            "hearth worker status",
        ),
        ({"--account": "cold"}, "hearth wallet send 0x12 1 --account owner, or hearth wallet list", None),
        (
            {"--config": "b.toml", "--network": "n.json"},
            "hearth worker drain ends it; hearth wallet list",
            "hearth worker drain --config b.toml --network n.json ends it; hearth wallet list --network n.json",
        ),
        ({"--config": "b.toml"}, "hearth worker start --config c.toml", "hearth worker start --config c.toml"),
        ({"--config": "b.toml"}, "hearth net params names it, or see hearth worker", None),
        ({"--config": "b.toml"}, "no command at all: earth worker", None),
        ({"--config": "/etc/b\\1.toml"}, "mend rpc in worker.toml.", "mend rpc in /etc/b\\1.toml."),
        ({"--config": "b.toml"}, "see docs/worker.toml.md, my-worker.toml, ./worker.toml", None),
        ({}, "mend rpc in worker.toml", None),
        ({}, "hearth worker doctor", None),
    ],
)
def test_carried__hint_of_a_command_that_was_pointed_elsewhere__points_there_too(
    options: dict[str, str], hint: str, wanted: str | None
) -> None:
    context = root.make_context("hearth", [], resilient_parsing=True)
    assert carried(context, options, hint) == (hint if wanted is None else wanted)


def test_command__with_another_config_and_network__its_hints_carry_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["worker", "status"], ["worker", "status", "--json"]):
        assert main([*command, "--config", "second.toml", "--network", "other"]) == 3
        out, err = capsys.readouterr()
        assert "hearth worker init --network other --config second.toml" in out + err
    assert main(["worker", "status"]) == 3
    assert "next: hearth worker init --price RATE --country CODE\n" in capsys.readouterr().err


def test_save__part_that_cannot_be_had__is_told_beside_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"yes": False, "dry_run": False, "as_json": False, "quiet": False}
    Run(given).save(lambda: {"missing": {"log": "FileNotFoundError: no x.log"}}, tmp_path / "b.json")
    assert capsys.readouterr().out.splitlines()[1:] == ["  without log: FileNotFoundError: no x.log"]


def test_save__no_room_left__says_so_and_leaves_nothing(tmp_path: Path) -> None:
    """What helps to mend a machine whose disk is full is asked for on that machine."""
    given = {"yes": False, "dry_run": False, "as_json": True, "quiet": False}
    with small_disk(tmp_path / "full", MIB) as full:
        fill(full / "rest")
        with pytest.raises(BadDestination, match=r"b\.json cannot be written: No space left") as said:
            Run(given).save(lambda: {"schema": "x" * 9000}, full / "b.json")
        assert said.value.hint == "name another path, on a disk with room"
        assert not (full / "b.json").exists()
    with pytest.raises(BadDestination, match="No such file") as said:
        Run(given).save(dict, tmp_path / "none" / "b.json")
    assert said.value.hint == f"mkdir -p {tmp_path / 'none'}"
    others = tmp_path / "others.json"
    with pytest.raises(BadDestination):
        Run(given).save(lambda: {"text": others.write_text("not ours")}, others)
    assert others.read_text() == "not ours"
    Run(given).save(dict, tmp_path / "b.json")
    assert (tmp_path / "b.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["x", "a", "--max-rate", "1"],
            "--max-rate after IMAGE goes to the program; put it before IMAGE where Hearth is meant",
        ),
        (
            ["./x.wasm", "--gpu=1", "--detach", "--gpu=2", "--epochs", "3", "--json", "-e", "A=1"],
            "--gpu, --detach, --json after MODULE go to the program; put them before MODULE where Hearth is meant",
        ),
        (["x", "--help"], "--help after IMAGE goes to the program; put it before IMAGE where Hearth is meant"),
        (["x", "--", "sh", "-e", "--epochs", "--max", "max-rate", "--max-rate2"], None),
        (["-q", "x", "--gpu"], None),
    ],
)
def test_run__option_of_ours_behind_the_program__is_said_to_go_to_it(
    given: list[str], said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--print-spec", "--max-rate", "1/h", *given]) == 0
    assert capsys.readouterr().err.splitlines() == ([said] if said else [])


@pytest.mark.parametrize("path", ["convert", "job attest", "keeper bundle", "worker bundle"])
def test_command__whose_output_is_a_dash__prints_as_without_one(path: str) -> None:
    command = TREE[path]
    (option,) = (one for one in command.params if {"--out", "--output"} & set(one.opts))
    context = click.Context(command)
    assert option.type_cast_value(context, "-") is None and option.type_cast_value(context, "x") == Path("x")
