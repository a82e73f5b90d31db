"""worker.settings: what is accepted, what is refused and how the refusal reads."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import ConfigError
from hearth.jobfile import plan_prices, spec_from
from hearth.market.profiles import PUBLIC
from hearth.protocol.units import Asset
from worker import settings
from worker.runtimes.docker_images import ImageRules

ETH = Asset("ETH", 18)
USDC = Asset("USDC", 6)
TEXT = """
network = "devnet"
node = 3
home = "state"

[account]
payout = "0x00000000000000000000000000000000000000Ab"
keystore = "operator.json"
password_file = "/etc/hearth/password"

[offer]
price = "1.20/h"
country = "in"
"""


DIGEST = "sha256:" + "ab" * 32
ONE = "0x" + "ab" * 20


@pytest.mark.parametrize(
    "pattern",
    ["*", "python", "me/*", "ghcr.io/me/x", "10.0.0.7:5000/*", f"python@{DIGEST}", DIGEST, "*@sha256:ab*", "[a-m]*/x"],
)
def test_parse__patterns_of_images__are_read(pattern: str) -> None:
    found = settings.parse(changed(accept__images=[pattern], accept__refuse_images=[pattern]), Path("w"))
    assert found.accept.images == found.accept.refuse_images == (pattern,)


@pytest.mark.parametrize("text", ["5", "0.01 BTC"])
def test_min_pay__bad_amount__is_refused_once_the_asset_is_known(text: str) -> None:
    found = settings.parse(changed(accept__min_pay=text), Path("w"))
    if text == "5":
        assert found.min_pay(USDC) == 5 * 10**6
    else:
        with pytest.raises(ConfigError, match=r"accept\.min_pay"):
            found.min_pay(ETH)


def read(tmp_path: Path, text: str = TEXT) -> settings.Settings:
    path = tmp_path / "worker.toml"
    path.write_text(text)
    return settings.load(path)


def changed(**changes: Any) -> dict[str, Any]:
    """Return TEXT with changes: `offer__price="x"` sets offer.price."""
    data: dict[str, Any] = tomllib.loads(TEXT)
    for name, value in changes.items():
        here = data
        *sections, key = name.split("__")
        for section in sections:
            here = here.setdefault(section, {})
        here[key] = value
    return data


def test_load__shortest_file__has_defaults_and_absolute_paths(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.home == tmp_path / "state"
    assert found.account.keystore == tmp_path / "operator.json"
    assert found.account.password_file == Path("/etc/hearth/password")
    assert found.account.payout == "0x00000000000000000000000000000000000000ab"
    assert found.stores == (f"folder://{tmp_path}/state/store",)
    assert found.metrics.address == ("127.0.0.1", 9464)
    assert found.ask(ETH) == 1_200_000_000_000_000_000 * 10**6 // 3600
    assert found.min_rate(ETH) == 0
    assert found.withdraw_threshold(ETH) == 0
    assert found.max_gas_wei == 200 * 10**9


def test_docker_of__settings__are_the_rules_for_images(tmp_path: Path) -> None:
    found = settings.docker_of(
        read(tmp_path, TEXT + '\n[docker]\nregistries = ["10.0.0.7:5000", "*.pkg.dev"]\nkeep_images = "1GiB"\n')
    )
    assert found.image_rules == ImageRules(
        registries=("10.0.0.7:5000", "*.pkg.dev"),
        keep_bytes=1 << 30,
        ledger=tmp_path / "state" / "images.json",
    )


def test_load__no_file__names_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no .*absent\.toml") as caught:
        settings.load(tmp_path / "absent.toml")
    assert (caught.value.code, caught.value.hint) == ("NO_CONFIG", "hearth worker init --price RATE --country CODE")


def test_load__broken_toml__names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2") as caught:
        read(tmp_path, "\nnode = = 3")
    assert caught.value.hint == f"mend {tmp_path / 'worker.toml'}, then hearth worker doctor"


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "a = " + "9" * 5_000], ids=["deep", "digits"])
def test_load__toml_that_its_reader_cannot_hold__refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"networks": "x"}, "networks: there is no such key, did you mean network?"),
        ({"accept__image": ["*"]}, "accept.image: there is no such key, did you mean images?"),
        ({"accept__schedule": "22-8"}, 'accept.schedule: "22-8" is not a span of the day'),
        ({"accept__schedule": "24:00-08:00"}, "is not a span of the day"),
        ({"accept__schedule": "08:00-08:00"}, "is empty"),
        ({"accept__max_runtime": "3600"}, 'did you mean "3600s"'),
        ({"accept__refuse_submitters": ["0x12"]}, '"0x12" is not an address'),
        ({"accept__confirmations": -1}, "accept.confirmations"),
        ({"accept__submitters": ["0x12"]}, '"0x12" is not an address'),
        ({"accept__submitters": []}, "accept: submitters is empty, which allows none"),
        ({"accept__images": []}, "accept: images is empty"),
        ({"accept__modules": []}, "accept: modules is empty"),
        ({"accept__images": [""]}, '"" is no pattern of images'),
        ({"accept__images": ["GHCR.io/Me/*"]}, 'write it as "ghcr.io/me/*"'),
        ({"accept__images": ["https://ghcr.io/me"]}, "is no pattern of images"),
        ({"accept__refuse_images": ["python:3.12"]}, '"python:3.12": jobs name images by digest, and a tag'),
        ({"accept__refuse_images": [f"python:3.12@{DIGEST}"]}, "leave the tag out"),
        ({"accept__refuse_images": ["evil/x@sha256:abcd"]}, "a digest is sha256: and 64 hex digits"),
        ({"accept__refuse_images": ["sha256:abcd"]}, "a digest is sha256: and 64 hex digits"),
        ({"accept__refuse_modules": ["ipfs://bafy"]}, "without ipfs://"),
        ({"accept__submitters": [ONE], "accept__refuse_submitters": [ONE.upper().replace("X", "x")]}, f"name {ONE}"),
        ({"accept__max_runtime": "0s"}, 'max_runtime "0s" allows no job'),
        ({"accept__gpu_only": True, "offer__gpus": "none"}, 'offer.gpus is "none"'),
        ({"account__payout": "alice"}, '"alice" is not an address'),
        ({"offer__slots": 64}, "offer.slots"),
        ({"offer__country": "zz"}, "offer.country"),
        ({"offer__memory": "16GB"}, 'did you mean "16GiB"'),
        ({"offer__gpus": ["GPU-1", "GPU-1"]}, "names a GPU twice"),
        ({"offer__runtimes": ["vm"]}, "offer.runtimes"),
        ({"docker__registries": ["https://ghcr.io"]}, '"https://ghcr.io" is not a registry'),
        ({"docker__registries": ["ghcr.io/me"]}, "docker.registries"),
        ({"docker__max_image": "32GB"}, 'did you mean "32GiB"'),
        ({"metrics__listen": "9464"}, "is not HOST:PORT"),
        ({"metrics__listen": "localhost:70000"}, "is not HOST:PORT"),
        ({"max_gas_price": "5"}, 'write "200 gwei"'),
        ({"node": 0}, "node: 0 is below 1"),
        ({"accept__min_pay": "free"}, 'accept.min_pay: "free" is not an amount'),
        ({"accept__min_price": "1.20"}, 'accept.min_price: "1.20" is not a rate: it names no time unit'),
        (
            {"offer__price": "0,60/h"},
            'offer.price: "0,60/h" is not a rate: a decimal point is "." (did you mean "0.60/h"?)',
        ),
        ({"gas__max_loss": "any"}, 'gas.max_loss: "any" is not an amount'),
        ({"gas__coin": "dear"}, 'gas.coin: "dear" is not an amount'),
        ({"withdraw_at": "-1"}, 'withdraw_at: "-1" is not an amount'),
        ({"accept__min_pay": 0.1}, 'accept.min_pay: 0.1 is no text: write "0.1"'),
        ({"withdraw_at": True}, "withdraw_at: true is no text"),
        ({"home": 5}, "home: 5 is no path: write it in quotes"),
        ({"home": "~1.5GiBearth/w"}, "home: this machine has no user 1.5GiBearth"),
        ({"network": "~nobody-here/own.json"}, "network: this machine has no user nobody-here"),
        ({"offer__slots": "x"}, 'offer.slots: "x" is no whole number'),
        ({"offer__cores": 2.5}, "offer.cores: 2.5 is no whole number"),
        ({"accept__confirmations": 5000}, "accept.confirmations: 5000 is above 1000"),
        ({"accept__gpu_only": "maybe"}, 'accept.gpu_only: "maybe" is neither true nor false'),
        ({"offer__runtimes": "docker"}, 'offer.runtimes: "docker" is no list: write ["docker"]'),
        ({"log_level": "loud"}, 'log_level: "loud" is none of "debug", "info", "warning" or "error"'),
        ({"account": 3}, "account: 3 is no section: its keys stand below [account]"),
        ({"offer__gpus": 3}, 'offer.gpus: 3 is none of "all" or "none", and no list of texts'),
        ({"accept__min_pay": "9" * 5_000 + "x"}, "accept.min_pay"),
    ],
)
def test_parse__bad_field__is_named_with_what_would_be_right(changes: dict[str, Any], message: str) -> None:
    settings.parse(changed(), Path("worker.toml"))
    with pytest.raises(ConfigError) as caught:
        settings.parse(changed(**changes), Path("worker.toml"))
    assert message in caught.value.message
    assert caught.value.message.startswith("worker.toml: ")
    assert caught.value.exit_code == 3
    assert caught.value.hint == "mend it in worker.toml, then hearth worker doctor"
    assert "Input should" not in caught.value.message


def test_parse__several_faults__names_them_all_a_line_each() -> None:
    data = changed(node=0, offer__gpus=[3], offer__price="0,60/h", accept__min_pay=0.1)
    del data["network"], data["account"]
    with pytest.raises(ConfigError) as caught:
        settings.parse(data, Path("bad.toml"))
    assert caught.value.details["problems"] == [
        "network: it is missing",
        "node: 0 is below 1",
        "account: it is missing",
        'offer.price: "0,60/h" is not a rate: a decimal point is "." (did you mean "0.60/h"?)',
        'offer.gpus: [3] is none of "all" or "none", and no list of texts',
        'accept.min_pay: 0.1 is no text: write "0.1"',
    ]
    first, *lines = caught.value.message.splitlines()
    assert first == "bad.toml: 6 things are wrong"
    assert lines == [f"  {problem}" for problem in caught.value.details["problems"]]
    assert caught.value.hint == "mend them in bad.toml, then hearth worker doctor"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("127.0.0.1:8545", "127.0.0.1:8545 is no RPC address: write http://127.0.0.1:8545"),
        ("rpc.example.org:443/v1/secret", "rpc.example.org:443 is no RPC address: write http://rpc.example.org:443"),
        ("ws://host/secret", "ws://host/... is no RPC address: write http://HOST:PORT"),
        ("secret", "this is no RPC address"),
        ("http://host:99999", "? is no RPC address"),
        ("http://host:0", "http://host:0 is no RPC address"),
        ("http://", "is no RPC address"),
        ("http://host/se cret", "http://host/... is no RPC address"),
    ],
)
def test_load__rpc_that_is_no_address__names_file_place_and_text_and_no_secret(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f'rpc = ["http://good:1", "{text}"]\n' + TEXT)
    said = caught.value.message
    assert said.startswith(f"{tmp_path}/worker.toml: rpc.1: ") and message in said and "secret" not in said
    assert f"in {tmp_path}/worker.toml, then hearth worker doctor" in caught.value.hint


@pytest.mark.parametrize("price", ["1.20", "free", "0/h", "-1/h", "0.0000000000000000001/h"])
def test_ask__bad_price__is_refused_once_the_asset_is_known(price: str) -> None:
    with pytest.raises(ConfigError, match=r"offer\.price"):
        settings.parse(changed(offer__price=price), Path("worker.toml")).ask(ETH)


def test_ask__token_market__counts_in_its_base_units() -> None:
    assert settings.parse(changed(offer__price="3.6 USDC/h"), Path("w")).ask(USDC) == 1_000 * 10**6


@given(
    hundredths=st.integers(1, 100),
    per=st.sampled_from(["/h", "/min", "/s", "/d"]),
    asset=st.sampled_from([ETH, USDC]),
)
def test_ask__the_same_text_as_a_ceiling__is_the_same_rate(hundredths: int, per: str, asset: Asset) -> None:
    text = f"{hundredths // 100}.{hundredths % 100:02}{per}"
    ask = settings.parse(changed(offer__price=text, accept__min_price=text), Path("w"))
    spec = spec_from({"image": "x", "price": {"max_rate": text}, "limits": {"runtime": "1h"}}).spec
    policy = replace(PUBLIC.policy, min_price=1, min_keeper_fee=1)
    assert ask.ask(asset) == ask.min_rate(asset) == plan_prices(spec, asset, policy).ceiling
    seconds = {"/h": 3_600, "/min": 60, "/s": 1, "/d": 86_400}[per]
    exact = Fraction(hundredths * 10**asset.decimals * 10**6, 100 * seconds)
    assert exact - 1 < ask.ask(asset) <= exact


@pytest.mark.parametrize(
    ("schedule", "minute", "accepts"),
    [
        ("", 0, True),
        ("22:00-08:00", 21 * 60 + 59, False),
        ("22:00-08:00", 22 * 60, True),
        ("22:00-08:00", 0, True),
        ("22:00-08:00", 8 * 60 - 1, True),
        ("22:00-08:00", 8 * 60, False),
        ("09:00-17:00", 8 * 60 + 59, False),
        ("09:00-17:00", 9 * 60, True),
        ("09:00-17:00", 17 * 60, False),
        ("09:00-10:00, 12:00-13:00", 12 * 60 + 30, True),
        ("09:00-10:00, 12:00-13:00", 11 * 60, False),
    ],
)
def test_accepting_at__span_of_the_day__is_half_open(schedule: str, minute: int, accepts: bool) -> None:
    assert settings.accepting_at(schedule, minute) is accepts


# ---- the document ----

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "worker.toml.md"


def test_document__its_example__is_read_and_names_every_field(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    found = read(tmp_path, text.replace('"0x..."', f'"{"0x" + "11" * 20}"'))
    assert found.accept.schedule == "22:00-08:00"
    # What is commented out can be switched on, line by line.
    options = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
    for option in options:
        name = option.partition(" = ")[0]
        switched = text.replace(f"# {option}", option).replace('"0x..."', f'"{"0x" + "11" * 20}"')
        if "..." not in option and name != "gpus_per_slot":
            read(tmp_path, switched)
    for model, prefix in ((settings.Settings, ""), (settings.Account, ""), (settings.OfferSettings, "")):
        for name in model.model_fields:
            assert f"{prefix}{name}" in text, name
    for model in (settings.Accept, settings.Storage, settings.MetricsSettings):
        for name in model.model_fields:
            assert f"{name} = " in text, name


def test_docker_runtime__gvisor__gives_no_gpu(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).offer.gpus == "all"
    assert read(tmp_path, TEXT + '[docker]\nruntime = "runsc"\n').offer.gpus == "none"
    with pytest.raises(ConfigError, match=r'offer.gpus names GPUs and docker.runtime is "runsc-kvm"'):
        settings.parse(changed(offer__gpus=["GPU-1"], docker__runtime="runsc-kvm"), tmp_path / "worker.toml")


@pytest.mark.parametrize("name", ["/usr/bin/runsc", "Runsc", "--privileged", "a b"])
def test_docker_runtime__no_name__is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a runtime"):
        settings.parse(changed(docker__runtime=name), tmp_path / "worker.toml")
