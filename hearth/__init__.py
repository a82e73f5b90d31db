"""Hearth: a GPU job market in which the chain is the scheduler."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.client import Client

__version__ = "0.1.0"
__all__ = ["Client", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for: most of what imports `hearth` does without it."""
    if name == "Client":
        from hearth.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
