"""A wasmtime engine with settings that are written down, for whoever runs modules and whoever only judges them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import wasmtime


def engine_of(settings: Mapping[str, bool | int | str]) -> wasmtime.Engine:
    """Return an engine with exactly these settings, by wasmtime's names; the version and fuel prices are not its."""
    import wasmtime
    from wasmtime import _ffi as ffi

    config = wasmtime.Config()
    for name, value in settings.items():
        if name == "cranelift_nan_canonicalization":  # in the C interface, without a Python property in 50.0.1
            ffi.wasmtime_config_cranelift_nan_canonicalization_set(config.ptr(), value)
        elif name != "config_version" and not name.startswith("fuel_"):
            setattr(config, name, value)
    return wasmtime.Engine(config)


def refusal_of(settings: Mapping[str, bool | int | str], module: bytes) -> str:
    """Return why an engine with these settings takes no such module, in its own words, "" where it does.

    All of it is validated and nothing compiled.
    """
    import wasmtime

    try:
        wasmtime.Module.validate(engine_of(settings), module)
    except wasmtime.WasmtimeError as refused:
        return str(refused).strip()
    return ""
