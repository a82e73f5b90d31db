"""What the tests of the page on a real market share."""

from __future__ import annotations

import pytest

from hearth.local.market import DEVNET_ACCOUNTS
from tests.kit.browser import Watched
from tests.kit.town import Town
from tests.kit.web_desk import Desk
from tests.kit.web_wallet import WebWallet


@pytest.fixture
def desk(place: Town, seen: Watched, request: pytest.FixtureRequest) -> Desk[WebWallet]:
    """The page at #/submit on a module's market, with the wallet of a submitter beside it: of "dev", or of the one that
    a test names by `indirect`, whose balances no other test's jobs change."""
    wallet = WebWallet(place, DEVNET_ACCOUNTS[getattr(request, "param", "dev")])
    wallet.install(seen.page.context)
    return Desk(place, seen, wallet)
