"""A wallet for pages: an EIP-6963 provider in the browser whose calls are answered, and signed, in Python.

It signs with another implementation than the page's, and does what a test wants of it: refuses, hangs, lies, changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from hearth.local import devnet

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

    from tests.kit.town import Town

NAME: Final = "Test \N{RIGHT-TO-LEFT OVERRIDE}tellaW"
"""A name that would turn around what stands behind it."""
HANG: Final = {"hang": True}
_SCRIPT: Final = """(() => {
  const heard = new Map();
  const of = (event) => heard.get(event) ?? heard.set(event, new Set()).get(event);
  const provider = {
    request: async ({ method, params }) => {
      const said = await window.pythonWallet(method, params ?? []);
      if (said.hang) return new Promise(() => undefined);
      if (said.error) throw said.error;
      return said.result;
    },
    on: (event, hear) => void of(event).add(hear),
    removeListener: (event, hear) => void of(event).delete(hear),
  };
  window.walletSays = (event, value) => of(event).forEach((hear) => hear(value));
  const info = { uuid: "5a5a", name: "%s", icon: "https://evil.example/x.png", rdns: "test.wallet" };
  const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: { info, provider } }));
  addEventListener("eip6963:requestProvider", announce);
  announce();
})()"""


class Refuses(Exception):
    """What a wallet answers instead: EIP-1193's error."""

    def __init__(self, code: int, message: str = "no", **data: Any) -> None:
        super().__init__(message)
        self.said = {"code": code, "message": message, **({"data": data} if data else {})}


Answer = Callable[[Sequence[Any]], Any]


class WebWallet:
    """One account of a devnet in a browser. `answers` are asked before its own; `asked` are the methods, in order."""

    def __init__(self, town: Town, index: int) -> None:
        self._town = town
        self.account = devnet.account(index)
        self.chain = town.net.network.chain_id
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.sent: list[str] = []
        self.added: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        """Return the account in lower case, as the page shows it."""
        return str(self.account.address).lower()

    def install(self, context: BrowserContext) -> None:
        """Announce it in every page of a context."""
        context.expose_function("pythonWallet", self._request)
        context.add_init_script(_SCRIPT % NAME)

    def says(self, page: Page, event: str, value: object) -> None:
        """Announce a change."""
        page.evaluate("([event, value]) => window.walletSays(event, value)", [event, value])

    def refuse(self, method: str, code: int, message: str = "no") -> None:
        """Answer a method with an error from now on."""

        def answer(_: Sequence[Any]) -> Any:
            raise Refuses(code, message)

        self.answers[method] = answer

    def hold(self) -> list[dict[str, Any]]:
        """Answer no transaction from now on, as a window that stays open; return what is asked for in it."""
        given: list[dict[str, Any]] = []

        def answer(params: Sequence[Any]) -> Any:
            given.append(params[0])
            return HANG

        self.answers["eth_sendTransaction"] = answer
        return given

    def _request(self, method: str, params: list[Any]) -> dict[str, Any]:
        self.asked.append(method)
        try:
            answer = self.answers.get(method) or getattr(self, f"_{method}", None)
            result = self._town.rpc(method, *params) if answer is None else answer(params)
        except Refuses as refusal:
            return {"error": refusal.said}
        return result if result is HANG else {"result": result}

    def _eth_requestAccounts(self, _: Sequence[Any]) -> list[str]:
        return [self.account.address]

    _eth_accounts = _eth_requestAccounts

    def _eth_chainId(self, _: Sequence[Any]) -> str:
        return hex(self.chain)

    def _wallet_switchEthereumChain(self, params: Sequence[Any]) -> None:
        self.chain = int(params[0]["chainId"], 16)

    def _wallet_addEthereumChain(self, params: Sequence[Any]) -> None:
        self.added.append(params[0])

    def _eth_sendTransaction(self, params: Sequence[Any]) -> str:
        return self.send(params[0])

    def send(self, asked: dict[str, Any]) -> str:
        """Sign and send what was asked, as a person who says yes."""
        rpc = self._town.rpc
        assert asked["from"] == self.address and int(asked["chainId"], 16) == self.chain
        transaction = {
            "to": to_checksum_address(asked["to"]),
            "data": asked["data"],
            "value": int(asked["value"], 16),
            "nonce": int(rpc("eth_getTransactionCount", self.account.address, "pending"), 16),
            "gas": int(rpc("eth_estimateGas", {**asked, "chainId": asked["chainId"]}), 16) + 20_000,
            "maxFeePerGas": 4 * 10**9,
            "maxPriorityFeePerGas": 10**9,
            "chainId": self.chain,
        }
        signed = self.account.sign_transaction(transaction)
        self.sent.append(rpc("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x")))
        return self.sent[-1]
