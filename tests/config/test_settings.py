"""Settings: five layers, strict keys, no secrets in the open; the network file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import ConfigError, HearthError, UsageError
from hearth.base.files import check_private, make_private
from hearth.base.urls import redact_url
from hearth.config.settings import (
    DEFAULT_TIMEOUT,
    Settings,
    asset_of,
    home_folder,
    load_settings,
    network_file,
    open_network,
    rpc_urls,
)
from hearth.market.network import Network, network_of, save_network
from hearth.protocol.units import Asset

NETWORK: dict[str, Any] = {
    "name": "devnet",
    "chain_id": 31_337,
    "genesis_hash": "0x" + "11" * 32,
    "protocol_version": 1,
    "contracts": {
        "Escrow": "0x" + "01" * 20,
        "NodeRegistry": "0x" + "02" * 20,
        "Rules": "0x" + "06" * 20,
        "JobRegistry": "0x" + "03" * 20,
        "Lens": "0x" + "04" * 20,
        "Attesters": "0x" + "07" * 20,
        "Steward": "0x" + "08" * 20,
    },
    "asset": {"symbol": "USDX", "decimals": 6, "address": "0x" + "05" * 20},
    "policy": "0x" + "00" * 31 + "07",
    "deploy_block": 5,
    "explorer": None,
    "gateways": ["https://gateway.example"],
    "rpc": ["http://127.0.0.1:8545"],
    "code_hashes": {"Escrow": "0x" + "22" * 32},
    "node_parameters": {
        "dead_after": 6,
        "ask_notice": 2,
        "unbonding": 20,
        "minimum_stake": "1000",
        "fee_reference": "1000",
        "liveness_fee": "10",
        "ration_bps": 100,
    },
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with home/ (mode 700) and project/sub/ in it."""
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "project" / "sub").mkdir(parents=True)
    return tmp_path


def load(place: Path, *, environ: dict[str, str] | None = None, **flags: object) -> Settings:
    """Load settings as somebody who vouches for every file that is found."""
    environ = {"HEARTH_HOME": str(place / "home"), **(environ or {})}
    return load_settings(flags, environ=environ, cwd=place / "project" / "sub", ask=lambda question: True)


def refused(place: Path, *, environ: dict[str, str] | None = None, **flags: object) -> HearthError:
    """Return the refusal of settings: a wrong option is wrong usage, what a file or the environment says is not."""
    with pytest.raises((ConfigError, UsageError)) as caught:
        load(place, environ=environ, **flags)
    by_option = caught.value.message.startswith("--") and "stands beside" not in caught.value.message
    assert caught.value.exit_code == (2 if by_option else 3)
    assert caught.value.hint
    return caught.value


# ---- layers ----


def test_load_settings__nothing_given__defaults(place: Path) -> None:
    settings = load(place)
    assert settings == Settings(home=place / "home")
    assert (settings.network, settings.timeout, settings.store, settings.rpc) == (
        "devnet",
        DEFAULT_TIMEOUT,
        "folder",
        (),
    )
    assert settings.keys_folder == place / "home" / "keys"


def test_load_settings__each_layer_added__the_higher_one_wins(place: Path) -> None:
    user, project = place / "home" / "config.toml", place / "project" / "hearth.toml"
    user.write_text('network = "user"\n')
    assert load(place).network == "user"
    assert load(place).origins == {"network": str(user)}
    project.write_text('network = "project"\n')
    assert load(place).network == "project"
    assert load(place).project == project
    environ = {"HEARTH_NETWORK": "env"}
    assert load(place, environ=environ).network == "env"
    assert load(place, environ=environ).origins == {"network": "HEARTH_NETWORK"}
    assert load(place, environ=environ, network="flag").network == "flag"
    assert load(place, environ=environ, network="flag").origins == {"network": "--network"}


def test_load_settings__flag_not_given__lower_layer_stays(place: Path) -> None:
    assert load(place, environ={"HEARTH_ACCOUNT": "bob"}, account=None).account == "bob"


def test_load_settings__empty_variable__counts_as_unset(place: Path) -> None:
    assert load(place, environ={"HEARTH_NETWORK": ""}).network == "devnet"


