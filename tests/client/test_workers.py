"""hearth.client.workers: whose key signs what an owner does, and when a node may leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.chain import keys
from hearth.client.reading import JobReader
from hearth.client.session import Session
from hearth.client.workers import Workers
from hearth.config.settings import Settings
from hearth.market.reads import Market
from tests.kit import build
from tests.kit.fake_chain import FakeChain


@pytest.fixture
def workers(tmp_path: Path) -> Workers:
    """A devnet's home: the key `provider`, and one that the user made."""
    for name in ("provider", "mine"):
        keys.create_key(tmp_path / "keys", name, "pw", devnet=True)
    chain = FakeChain()
    session = Session(Settings(home=tmp_path), port=chain)
    session.__dict__["network"] = build.network(chain)
    return Workers(JobReader(session))


def test_payer__no_account_chosen__is_the_owners_key_whatever_the_devnet_calls_it(workers: Workers) -> None:
    session = workers.session
    owner = keys.read_key(session.settings.keys_folder / "mine.json").address
    calls = Market(FakeChain(), session.network).calls
    for call in (calls.exit_start(build.node(1).id), calls.add_stake(build.node(1).id, owner, 5)):
        assert workers._payer(call, owner) == owner
        with pytest.raises(ConfigError) as caught:
            workers._payer(call, "0x" + "77" * 20)
        assert caught.value.code == "NOT_OWNER"
    assert session.key("owner").name == "provider"
    # An account that is chosen stays chosen.
    session.settings = replace(session.settings, account="provider")
    assert session.key("owner", of=owner).name == "provider"


def test_exit__before_the_stake_is_free__is_refused_with_the_moment(workers: Workers) -> None:
    port = workers.session.unchecked_market.port
    assert isinstance(port, FakeChain)
    workers.session._checked = True
    node = replace(build.node(1), exit_at=port.head().timestamp + 86_400)
    with pytest.raises(RefusedError, match=r"20\d\d-\d\d-\d\d .* UTC") as caught:
        workers.exit(node, finish=True)
    assert caught.value.code == "UNBONDING" and port.sent == []
    # What another machine sends later is prepared today.
    assert workers.exit(node, finish=True, print_tx=True)["prepared"]["from"] == node.owner


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"prepared": {"chain_id": 1}}', '"text"'])
def test_send_prepared__file_without_a_transaction__says_so_in_words(
    workers: Workers, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "register.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        workers.send_prepared(file, "register")
    assert caught.value.code == "BAD_TX" and "Error(" not in caught.value.message
    assert caught.value.hint.endswith("hearth worker register --print-tx > register.json")
