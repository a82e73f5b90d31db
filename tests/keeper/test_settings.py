"""keeper.toml: what is taken, and what is refused with the field's name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ConfigError
from hearth.protocol.units import Asset
from keeper.manage import Keeping
from keeper.settings import Settings, load, parse

ETH = Asset("ETH", 18)
USDC = Asset("USDC", 6, "0x" + "33" * 20)
KEEPER = "0x" + "ee" * 20

FULL = """
network = "sepolia"
home = "state"
rpc = ["https://one.example", "https://two.example/v2/secret"]
withdraw_at = "0.5"

[account]
keystore = "keys/keeper.json"
password_file = "/run/credentials/password"
payee = "0xAbcdefabcdefabcdefabcdefabcdefabcdefabcd"

[work]
jitter = "24s"
max_loss = "0.001"
burst = 4

[price]
coin = "2650.40"

[limits]
max_gas_price = "50.5 gwei"

[metrics]
listen = "0.0.0.0:9000"
"""


def plain(**changes: Any) -> Settings:
    return parse({"network": "devnet", "home": "h", **changes}, Path("/etc/hearth/keeper.toml"))


def test_load__full_file__every_field_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "keeper.toml"
    path.write_text(FULL)
    settings = load(path)
    assert settings.home == tmp_path / "state"
    assert settings.account is not None
    assert settings.account.keystore == tmp_path / "keys/keeper.json"
    assert settings.account.password_file == Path("/run/credentials/password")
    config = settings.config(USDC, KEEPER)
    assert (config.keeper, config.payee) == (KEEPER, "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd")
    assert (config.jitter, config.latency, config.burst) == (24, 3, 4)
    assert (config.max_loss, config.coin_price) == (1_000, 2_650_400_000)
    assert settings.withdraw_threshold(USDC) == 500_000
    assert settings.limits.max_gas_wei == 50_500_000_000
    assert settings.metrics.address == ("0.0.0.0", 9000)
    assert "secret" not in repr(settings)


def test_parse__smallest_file__is_a_dry_run_at_no_loss() -> None:
    settings = plain()
    config = settings.config(ETH, KEEPER)
    assert settings.account is None
    assert (config.payee, config.max_loss, config.coin_price) == (KEEPER, 0, 10**18)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"jiter": 1}, "jiter: there is no such key"),
        ({"work": {"jiter": "12s"}}, "work.jiter: there is no such key, did you mean jitter?"),
        ({"account": {"keystor": "k"}}, "account.keystor: there is no such key, did you mean keystore?"),
        ({"work": {"jitter": "12"}}, 'work.jitter: "12" is not a duration'),
        ({"work": {"burst": 0}}, "work.burst"),
        ({"work": {"ack_share_bps": 10_001}}, "work.ack_share_bps"),
        ({"account": {"keystore": "k", "password_file": "p", "payee": "0x12"}}, "account.payee"),
        ({"account": {"keystore": "k"}}, "account.password_file: it is missing"),
        ({"limits": {"max_gas_price": "50"}}, 'write "200 gwei"'),
        ({"limits": {"max_failures": 0}}, "limits.max_failures"),
        ({"metrics": {"listen": "9465"}}, "is not HOST:PORT"),
        ({"metrics": {"listen": "localhost:70000"}}, "is not HOST:PORT"),
        ({"price": {"coin": "1", "coin_file": "c"}}, "exclude each other"),
        ({"poll": 0}, "poll"),
    ],
)
def test_parse__bad_field__names_it(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plain(**changes)
    assert says in caught.value.message
    assert caught.value.message.startswith("/etc/hearth/keeper.toml: ")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("127.0.0.1:8545", "127.0.0.1:8545 is no RPC address: write http://127.0.0.1:8545"),
        ("ws://host/secret", "ws://host/... is no RPC address: write http://HOST:PORT"),
        ("secret", "this is no RPC address"),
        ("http://host:0", "http://host:0 is no RPC address"),
    ],
)
def test_parse__rpc_that_is_no_address__names_file_place_and_text_and_no_secret(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plain(rpc=["http://good:1", text])
    said = caught.value.message
    assert said.startswith("/etc/hearth/keeper.toml: rpc.1: ") and message in said and "secret" not in said
    assert caught.value.hint == "mend it in /etc/hearth/keeper.toml, then hearth keeper list"


def test_reload__keeper_without_a_key__says_how_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "keeper.toml"
    path.write_text('network = "devnet"\nhome = "home"\n')
    client: Any = SimpleNamespace(session=SimpleNamespace(asset=ETH, dry_run=False))
    with pytest.raises(ConfigError) as caught:
        Keeping(client, path).reload()
    assert caught.value.code == "NOT_RUNNING" and "systemctl reload" in caught.value.hint


def test_config__token_market_without_a_price__refuses() -> None:
    with pytest.raises(ConfigError, match="say what one coin is worth"):
        plain().config(USDC, KEEPER)


def test_config__price_file__is_read_each_time(tmp_path: Path) -> None:
    price = tmp_path / "price"
    settings = plain(price={"coin_file": str(price)})
    with pytest.raises(ConfigError, match=r"price\.coin_file"):
        settings.config(USDC, KEEPER)
    price.write_text("2000\n")
    assert settings.config(USDC, KEEPER).coin_price == 2_000_000_000
    price.write_text("1999.5")
    assert settings.config(USDC, KEEPER).coin_price == 1_999_500_000


@pytest.mark.parametrize("text", ["-1", "1e3", "0.0000001"])
def test_config__amount_that_is_none__names_the_field(text: str) -> None:
    with pytest.raises(ConfigError, match=r"work\.max_loss"):
        plain(work={"max_loss": text}, price={"coin": "1"}).config(USDC, KEEPER)


def test_load__no_file_or_no_toml__refuses(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "none.toml")
    assert caught.value.code == "NO_CONFIG"
    (tmp_path / "bad.toml").write_text("network =")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "bad.toml")