def test_load_settings__rpc_file_above_rpc__hides_it(place: Path) -> None:
    urls = place / "urls"
    urls.write_text("# mine\nhttps://rpc.example/v1/hunter2\n\nhttps://b.example\n")
    urls.chmod(0o600)
    settings = load(place, environ={"HEARTH_RPC": "http://low.example"}, rpc_file=urls)
    assert settings.rpc == ("https://rpc.example/v1/hunter2", "https://b.example")
    assert settings.origins == {"rpc": "--rpc-file"}
    assert load(place, environ={"HEARTH_RPC_FILE": str(urls)}, rpc="http://high.example").rpc == (
        "http://high.example",
    )
    home, password = place / "home", place / "password"
    own = load(place, rpc_file=urls, password_file=str(password)).own
    assert own[:4] == (home, home / "keys", password, Path(urls))
    above = load(place, rpc="http://top.example", environ={"HEARTH_RPC_FILE": str(urls)}).own
    assert above == (home, home / "keys", *own[4:])


def test_own__home_of_its_own__the_platforms_home_and_settings_are_kept_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(place / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    usual = platformdirs.user_data_path("hearth", appauthor=False)
    assert usual != place / "home"
    config = platformdirs.user_config_path("hearth", appauthor=False) / "config.toml"
    kept = load(place).own
    assert {usual, usual / "keys", config, place / "home", place / "home" / "keys"} == set(kept)
    assert Settings(home=usual).own == (usual, usual / "keys", config)


def test_load_settings__all_settings_in_a_file__typed(place: Path) -> None:
    (place / "project" / "hearth.toml").write_text(
        'network = "base"\naccount = "alice"\npassword_file = "secret/pw"\nrpc = ["http://a:1", "https://b"]\n'
        'timeout = "2m30s"\nstore = "/ip4/127.0.0.1/tcp/5001"\ngateways = ["https://g"]\n'
    )
    settings = load(place)
    assert settings.account == "alice"
    assert settings.password_file == place / "project" / "secret" / "pw"  # beside the file that names it
    assert settings.rpc == ("http://a:1", "https://b")
    assert settings.timeout == 150
    assert settings.store == "/ip4/127.0.0.1/tcp/5001"
    assert settings.gateways == ("https://g",)


def test_load_settings__path_flag__starts_from_the_working_folder(place: Path) -> None:
    assert load(place, password_file="pw").password_file == place / "project" / "sub" / "pw"
    assert load(place, password_file=Path("/abs")).password_file == Path("/abs")
    assert load(place, network="nets/x.json").network == str(place / "project" / "sub" / "nets" / "x.json")


def test_load_settings__list_in_a_variable__split_at_commas(place: Path) -> None:
    assert load(place, environ={"HEARTH_RPC": "http://a, http://b,"}).rpc == ("http://a", "http://b")


def test_load_settings__nearest_project_file__only_that_one(place: Path) -> None:
    (place / "project" / "hearth.toml").write_text('account = "outer"\nnetwork = "outer"\n')
    (place / "project" / "sub" / "hearth.toml").write_text('account = "inner"\n')
    assert (load(place).account, load(place).network) == ("inner", "devnet")


def test_load_settings__project_file_of_another_user__refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "project" / "hearth.toml").write_text('rpc = ["http://evil"]\n')
    owner = (place / "project" / "hearth.toml").stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    if owner == 0:
        os.chown(place / "project" / "hearth.toml", 12_345, -1)
    error = refused(place)
    assert error.code == "FOREIGN_FILE"


def strangers(monkeypatch: pytest.MonkeyPatch, *foreign: Path) -> None:
    """Have files, and links as such, belong to somebody else, and nobody but root own the rest."""
    owner = os.getuid()
    if owner == 0:
        for one in foreign:
            os.chown(one, 12_345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)


def test_load_settings__link_of_another_user_to_a_file_of_roots__refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: a file's paths start from the link's folder, so that it would name the contracts of the link's owner."""
    link = place / "project" / "hearth.toml"
    link.symlink_to("/dev/null")
    assert load(place).project == link
    strangers(monkeypatch, link)
    assert refused(place).code == "FOREIGN_FILE"


