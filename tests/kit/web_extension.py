"""A wallet that is a browser's extension: Manifest V3 around MetaMask's page provider (tests/e2e/wallet).

It is bundled into a folder and loaded into a Chromium of its own profile. Its owner's window opens for each request,
and the test clicks there. The key is outside, as a hardware wallet's is: a signer on loopback, which signs in Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from hearth.local import devnet
from tests.kit.browser import FLAGS, Watched, require_chromium
from tests.kit.evm import ROOT
from tests.kit.http import answering, send
from tests.kit.node import WEB, require_web
from tests.kit.require import require

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

SOURCE: Final = ROOT / "tests" / "e2e" / "wallet"
BUNDLED: Final = ("inpage.js", "content.js")
COPIED: Final = ("manifest.json", "background.js", "approve.html", "approve.js")


class ExtensionWallet:
    """A browser with the wallet in it: `seen` is the page under test, `signed` what its signer was asked to sign."""

    def __init__(self, context: BrowserContext, account: Any, signed: list[dict[str, Any]]) -> None:
        self.context, self.account, self.signed = context, account, signed
        self.seen = Watched(context)

    @property
    def address(self) -> str:
        """Return the account in lower case, as the page shows it."""
        return str(self.account.address).lower()

    @contextmanager
    def window(self, ask: Callable[[], None]) -> Iterator[Page]:
        """Do what asks the wallet, and give its window, which is shut in the end."""
        with self.context.expect_page() as opened:
            ask()
        page = opened.value
        page.wait_for_selector("#approve:enabled")
        yield page
        page.close()

    def move(self, chain_id: str) -> None:
        """Go to another chain, as its owner does in the wallet itself."""
        # A background that rests has no world to act in; a question wakes it. The page has a worker of its own.
        self.seen.page.evaluate("() => window.ethereum.request({ method: 'eth_chainId' })")
        mine = [one for one in self.context.service_workers if one.url.startswith("chrome-extension:")]
        mine[-1].evaluate("(chainId) => moveTo(chainId)", chain_id)

    def approve(self, ask: Callable[[], None]) -> dict[str, str]:
        """Do what asks the wallet, click Approve, and return what its window showed."""
        return self._answer(ask, "#approve")

    def reject(self, ask: Callable[[], None]) -> dict[str, str]:
        """Do what asks the wallet, click Reject, and return what its window showed."""
        return self._answer(ask, "#reject")

    def _answer(self, ask: Callable[[], None], button: str) -> dict[str, str]:
        with self.window(ask) as page:
            names = [one.inner_text() for one in page.locator("dt").all()]
            shown = {name: page.inner_text(f"#{name}") for name in ("what", "origin", *names)}
            page.click(button)
        return shown


def bundle(out: Path) -> Path:
    """Make the extension's folder, and return it: what `extension_wallet` copies."""
    program = require_web()
    provider = ROOT / "node_modules" / "@metamask" / "providers"
    require("web", provider.exists(), "node_modules lacks a wallet's page provider; make setup installs it")
    out.mkdir(parents=True)
    for name in COPIED:
        shutil.copy(SOURCE / name, out / name)
    vite = [str(program), "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]
    for name in BUNDLED:
        environ = {**os.environ, "WALLET_SCRIPT": name, "WALLET_OUT": str(out)}
        subprocess.run([*vite, "--config", str(SOURCE / "vite.config.mjs")], cwd=WEB, check=True, env=environ)
    return out


@contextmanager
def extension_wallet(folder: Path, bundled: Path, index: int) -> Iterator[ExtensionWallet]:
    """Run a browser with the wallet of a devnet's account; fail where the page complained of anything in the end."""
    from playwright.sync_api import sync_playwright

    program = require_chromium(whole=True)
    account = devnet.account(index)
    signed: list[dict[str, Any]] = []
    with answering(lambda handler: _sign(handler, account, signed)) as port, sync_playwright() as play:
        made = shutil.copytree(bundled, folder / "wallet")
        settings = {"account": account.address, "signer": f"http://127.0.0.1:{port}/"}
        (made / "settings.json").write_text(json.dumps(settings))
        context = play.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=program,
            args=[*FLAGS, f"--disable-extensions-except={made}", f"--load-extension={made}"],
            ignore_default_args=["--disable-extensions"],
        )
        try:
            _require_loaded(context)
            wallet = ExtensionWallet(context, account, signed)
            yield wallet
            assert wallet.seen.complaints == [], wallet.seen.complaints
        finally:
            context.close()


def _require_loaded(context: BrowserContext) -> None:
    """Wait for the extension's background; skip or fail the test where the browser takes no extension."""
    from playwright.sync_api import TimeoutError as Late

    try:
        loaded = bool(context.service_workers or context.wait_for_event("serviceworker", timeout=15_000))
    except Late:
        loaded = False
    require("chromium", loaded, "it loads no extension that is named on its command line; Debian's chromium does")


def _sign(handler: BaseHTTPRequestHandler, account: Any, signed: list[dict[str, Any]]) -> None:
    """Sign the one transaction that a request brings; JSON-RPC, as Clef's account_signTransaction."""
    asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
    (transaction,) = asked["params"]
    assert asked["method"] == "account_signTransaction" and transaction["from"] == str(account.address).lower()
    signed.append(transaction)
    raw = account.sign_transaction(
        {
            "to": to_checksum_address(transaction["to"]),
            "data": transaction["data"],
            **{name: int(transaction[name], 16) for name in ("value", "nonce", "gas", "chainId")},
            "maxFeePerGas": 4 * 10**9,
            "maxPriorityFeePerGas": 10**9,
        }
    ).raw_transaction
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": "0x" + raw.hex().removeprefix("0x")}
    send(handler, 200, json.dumps(answer).encode(), Content_Type="application/json")
