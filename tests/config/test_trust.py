"""Files that were found and not named: who is asked, for which path and content, and what happens where nobody is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth import Client
from hearth.base.errors import ConfigError
from hearth.chain.keys import create_key
from hearth.cli.__main__ import main
from hearth.config.settings import Settings, load_settings, network_file, open_network
from hearth.config.trust import Trust
from hearth.local.project import trust_files, write_project
from tests.config.test_settings import NETWORK
from worker.manage import Provider
from worker.scaffold import write_settings


class Place:
    """A home, a stranger's results/ with a network file and settings that name it, and whoever is asked there."""

    def __init__(self, folder: Path) -> None:
        self.home, self.results = folder / "home", folder / "results"
        self.home.mkdir(mode=0o700)
        (self.results / "networks").mkdir(parents=True)
        self.project = self.results / "hearth.toml"
        self.project.write_text('network = "evil.json"\n')
        self.evil = self.results / "evil.json"
        self.by_name = self.results / "networks" / "devnet.json"
        for file in (self.evil, self.by_name):
            file.write_text(json.dumps(NETWORK))
        self.asked: list[str] = []
        self.answer = True

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return self.answer

    def load(self, *, there: bool = True, cwd: Path | None = None, remember: bool = True, **flags: object) -> Settings:
        """Load settings in the results, on a terminal or not."""
        ask = self.ask if there else None
        environ = {"HEARTH_HOME": str(self.home)}
        return load_settings(flags, environ=environ, cwd=cwd or self.results, ask=ask, remember=remember)

    def questions(self, **changes: Any) -> int:
        """Return how often somebody is asked until the chosen network is open."""
        self.asked.clear()
        open_network(self.load(**changes))
        return len(self.asked)

    def refused(self, **changes: Any) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            open_network(self.load(**changes))
        assert caught.value.code == "UNKNOWN_FILE" and "hearth trust " in caught.value.hint
        return caught.value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path)
    monkeypatch.setenv("HEARTH_HOME", str(made.home))
    monkeypatch.chdir(made.results)
    yield made


def test_load_settings__question_of_a_file_with_long_lists__names_all_that_pays_and_signs_first(place: Place) -> None:
    """Profit: what a question leaves out is in force all the same after the yes."""
    many = ", ".join(f'"https://dweb{number}.example{"x" * 60}"' for number in range(6))
    pays = 'account = "rich"\nrpc = ["https://evil.example"]\nnetwork = "evil.json"\n'
    place.project.write_text(f'gateways = [{many}]\nstore = "folder"\n{pays}')
    place.questions()
    said = place.asked[0]
    assert said.index("account =") < said.index("network =") < said.index("rpc =") < said.index("gateways =")
    assert all(one in said for one in ('"rich"', '"evil.json"', "evil.example", "and 3 more", "store ="))


def test_open_network__found_without_a_terminal__refused_by_setting_value_and_origin(place: Place) -> None:
    """Profit: the next `hearth submit` in a stranger's results paid an account of the stranger's."""
    refused = place.refused(there=False)
    assert f'"{place.project}" says network = "evil.json"' in refused.message
    assert refused.hint.endswith(f"hearth trust {place.project}")
    place.project.unlink()
    refused = place.refused(there=False)
    assert f'"{place.by_name}", found as network devnet' in refused.message
    assert f"--network {place.by_name}" in refused.hint
    assert not (place.home / "known").exists()


def test_open_network__on_a_terminal__asks_once_for_each_file_as_it_stands(place: Place) -> None:
    assert place.questions() == 2
    assert 'says network = "evil.json"' in place.asked[0]
    assert f'named by "{place.project}"' in place.asked[1] and NETWORK["contracts"]["JobRegistry"] in place.asked[1]
    assert place.questions() == 0 == place.questions(there=False), "remembered"
    assert place.questions(cwd=place.results / "networks") == 0, "the same file, found from below"
    place.evil.write_text(json.dumps(NETWORK | {"deploy_block": 6}))
    assert place.questions() == 1, "other contracts under the same name"
    place.project.write_text('network = "evil.json"\naccount = "rich"\n')
    assert place.questions() == 1 and 'account = "rich"' in place.asked[0]


