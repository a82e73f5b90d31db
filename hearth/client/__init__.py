"""The Python API: `from hearth import Client`. Each command of the command line is one method here.

`hearth job show` is `Client.job_show`; methods return plain facts, ready for JSON, with their "schema".
"""

from __future__ import annotations

from hearth.client.net import Net


class Client(Net):
    """One user's view of one market: `Client()` takes the same settings as the command line."""


__all__ = ["Client"]