@pytest.mark.parametrize("foreign", ["file", "link", "folder"])
@pytest.mark.parametrize("found", ["by name", "beside the project", "by a relative path"])
def test_network_file__of_another_user__refused_where_nobody_named_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, found: str, foreign: str
) -> None:
    """Profit: escrow and stake would go to the contracts that another user of the machine wrote into the file."""
    project = place / "project"
    folder = (project / "sub" if found == "by name" else project) / "networks"
    folder.mkdir()
    file = folder / "mine.json"
    if foreign == "link":
        file.symlink_to("/etc/passwd")
    else:
        file.write_text(json.dumps(NETWORK))
    monkeypatch.chdir(project / "sub")
    network = "networks/mine.json" if found == "by a relative path" else "mine"
    if found != "by name":
        (project / "hearth.toml").write_text(f'network = "{network}"\n')
    flags = {"network": "mine"} if found == "by name" else {}
    assert network_file(load(place, **flags)) == file
    if os.getuid() == 0:
        strangers(monkeypatch, folder if foreign == "folder" else file)
    elif found != "by name":
        pytest.skip("a hearth.toml of one's own beside a network file of another user's takes root to make")
    strangers(monkeypatch)
    with pytest.raises(ConfigError, match=r"belongs to another user \(uid") as caught:
        network_file(load(place, **flags))
    assert caught.value.code == "FOREIGN_FILE" and "--network" in caught.value.hint
    assert network_file(load(place, network=str(file))) == file
    assert network_file(load(place, environ={"HEARTH_NETWORK": str(file)})) == file
    (place / "home" / "config.toml").write_text(f'network = "{file}"\n')
    (project / "hearth.toml").unlink(missing_ok=True)
    assert network_file(load(place)) == file, "an absolute path names it"


def test_settings__frozen(place: Path) -> None:
    with pytest.raises(AttributeError):
        load(place).network = "other"  # type: ignore[misc]


# ---- refusals ----


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ('netwrok = "x"\n', "UNKNOWN_KEY", "netwrok is not a setting", 'did you mean "network"?'),
        ("zzz = 1\n", "UNKNOWN_KEY", "zzz", "known here: network"),
        ('[network]\nname = "x"\n', "BAD_CONFIG", "network: must be text", "write network"),
        ("account = 5\n", "BAD_CONFIG", "account: must be text", "write account"),
        ('account = " "\n', "BAD_CONFIG", "account: must be text", "write account"),
        ("timeout = 5\n", "BAD_CONFIG", "5 has no unit", '"5s"'),
        ('timeout = "soon"\n', "BAD_CONFIG", "not a duration", "2h30m"),
        ('timeout = "0s"\n', "BAD_CONFIG", "more than 0s", "10m"),
        ("timeout = true\n", "BAD_CONFIG", "must be text", ""),
        ('rpc = "ftp://x"\n', "BAD_CONFIG", "ftp://x is not a URL", "https"),
        ('rpc = ["wss://x/hunter2"]\n', "BAD_CONFIG", "wss://x/... is not a URL of http, https", "https"),
        ('rpc = ["http://"]\n', "BAD_CONFIG", "not a URL", "https"),
        ('rpc = ["http://a:99999"]\n', "BAD_CONFIG", "not a URL", "https"),
        ('rpc = ["http://a b"]\n', "BAD_CONFIG", "not a URL", "https"),
        ("rpc = []\n", "BAD_CONFIG", "names no URL", "https"),
        ("rpc = [1]\n", "BAD_CONFIG", "a URL or a list", "https"),
        ('rpc = "http://a"\nrpc_file = "x"\n', "BAD_CONFIG", "stands beside rpc", "keep one"),
        ('rpc_file = "missing"\n', "NO_FILE", "the RPC file", "ls -l"),
        ('gateways = ["ws://x"]\n', "BAD_CONFIG", "gateways: ws://x", "https"),
        ('store = "s3"\n', "BAD_CONFIG", '"s3" is not a store', "folder"),
        ('store = "ftp://x"\n', "BAD_CONFIG", "ftp://x is not a URL", "https"),
        ('network = "../etc"\naccount = 1\n', "BAD_CONFIG", "account", "write"),
        ('network = "A B"\n', "BAD_CONFIG", "neither a name", "--network"),
        ('password = "hunter2"\n', "SECRET_IN_FILE", "is a secret", "password_file"),
        ('private_key = "0x1"\n', "SECRET_IN_FILE", "is a secret", "password_file"),
        ("network = \n", "BAD_CONFIG", "is not TOML", "hearth init"),
        ('password_file = "~nobody-here/pw"\n', "BAD_CONFIG", "this machine has no user nobody-here", "from /"),
        ("a = " + "[" * 5_000, "BAD_CONFIG", "is not TOML", "hearth init"),
        ("a = " + "9" * 5_000, "BAD_CONFIG", "is not TOML", "hearth init"),
        ("#" * (1 << 20) + "\n", "BAD_CONFIG", "larger than", "hearth init"),
    ],
)
def test_load_settings__bad_file__refused_with_file_and_hint(
    place: Path, text: str, code: str, message: str, hint: str
) -> None:
    path = place / "home" / "config.toml"
    path.write_text(text)
    error = refused(place)
    assert error.code == code
    assert message in error.message
    assert hint in error.hint
    assert "hunter2" not in str(error.as_dict())
    assert str(place) in error.message or code == "NO_FILE"


