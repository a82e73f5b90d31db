"""Attack L11, the client's side: a chain that changed its id keeps its jobs, and the client reaches them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hearth.base.errors import ChainError
from hearth.chain.port import Log
from hearth.client.session import Session
from hearth.config.settings import Settings
from hearth.market.network import Network, network_of
from hearth.market.reads import Market
from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit import build
from tests.kit.scripted import ScriptedMarket, answer_checks

OTHER = 31_338


def deployed_market() -> ScriptedMarket:
    """Return a market that was deployed under LOCAL_CHAIN_ID."""
    made = ScriptedMarket()
    for address in made.network.contracts.values():
        made.chain.set_code(address, b"code")
    answer_checks(made.chain, made.network, LOCAL_CHAIN_ID)
    made.market.identity.check()
    return made


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedMarket:
    """The same, on a chain whose id is OTHER now."""
    made = deployed_market()
    monkeypatch.setattr(made.chain, "chain_id", lambda: OTHER)
    return made


def changed(scripted: ScriptedMarket, deployed: int | None) -> Network:
    return replace(scripted.network, chain_id=OTHER, deployed_chain_id=deployed)


def test_market__chain_has_changed_its_id__finds_the_jobs_of_before(scripted: ScriptedMarket) -> None:
    """The contracts keep the old id in job ids; transactions and `check` need the new one."""
    event = scripted.posted(build.terms())
    log = Log(event.address, event.topics, event.data, 1, b"\1" * 32, b"\2" * 32, 0)
    network = changed(scripted, LOCAL_CHAIN_ID)
    market = Market(scripted.chain, network)
    market.identity.check()
    assert list(market.events_in([log])) and not market.strays
    assert network_of(network.as_dict()) == network
    assert "deployed_chain_id" not in scripted.network.as_dict()


@pytest.mark.parametrize("deployed", [None, OTHER, 1, LOCAL_CHAIN_ID + 2**64])
def test_check__id_at_deployment_is_another__is_refused_and_told_what_to_write(
    scripted: ScriptedMarket, deployed: int | None
) -> None:
    with pytest.raises(ChainError, match='must name the former one as "deployed_chain_id"') as caught:
        Market(scripted.chain, changed(scripted, deployed)).identity.check()
    assert (caught.value.code, caught.value.retryable) == ("WRONG_CONTRACTS", False)


def test_check__the_chain_is_as_it_was__a_former_id_is_refused() -> None:
    scripted = deployed_market()
    Market(scripted.chain, replace(scripted.network, deployed_chain_id=LOCAL_CHAIN_ID)).identity.check()
    with pytest.raises(ChainError, match=f"another chain id than {OTHER}"):
        Market(scripted.chain, replace(scripted.network, deployed_chain_id=OTHER)).identity.check()


def test_state__chain_has_changed_its_id__is_the_folder_of_before(scripted: ScriptedMarket, tmp_path: Path) -> None:
    """In another folder nobody would find the names and the journal of the jobs that were posted before."""
    folders = []
    for network in (scripted.network, changed(scripted, LOCAL_CHAIN_ID), changed(scripted, None)):
        session = Session(Settings(home=tmp_path))
        session.__dict__["network"] = network
        folders.append(session.state)
    before, after, other = folders
    assert before == after != other
