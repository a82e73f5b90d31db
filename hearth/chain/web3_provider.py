"""web3.py over Hearth's providers, for what the market's own calls do not cover: `Web3(PortProvider(chain))`.

What an answer may cost, and which provider is left alone for a while, is as for every other request. Which of several
providers is believed is not: web3's methods name no block, so the first that answers is.
Source: docs/decisions/0028-believe-the-majority-of-providers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from web3.providers.base import BaseProvider

from hearth.base.errors import ChainError, RefusedError

if TYPE_CHECKING:
    from web3.types import RPCEndpoint, RPCError, RPCResponse

    from hearth.chain.rpc import RpcChain

REVERTED: Final = 3
"""The JSON-RPC error code of a call that a contract refused."""


class PortProvider(BaseProvider):
    """Send what web3 asks through a chain port. Its requests raise ChainError where no provider answers."""

    def __init__(self, chain: RpcChain) -> None:
        super().__init__()
        self._chain = chain

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Return the answer to one request; a contract's refusal is an error object, as web3 expects it."""
        try:
            return {"jsonrpc": "2.0", "id": 1, "result": self._chain.rpc(method, *params)}
        except RefusedError as error:
            refusal: RPCError = {"code": REVERTED, "message": error.message, "data": error.details.get("data", "0x")}
            return {"jsonrpc": "2.0", "id": 1, "error": refusal}

    def is_connected(self, show_traceback: bool = False) -> bool:
        """Say whether a provider answers. Raises ChainError with `show_traceback`."""
        try:
            self._chain.chain_id()
        except ChainError:
            if show_traceback:
                raise
            return False
        return True