def test_load_settings__file_that_is_not_text__refused(place: Path) -> None:
    (place / "home" / "config.toml").write_bytes(b"\xff")
    assert "is not TOML" in refused(place).message


def test_load_settings__folder_in_place_of_the_file__refused(place: Path) -> None:
    (place / "home" / "config.toml").mkdir()
    assert "cannot be read" in refused(place).message


@pytest.mark.parametrize("variable", ["HEARTH_PASSWORD", "HEARTH_PRIVATE_KEY", "HEARTH_MNEMONIC", "HEARTH_KEY"])
def test_load_settings__secret_in_the_environment__refused_without_repeating_it(place: Path, variable: str) -> None:
    error = refused(place, environ={variable: "hunter2"})
    assert error.code == "SECRET_IN_ENV"
    assert "HEARTH_PASSWORD_FILE" in error.hint
    assert "hunter2" not in str(error.as_dict())


def test_load_settings__misspelt_variable__refused_with_did_you_mean(place: Path) -> None:
    error = refused(place, environ={"HEARTH_NETWROK": "x"})
    assert (error.code, error.hint) == ("UNKNOWN_KEY", 'did you mean "HEARTH_NETWORK"?')


@pytest.mark.parametrize("variable", ["HEARTH_REQUIRE", "HEARTH_HYPOTHESIS", "HEARTH_UNIT", "HEARTH_UNITS", "PATH"])
def test_load_settings__variable_of_another_program__left_alone(place: Path, variable: str) -> None:
    assert load(place, environ={variable: "x"}) == load(place)


def test_load_settings__unknown_flag__refused(place: Path) -> None:
    assert refused(place, acount="x").hint == 'did you mean "account"?'


@pytest.mark.parametrize(
    ("raw", "code"),
    [(b"https://a/KEY\n", "OPEN_FILE"), (b"", "BAD_CONFIG"), (b"\xff", "BAD_CONFIG"), (b"x\n", "BAD_CONFIG")],
)
def test_load_settings__bad_rpc_file__refused(place: Path, raw: bytes, code: str) -> None:
    path = place / "urls"
    path.write_bytes(raw)
    path.chmod(0o644 if code == "OPEN_FILE" else 0o600)
    assert refused(place, rpc_file=str(path)).code == code


# ---- secrets ----


@pytest.mark.parametrize(
    "url", ["https://u:hunter2@rpc.example/x", "https://rpc.example/v2/hunter2", "https://rpc.example?k=hunter2"]
)
def test_settings__url_with_a_key__not_shown(place: Path, url: str) -> None:
    settings = load(place, rpc=url, gateways="https://rpc.example/hunter2")
    assert settings.rpc == (url,)
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings.shown())
    assert "rpc.example" in settings.shown()["rpc"]


def test_settings__bad_url_with_a_key__not_repeated(place: Path) -> None:
    assert "hunter2" not in str(refused(place, rpc="ftp://rpc.example/hunter2").as_dict())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("https://a.b/c", "https://a.b/..."),
        ("https://u@a.b", "https://a.b/..."),
        ("http://[::1", "?"),
        ("http://a:b", "?"),
    ],
)
def test_redact_url__any__host_only(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@given(st.text(st.characters(categories=["L", "N"]), min_size=8, max_size=20))
def test_redact_url__any_path__never_shown(secret: str) -> None:
    assert secret.lower() not in redact_url(f"https://rpc.example/{secret}").lower().replace("rpc.example", "")


# ---- folders and files ----


def test_home_folder__variable__wins_and_must_be_absolute(tmp_path: Path) -> None:
    assert home_folder({"HEARTH_HOME": str(tmp_path)}) == tmp_path
    with pytest.raises(ConfigError, match="not an absolute path"):
        home_folder({"HEARTH_HOME": "relative"})
    with pytest.raises(ConfigError, match="HEARTH_HOME=~nobody-here/x: this machine has no user nobody-here"):
        home_folder({"HEARTH_HOME": "~nobody-here/x"})


def test_home_folder__no_variable__the_platform_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "hearth").mkdir(parents=True)
    (tmp_path / "config" / "hearth" / "config.toml").write_text('account = "from-user-file"\n')
    settings = load_settings({}, environ={}, cwd=tmp_path)
    assert settings.home == tmp_path / "data" / "hearth"
    assert settings.account == "from-user-file"


