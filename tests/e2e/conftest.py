"""What the tests of the page in a browser share: one browser per module, one profile per test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.kit.browser import Watched, browser, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture
def seen(chromium: Browser) -> Iterator[Watched]:
    with watched(chromium) as found:
        yield found
