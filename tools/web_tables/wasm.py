"""What a module may import, and what its check goes by (hearth/protocol/wasi.py, hearth/jobfile/wasm_module.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.jobfile import wasm_module as module
from hearth.protocol import wasi
from tools.web_tables import Big


def tables() -> Mapping[str, Any]:
    """Return the calls that workers offer, sizes in bytes, and the sections' places by their numbers."""
    return {
        "WASI_MODULE": wasi.MODULE,
        "WASI_CALLS": dict(wasi.CALLS),
        "NO_RESULT": sorted(wasi.NO_RESULT),
        "PAGE_BYTES": Big(wasi.PAGE_BYTES),
        "MAX_MODULE_BYTES": wasi.MAX_MODULE_BYTES,
        "MAX_MEMORY_BYTES": Big(wasi.MAX_MEMORY_BYTES),
        "MAX_ENTRIES": module.MAX_ENTRIES,
        "MAX_FUNCTIONS": module.MAX_FUNCTIONS,
        "MAX_PARAMETERS": module.MAX_PARAMETERS,
        "SECTION_PLACES": dict(sorted(module._ORDER.items())),
        "VALUE_LETTERS": module._LETTERS.decode(),
        "KINDS": list(module._KINDS),
        "MEMORY_FLAGS": [list(one) for one in module._MEMORY_FLAGS],
        "OTHER_FILES": [[magic.hex(), name] for magic, name in module._OTHER_FILES],
        "COMPILE_HINT": module.COMPILE_HINT,
        "WITHOUT": [list(one) for one in module.WITHOUT],
        "IMPORT_HINTS": dict(module._IMPORT_HINTS),
    }