def test_make_private__new_folder__owner_only(tmp_path: Path) -> None:
    folder = make_private(tmp_path / "a" / "b")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make_private(folder) == folder


def test_make_private__open_folder__refused_with_chmod(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(ConfigError) as caught:
        make_private(tmp_path)
    assert (caught.value.code, caught.value.hint) == ("OPEN_FOLDER", f"chmod 700 {tmp_path}")


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_check_private__owner_only__passes(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    path.chmod(mode)
    check_private(path, "the file")


# ---- networks ----


def write_network(folder: Path, name: str = "devnet", **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**NETWORK, **changes}))
    return path


def test_open_network__in_the_home_folder__parsed(place: Path) -> None:
    write_network(place / "home" / "networks")
    settings = load(place)
    network = open_network(settings)
    assert (network.name, network.chain_id, network.deploy_block, network.policy) == ("devnet", 31_337, 5, 7)
    assert asset_of(network) == Asset("USDX", 6, "0x" + "05" * 20)
    assert rpc_urls(settings, network) == ("http://127.0.0.1:8545",)


def test_open_network__written_by_save_network__read_back(place: Path) -> None:
    network: Network = network_of(NETWORK)
    save_network(network, place / "home" / "networks" / "devnet.json")
    assert open_network(load(place)) == network


def test_network_file__home_then_project__first_found(place: Path) -> None:
    (place / "project" / "hearth.toml").write_text("")
    in_project = write_network(place / "project" / "networks")
    assert network_file(load(place)) == in_project
    in_home = write_network(place / "home" / "networks")
    assert network_file(load(place)) == in_home


def test_network_file__working_folder_of_a_clone__is_looked_at_last(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "clone").mkdir()
    monkeypatch.chdir(place / "clone")
    deployed = write_network(place / "clone" / "networks", "mymarket")
    assert network_file(load(place, network="mymarket")) == deployed
    in_home = write_network(place / "home" / "networks", "mymarket")
    assert network_file(load(place, network="mymarket")) == in_home


def test_network_file__path__as_given(place: Path) -> None:
    path = write_network(place / "elsewhere", "x")
    assert open_network(load(place, network=str(path))).chain_id == 31_337


@pytest.mark.parametrize(
    ("name", "hint"), [("devnet", "hearth devnet up"), ("bass", 'did you mean "base"?'), ("qqq", "--network FILE")]
)
def test_network_file__unknown_name__refused_with_what_exists(place: Path, name: str, hint: str) -> None:
    write_network(place / "home" / "networks", "base")
    with pytest.raises(ConfigError) as caught:
        network_file(load(place, network=name))
    assert caught.value.code == "NO_NETWORK"
    assert "base" in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"chainid": 1}, "chainid is not known", 'did you mean "chain_id"?'),
        ({"asset": {**NETWORK["asset"], "decimal": 6}}, "asset.decimal is not known", '"decimals"'),
        ({"contracts": {**NETWORK["contracts"], "Court": "0x" + "09" * 20}}, "contracts.Court", "known here"),
    ],
)
def test_open_network__unknown_key__refused_with_did_you_mean(
    place: Path, changes: dict[str, Any], message: str, hint: str
) -> None:
    write_network(place / "home" / "networks", **changes)
    with pytest.raises(ConfigError) as caught:
        open_network(load(place))
    assert caught.value.code == "UNKNOWN_KEY"
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "changes", [{"chain_id": "x"}, {"genesis_hash": "0x12"}, {"contracts": {}}, {"asset": None}, {"policy": 5}]
)
def test_open_network__malformed_value__refused(place: Path, changes: dict[str, Any]) -> None:
    write_network(place / "home" / "networks", **changes)
    with pytest.raises(ConfigError) as caught:
        open_network(load(place))
    assert caught.value.code == "BAD_NETWORK"


def test_rpc_urls__setting__wins_and_none_is_refused(place: Path) -> None:
    network = network_of({**NETWORK, "rpc": []})
    assert rpc_urls(load(place, rpc="http://mine"), network) == ("http://mine",)
    with pytest.raises(ConfigError) as caught:
        rpc_urls(load(place), network)
    assert (caught.value.code, caught.value.hint) == ("NO_RPC", "use --rpc URL")


def test_import__config__light() -> None:
    code = (
        "import sys, hearth.config.settings;"
        "print(sorted(set(sys.modules) & {'pydantic', 'platformdirs', 'web3', 'eth_account', 'hearth.market.network'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
