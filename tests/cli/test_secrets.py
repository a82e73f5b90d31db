"""No command repeats the key of an RPC provider, a gateway or a store, however it is wrong and whoever says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hearth.base.errors import ConfigError, StorageError
from hearth.local.devnet import free_port
from hearth.market.network import save_network
from hearth.storage import cid as cids
from hearth.storage.stores import open_store
from tests.kit import build
from tests.kit.canary import TOKENS, with_tokens
from tests.kit.fake_chain import FakeChain
from tests.kit.liars import Asked, lying
from tests.kit.town import hearth

pytestmark = pytest.mark.net
PATH, QUERY, USER = TOKENS
BROKEN = (
    f"ftp://rpc.example/{PATH}",
    f"http://[{PATH}",
    f"http:// {PATH}",
    f"http://u:{PATH}@h\u2100x/",
    f"http://host:99999/{PATH}",
    PATH,
)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of a user of a market whose contracts nobody serves."""
    home = tmp_path_factory.mktemp("user")
    save_network(build.network(FakeChain()), home / "networks" / "test.json")
    return home


def said(user: Path, *command: str, **environ: str) -> str:
    """Return all that a command prints; it fails, and by itself."""
    told = hearth(user, *command, "--network", "test", environ=environ)
    assert told.code not in (0, 1), told.err
    assert "Traceback" not in told.err
    return told.out + told.err


@pytest.mark.parametrize("url", BROKEN)
@pytest.mark.parametrize("command", [("net", "status"), ("worker", "status", "--config", "worker.toml")])
def test_command__rpc_address_that_is_none__is_refused_without_a_word_of_it(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (said(user, *command, "--rpc", url), said(user, *command, HEARTH_RPC=url)):
        assert PATH not in text and "rpc" in text.lower()


@pytest.mark.parametrize("command", [("net", "status"), ("jobs",), ("wallet", "balance", "0x" + "11" * 20)])
def test_command__provider_that_repeats_its_key__is_not_repeated(user: Path, command: tuple[str, ...]) -> None:
    """Some providers name the key that they refuse, in an error or as an answer."""

    def blabs(asked: Asked) -> None:
        asked.refuse(f"unknown project {PATH}, key {QUERY} of {USER}", -32000)

    def answers_with_it(asked: Asked) -> None:
        asked.say({"number": PATH, "hash": QUERY, "parentHash": USER})

    for lie in (blabs, answers_with_it):
        with lying("http://127.0.0.1:9", lie) as provider:
            text = said(user, *command, "--rpc", with_tokens(provider.url), "--json")
        assert provider.counts and not [token for token in TOKENS if token in text], text


@pytest.mark.parametrize(
    "url",
    [
        f"kubo://u:{USER}@h",
        f"kubo://h/{PATH}",
        f"gateway+https://h/{PATH}?k={QUERY}",
        f"s3://{USER}@h",
        f"gateway+https://[{PATH}",
    ],
)
def test_open_store__unusable_address__is_refused_without_its_key(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    told = f"{caught.value.message} {caught.value.details}"
    assert not [token for token in TOKENS if token in told], told


def test_gateway__key_in_its_path__stands_in_no_message(tmp_path: Path) -> None:
    store = open_store(f"gateway+http://127.0.0.1:{free_port()}/{PATH}")
    with pytest.raises(StorageError) as caught:
        store.get_block(cids.of(b"x"), 5)
    told = f"{caught.value.message} {caught.value.details} {store.url} {store.status()}"
    assert PATH not in told and "gateway+http://127.0.0.1" in told