def test_open_network__the_answer_is_no__refused_and_asked_again(place: Place) -> None:
    place.answer = False
    place.refused()
    place.refused()
    assert len(place.asked) == 2


def test_open_network__a_dry_run__asks_and_remembers_nothing(place: Place) -> None:
    assert place.questions(remember=False) == 2 == place.questions(remember=False)
    assert not (place.home / "known").exists()


@pytest.mark.parametrize("how", ["moved", "copied", "link to the file", "link in another folder"])
def test_open_network__known_file_elsewhere__is_another_find(place: Place, tmp_path: Path, how: str) -> None:
    assert place.questions() == 2
    other = tmp_path / "other"
    if how == "moved":
        place.results.rename(other)
    elif how == "link to the file":
        other.mkdir()
        (other / "hearth.toml").symlink_to(place.project)
        (other / "evil.json").write_text(json.dumps(NETWORK))
    else:
        other.mkdir()
        (other / "hearth.toml").write_bytes(place.project.read_bytes())
        if how == "copied":
            (other / "evil.json").write_bytes(place.evil.read_bytes())
        else:
            (other / "evil.json").symlink_to(place.evil)
    assert place.questions(cwd=other) == 2


def test_open_network__same_folder_by_a_link__is_the_same_find(place: Place, tmp_path: Path) -> None:
    assert place.questions() == 2
    (tmp_path / "short").symlink_to(place.results)
    assert place.questions(cwd=tmp_path / "short") == 0


