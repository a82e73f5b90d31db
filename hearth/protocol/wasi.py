"""What a WebAssembly unit may be: the calls that every worker offers, what they cost, and the sizes that it takes.

One list for the worker, which serves these calls, and for the submitter's check, which refuses a module that needs
another. Source: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md (names and parameters).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MODULE: Final = "wasi_snapshot_preview1"
PAGE_BYTES: Final = 65_536
MAX_MODULE_BYTES: Final = 64 << 20
MAX_MEMORY_BYTES: Final = 1 << 32
"""What 32-bit addresses reach; a unit with more has this."""
NO_RESULT: Final = frozenset({"proc_exit"})
"""Calls that return nothing; every other returns an error number, an i32."""

CALLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "args_get": "ii",
        "args_sizes_get": "ii",
        "environ_get": "ii",
        "environ_sizes_get": "ii",
        "clock_res_get": "ii",
        "clock_time_get": "iIi",
        "fd_advise": "iIIi",
        "fd_allocate": "iII",
        "fd_close": "i",
        "fd_datasync": "i",
        "fd_fdstat_get": "ii",
        "fd_fdstat_set_flags": "ii",
        "fd_fdstat_set_rights": "iII",
        "fd_filestat_get": "ii",
        "fd_filestat_set_size": "iI",
        "fd_filestat_set_times": "iIIi",
        "fd_pread": "iiiIi",
        "fd_prestat_get": "ii",
        "fd_prestat_dir_name": "iii",
        "fd_pwrite": "iiiIi",
        "fd_read": "iiii",
        "fd_readdir": "iiiIi",
        "fd_renumber": "ii",
        "fd_seek": "iIii",
        "fd_sync": "i",
        "fd_tell": "ii",
        "fd_write": "iiii",
        "path_create_directory": "iii",
        "path_filestat_get": "iiiii",
        "path_filestat_set_times": "iiiiIIi",
        "path_link": "iiiiiii",
        "path_open": "iiiiiIIii",
        "path_readlink": "iiiiii",
        "path_remove_directory": "iii",
        "path_rename": "iiiiii",
        "path_symlink": "iiiii",
        "path_unlink_file": "iii",
        "poll_oneoff": "iiii",
        "proc_exit": "i",
        "proc_raise": "i",
        "random_get": "ii",
        "sched_yield": "",
        "sock_accept": "iii",
        "sock_recv": "iiiiii",
        "sock_send": "iiiii",
        "sock_shutdown": "ii",
    }
)
"""Name -> parameters; i = i32, I = i64."""

CHARGES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "call": 20_000,
        "KiB": 512,
        "buffer": 4_000,
        "random byte": 32,
        "string": 300,
        "subscription": 1_000,
        "path": 20_000,
        "name": 2_000,
        "change": 60_000,
        "open file": 300,
        "entry": 4_000,
        "listed name": 700,
    }
)
"""The fuel that a call costs beside the guest's own instructions, by what it does and how often (worker.md "wasm").

A unit of fuel stands for a nanosecond. The charges follow the data and nothing else, so that a run costs the same on
every machine; `bench/bench_wasm.py` holds them against the time that calls take.
"""

ENGINE_CONFIG: Final[dict[str, bool | int | str]] = {
    "config_version": 2,
    "strategy": "cranelift",
    "cranelift_opt_level": "speed",
    "cranelift_nan_canonicalization": True,
    "consume_fuel": True,
    "epoch_interruption": True,
    "max_wasm_stack": 1 << 20,
    "wasm_simd": True,
    "wasm_bulk_memory": True,
    "wasm_multi_value": True,
    "wasm_reference_types": True,
    "wasm_threads": False,
    "shared_memory": False,
    "wasm_memory64": False,
    "wasm_multi_memory": False,
    "wasm_gc": False,
    "gc_support": False,
    "wasm_function_references": False,
    "wasm_exceptions": False,
    "wasm_tail_call": False,
    "wasm_relaxed_simd": False,
    "wasm_relaxed_simd_deterministic": True,
    "wasm_wide_arithmetic": False,
    "wasm_custom_page_sizes": False,
    "wasm_stack_switching": False,
    "wasm_component_model": False,
    "parallel_compilation": False,
    **{f"fuel_per_{what}": fuel for what, fuel in CHARGES.items()},
}
"""The settings of every worker's engine: all that can change a result, a fuel count, or which modules there are.

A change here is a new engine, named in every report. A submitter's check validates a module by the same settings.
"""
