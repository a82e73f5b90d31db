"""Hearth: a GPU job market in which the chain is the scheduler. docs/PYTHON.md is the page of its library."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.base.errors import (
        ChainError,
        ConfigError,
        FundsError,
        HearthError,
        NotFoundError,
        NoWorkerError,
        RefusedError,
        SpecError,
        StorageError,
        UsageError,
        WaitTimeout,
    )
    from hearth.client import Client
    from hearth.client.job.job import Amount, Job, JobTable, Logs, Outputs, UnitLog, UnitOutputs
    from hearth.config.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Amount",
    "ChainError",
    "Client",
    "ConfigError",
    "FundsError",
    "HearthError",
    "Job",
    "JobTable",
    "Logs",
    "NoWorkerError",
    "NotFoundError",
    "Outputs",
    "RefusedError",
    "Settings",
    "SpecError",
    "StorageError",
    "UnitLog",
    "UnitOutputs",
    "UsageError",
    "WaitTimeout",
    "__version__",
]

_MODULES = {
    "hearth.client": ("Client",),
    "hearth.client.job.job": ("Amount", "Job", "JobTable", "Logs", "Outputs", "UnitLog", "UnitOutputs"),
    "hearth.config.settings": ("Settings",),
}
"""Where each name is from; what is not listed is an error's."""


def __getattr__(name: str) -> Any:
    """Import what is first asked for: most of what imports `hearth` does without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = next((module for module, names in _MODULES.items() if name in names), "hearth.base.errors")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return __all__
