"""A market that takes no new job, paused or for good: refused before anything is stored or sent, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.base.errors import RefusedError
from hearth.client.posting.post import Posting
from hearth.client.reading import JobReader
from hearth.client.session import Session
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.protocol.types import Gate
from tests.kit import build
from tests.kit.fake_chain import FakeChain

JOB = {"version": 1, "image": "x.wasm", "price": {"max_total": "1 ETH"}}


class _Reached(Exception):
    """The step after the look for a pause."""


@pytest.fixture
def chain() -> FakeChain:
    return FakeChain()


@pytest.fixture
def posting(tmp_path: Path, chain: FakeChain, monkeypatch: pytest.MonkeyPatch) -> Posting:
    """Posting on a scripted chain, whose plans are made already."""
    session = Session(Settings(home=tmp_path), port=chain)
    session.__dict__["network"] = build.network(chain)
    session._checked = True
    made = Posting(JobReader(session), SimpleNamespace())  # type: ignore[arg-type]

    @contextmanager
    def planned(*_: Any) -> Iterator[Any]:
        market = session.market
        read = {
            "paused_until": market.policies().paused_until,
            "fleet": SimpleNamespace(now=market.port.head().timestamp),
        }
        yield SimpleNamespace(lines=(), fingerprint="f", gates={Gate.FITS: 1}, terms=build.terms(), parents=(), **read)

    def reached(*_: Any) -> Any:
        raise _Reached

    monkeypatch.setattr(made._preflight, "planned", planned)
    monkeypatch.setattr(made._preflight, "facts", reached)
    monkeypatch.setattr(made, "_require_price", reached)
    monkeypatch.setattr(made, "_upload", reached)
    monkeypatch.setattr(made, "_submitter", lambda: "0x" + "5b" * 20)
    monkeypatch.setattr("hearth.jobfile.spec_of", lambda *_: SimpleNamespace(source=Path("job.yaml")))
    return made


def paused(chain: FakeChain, until: int) -> None:
    word = build.terms().policy
    answer = encode(["uint256"] * 5, [word, 0, 0, 0, until])
    chain.on_call(build.ADDRESSES["Rules"], codec("Rules").selector("policies"), lambda call, block: answer)


ASKED = [("check", {}), ("submit", {}), ("submit", {"print_tx": True})]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_posting__posts_are_paused__refused_with_the_moment_and_goes_on_at_it(
    posting: Posting, chain: FakeChain, asked: tuple[str, dict[str, Any]]
) -> None:
    name, options = asked
    now = chain.head().timestamp
    paused(chain, now + 1)
    with pytest.raises(RefusedError, match=r"paused until 20\d\d-.* UTC") as caught:
        getattr(posting, name)(JOB, **options)
    assert (caught.value.code, caught.value.exit_code) == ("PAUSED", 5)
    paused(chain, now)
    with pytest.raises(_Reached):
        getattr(posting, name)(JOB, **options)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_posting__chain_has_changed_its_id__refused_before_anything_is_stored(
    posting: Posting, chain: FakeChain, asked: tuple[str, dict[str, Any]]
) -> None:
    name, options = asked
    paused(chain, 0)
    network = posting.session.network
    posting.session.__dict__["network"] = replace(network, deployed_chain_id=network.chain_id)
    with pytest.raises(_Reached):
        getattr(posting, name)(JOB, **options)
    posting.session.__dict__["network"] = replace(network, deployed_chain_id=1)
    del posting.session.__dict__["unchecked_market"]
    with pytest.raises(RefusedError, match=f"had the id 1 when {network.name} was deployed") as caught:
        getattr(posting, name)(JOB, **options)
    assert (caught.value.code, caught.value.exit_code, caught.value.retryable) == ("CHAIN_CHANGED", 5, False)