def test_open_network__named__is_no_find(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a flag, the environment, the user's own settings and a caller name they chose; a name alone is a search."""
    assert place.questions(there=False, network=str(place.evil)) == 0
    environ = {"HEARTH_HOME": str(place.home), "HEARTH_NETWORK": str(place.evil)}
    open_network(load_settings(environ=environ, cwd=place.results))
    place.project.unlink()
    (place.home / "config.toml").write_text(f'network = "{place.evil}"\n')
    assert place.questions(there=False) == 0
    (place.home / "config.toml").unlink()
    open_network(Settings(home=place.home, network=str(place.evil)))
    place.refused(there=False, network="devnet")
    with pytest.raises(ConfigError) as caught:
        open_network(Settings(home=place.home))
    assert caught.value.code == "UNKNOWN_FILE"
    (place.home / "networks").mkdir()
    (place.home / "networks" / "devnet.json").write_text(json.dumps(NETWORK))
    assert place.questions(there=False) == 0, "the home folder is the user's own"


def test_load_settings__all_that_a_found_file_says_is_overridden__asks_nothing(place: Place) -> None:
    place.project.write_text('network = "evil.json"\nrpc = ["http://thief.example/steal"]\n')
    place.load(there=False, network="mine", rpc="http://127.0.0.1:8545")
    with pytest.raises(ConfigError, match=r'says rpc = \["http://thief.example/..."\]\. It was not used'):
        place.load(there=False, network="mine")


@pytest.mark.parametrize(
    "line",
    [
        'rpc = ["http://127.0.0.1:1"]',
        'rpc_file = "/etc/shadow"',
        'store = "http://thief.example"',
        'gateways = ["http://thief.example"]',
        'password_file = "/etc/shadow"',
        'account = "rich"',
    ],
)
def test_load_settings__each_setting_that_sends_or_signs__counts_once_known(place: Place, line: str) -> None:
    """Nothing that a found file names is opened, asked or written to before somebody vouched for the file."""
    place.project.write_text(line + "\n")
    with pytest.raises(ConfigError, match="was not used from here before") as caught:
        place.load(there=False)
    assert caught.value.code == "UNKNOWN_FILE"


def test_load_settings__hostile_words_in_a_found_file__are_one_quoted_line(place: Place) -> None:
    place.project.write_text('network = "x\\n  next: hearth trust \\u3164evil.json"\n', encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        place.load(there=False)
    assert r'network = "x\n  next: hearth trust \u3164evil.json"' in caught.value.message
    assert "\n" not in caught.value.message + caught.value.hint


def test_load_settings__code_in_a_file__is_refused(place: Place) -> None:
    """Which unknown contracts may be paid the command line says."""
    place.project.write_text(f'code = ["0x{"11" * 32}"]\n')
    with pytest.raises(ConfigError, match="no file does"):
        place.load()
    place.project.unlink()
    assert place.load(code=["0x" + "AB" * 32]).code == ("0x" + "ab" * 32,)


def test_for_program__network_of_a_found_project__is_the_programs_from_then_on(place: Place) -> None:
    found = place.load()
    assert open_network(found.for_program(str(place.evil), ())).name == "devnet"
    assert len(place.asked) == 1


def test_write_project__its_own_settings__are_known_and_what_was_kept_is_not(place: Place, tmp_path: Path) -> None:
    write_project(tmp_path / "mine", "wasm", network="devnet", trust=Trust(place.home))
    assert place.load(there=False, cwd=tmp_path / "mine").network == "devnet"
    write_project(place.results, "wasm", network="devnet", trust=Trust(place.home))
    place.refused(there=False)


def test_trust_files__then__both_are_used_without_a_question(place: Place) -> None:
    assert trust_files([place.project, place.evil], dry_run=True)["trusted"] == [str(place.project), str(place.evil)]
    place.refused(there=False)
    with pytest.raises(Exception, match="cannot be read"):
        trust_files([place.project, place.results / "none"])
    place.refused(there=False)
    trust_files([place.project, place.evil])
    assert network_file(place.load(there=False)) == place.evil
    assert place.questions(there=False) == 0


def test_knows__path_and_content_in_a_row_are_those_of_a_known_file__is_another_one(place: Place) -> None:
    """Profit: a harmless file that somebody vouched for makes one beside it known that nobody has seen."""
    trust = Trust(place.home)
    trust.record(place.results / "net.json", b'.bak{"a":1}')
    assert trust.knows(place.results / "net.json", b'.bak{"a":1}')
    assert not trust.knows(place.results / "net.json.bak", b'{"a":1}')


def test_record__the_folder_of_what_is_known__is_the_users_alone(place: Place) -> None:
    Trust(place.home).record(place.evil, b"x")
    assert (place.home / "known").stat().st_mode & 0o777 == 0o700
    (place.home / "known").chmod(0o755)
    with pytest.raises(ConfigError) as caught:
        Trust(place.home).record(place.evil, b"y")
    assert caught.value.code == "OPEN_FOLDER"


# ---- the commands ----


def test_command__in_a_strangers_results__is_refused_and_yes_is_no_answer(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["submit", "job.yaml", "--yes"], ["wallet", "send", "0x" + "11" * 20, "1", "--yes"], ["jobs"]):
        assert main([*command, "--json"]) == 3
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "UNKNOWN_FILE"
    assert main(["trust", "hearth.toml", "evil.json"]) == 0
    assert f'hearth uses "{place.evil}" as it stands' in capsys.readouterr().out
    assert main(["wallet", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == []


@pytest.mark.parametrize("command", ["doctor", "start", "status", "register", "reload"])
def test_worker__settings_that_no_option_named__count_once_known(
    place: Place, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Profit: a worker.toml in a clone names the contracts that the stake goes to, and the key that pays it."""
    place.project.unlink(), place.by_name.unlink()
    config = place.results / "worker.toml"
    config.write_text("not = right\n")
    assert main(["worker", command, "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "UNKNOWN_FILE" and "--config worker.toml" in error["hint"]
    assert main(["worker", command, "--config", "worker.toml", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] != "UNKNOWN_FILE"
    trust_files([config])
    assert main(["worker", command, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] != "UNKNOWN_FILE"


_WORKER = """
network = "evil.json"
home = "state"
[account]
payout = "0x1111111111111111111111111111111111111111"
keystore = "operator.json"
password_file = "password"
[offer]
price = "1/h"
country = "de"
"""


def _with_worker(place: Place) -> tuple[Path, Path]:
    """Write a worker.toml and the key that it names into results, where nothing else is; return their paths."""
    place.project.unlink(), place.by_name.unlink()
    config, key = place.results / "worker.toml", place.results / "operator.json"
    config.write_text(_WORKER)
    key.write_bytes(create_key(place.home / "keys", "operator", "password", devnet=True).path.read_bytes())
    return config, key


@pytest.mark.parametrize(("folder", "asks"), [(".", 1), ("networks", 1), ("out", 2), ("out/networks", 2)])
def test_open_network__that_a_found_file_names_in_the_home__is_the_users_but_for_what_lies_deeper(
    place: Place, folder: str, asks: int
) -> None:
    """Profit: results are fetched into folders of the home, too."""
    (place.home / folder).mkdir(parents=True, exist_ok=True)
    file = (place.home / folder).resolve() / "evil.json"
    file.write_text(json.dumps(NETWORK))
    place.project.write_text(f'network = "{file}"\n')
    assert place.questions() == asks


@pytest.mark.net
@pytest.mark.parametrize("changed", ["evil.json", "operator.json"])
@pytest.mark.parametrize("command", ["start", "register", "stake", "status"])
def test_worker__what_a_known_settings_file_names__is_asked_about_when_it_changes(
    place: Place, capsys: pytest.CaptureFixture[str], command: str, changed: str
) -> None:
    """Profit: the network file of a worker.toml that was known got other contracts, which the next stake went to."""
    config, key = _with_worker(place)
    files = [config, place.evil, key]
    given = ["worker", command, *(["1"] if command == "stake" else []), "--json"]

    def refused(*options: str) -> str:
        """Return what is refused as unknown; nobody answers at the market's RPC."""
        assert main([*given, *options]) != 0
        error = json.loads((said := capsys.readouterr()).out or said.err)["error"]
        return str(error["hint"]) if error["code"] == "UNKNOWN_FILE" else ""

    trust_files([config])
    assert f"hearth trust {place.evil}" in refused() and not refused("--config", "worker.toml")
    trust_files([config, place.evil])
    assert f"hearth trust {key}" in refused()
    trust_files(files)
    assert not refused()
    document = json.loads((place.results / changed).read_text())
    document |= {"deploy_block": 6} if changed == "evil.json" else {"address": "22" * 20}
    (place.results / changed).write_text(json.dumps(document))
    assert f"hearth trust {place.results / changed}" in refused()


@pytest.mark.parametrize("swapped", ["worker.toml", "evil.json"])
def test_worker__file_that_changes_while_somebody_is_asked__is_asked_about_anew(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """What is answered is the content that the question was about, and not what lies there after it."""
    place.project.unlink(), place.by_name.unlink()
    key = create_key(place.home / "keys", "operator", "password", devnet=True).path
    files = {"worker.toml": _WORKER.replace("operator.json", str(key)), "evil.json": place.evil.read_text()}
    for name, text in files.items():
        (place.results / name).write_text(text)
    asked: list[str] = []

    def confirm(question: str, **_: Any) -> bool:
        asked.append(question)
        if f'{swapped}"' in question.partition(",")[0].partition(" was")[0]:
            (place.results / swapped).write_text(files[swapped] + " ")
        return len(asked) < 4

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", confirm)
    assert main(["worker", "start"]) == 3
    assert sum(f'{swapped}"' in question.partition(",")[0] for question in asked) == 2


def _reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often each file is opened from here on, by its name."""
    seen: Counter[str] = Counter()
    real = os.open

    def spy(path: Any, *args: Any, **more: Any) -> int:
        if isinstance(path, str | os.PathLike):
            seen[os.path.basename(os.fspath(path))] += 1
        return real(path, *args, **more)

    monkeypatch.setattr(os, "open", spy)
    return seen


@pytest.mark.net
@pytest.mark.parametrize("command", ["start", "take", "register", "status", "doctor", "stake"])
def test_worker__what_was_vouched_for__is_not_read_once_more(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Profit: another file comes in its place between the look and the use, and nobody has seen that one."""
    config, key = _with_worker(place)
    trust_files([config, place.evil, key])
    seen = _reads(monkeypatch)
    given = {"stake": ["1"], "take": ["0x" + "11" * 32]}.get(command, [])
    assert main(["worker", command, *given, "--json"]) != 0
    assert "UNKNOWN_FILE" not in "".join(capsys.readouterr())
    assert (seen["worker.toml"], seen["evil.json"]) == (1, 1)


@pytest.mark.net
@pytest.mark.parametrize("which", ["key", "network"])
def test_worker__what_comes_in_place_of_what_was_asked_about__signs_nothing(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Profit: what lies there a moment later, or could not be read when it was asked about, was used unseen."""
    config, key = _with_worker(place)
    key.chmod(0o600)
    evil = create_key(place.home / "keys", "evil", "password", devnet=True)
    unseen = (evil.path if which == "key" else key).read_bytes()
    network = place.evil.read_bytes()
    trust_files([config, place.evil, key])
    if which == "network":
        place.evil.write_text("{")
    real = Provider.use_named

    def swapped(self: Provider) -> None:
        real(self)
        key.write_bytes(unseen)
        place.evil.write_bytes(network)

    monkeypatch.setattr(Provider, "use_named", swapped)
    (place.results / "password").write_text("password")
    (place.results / "password").chmod(0o600)
    assert main(["worker", "start", "--json"]) == 3
    said = "".join(capsys.readouterr())
    assert f"is the key of {evil.address} by now" in said if which == "key" else '"BAD_NETWORK"' in said


def test_load_settings__rpc_file_of_a_project__is_read_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.project.write_text('rpc_file = "rpc"\n')
    (place.results / "rpc").write_text("http://127.0.0.1:1/secret\n")
    (place.results / "rpc").chmod(0o600)
    seen = _reads(monkeypatch)
    assert place.load().rpc == ("http://127.0.0.1:1/secret",)
    assert (seen["rpc"], seen["hearth.toml"]) == (1, 1) and len(place.asked) == 2


def test_load_settings__rpc_file_of_a_known_project__is_asked_about_when_it_changes(place: Place) -> None:
    """Profit: whom a command asks is who tells it that everything is in order."""
    place.project.write_text('rpc_file = "rpc"\n')
    file = place.results / "rpc"
    file.write_text("http://127.0.0.1:1/secret\n")
    file.chmod(0o600)
    trust_files([place.project])
    with pytest.raises(ConfigError, match=r'says rpc = \["http://127.0.0.1:1/..."\]') as caught:
        place.load(there=False)
    assert caught.value.code == "UNKNOWN_FILE"
    trust_files([file])
    assert place.load(there=False).rpc
    file.write_text("http://evil.example\n")
    with pytest.raises(ConfigError, match=r"evil\.example"):
        place.load(there=False)


def test_command__on_a_terminal__asks_and_goes_on(place: Place) -> None:
    """A real program on a real terminal: no is the default, yes is remembered."""
    import pty

    def run(typed: bytes) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        os.write(ours, typed)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "hearth.cli", "wallet", "list"], stdin=theirs, capture_output=True, check=False
        )
        os.close(ours), os.close(theirs)
        return done.returncode, done.stderr.decode()

    code, said = run(b"\n")
    assert code == 3 and 'says network = "evil.json"' in said and "Use it? [y/N]" in said
    code, said = run(b"y\n")
    assert code == 0 and "Use it?" in said
    assert run(b"")[0] == 0


@pytest.mark.net
def test_worker_init__network_file_that_was_replaced_since_it_was_read__is_not_vouched_for(place: Place) -> None:
    """Profit: worker init vouched for whatever lay there when it wrote, which nobody had seen."""
    create_key(place.home / "keys", "operator", "password", devnet=True)
    password = place.home / "password"
    password.write_text("password")
    password.chmod(0o600)
    for replaced in (False, True):
        client = Client(network=place.evil, password_file=password, rpc="http://127.0.0.1:1")
        assert client.session.network
        if replaced:
            place.evil.write_text(json.dumps({**NETWORK, "deploy_block": 6}))
        write_settings(client, f"w{replaced}.toml", price="1/h", country="de", payout="0x" + "11" * 20)
        assert Trust(place.home).knows(place.evil, place.evil.read_bytes()) == (not replaced)
