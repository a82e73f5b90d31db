// What a module may import, and what its check goes by (hearth/protocol/wasi.py, hearth/jobfile/wasm_module.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/wasm.py.

export const WASI_MODULE = "wasi_snapshot_preview1" as const;

export const WASI_CALLS = {
  args_get: "ii",
  args_sizes_get: "ii",
  environ_get: "ii",
  environ_sizes_get: "ii",
  clock_res_get: "ii",
  clock_time_get: "iIi",
  fd_advise: "iIIi",
  fd_allocate: "iII",
  fd_close: "i",
  fd_datasync: "i",
  fd_fdstat_get: "ii",
  fd_fdstat_set_flags: "ii",
  fd_fdstat_set_rights: "iII",
  fd_filestat_get: "ii",
  fd_filestat_set_size: "iI",
  fd_filestat_set_times: "iIIi",
  fd_pread: "iiiIi",
  fd_prestat_get: "ii",
  fd_prestat_dir_name: "iii",
  fd_pwrite: "iiiIi",
  fd_read: "iiii",
  fd_readdir: "iiiIi",
  fd_renumber: "ii",
  fd_seek: "iIii",
  fd_sync: "i",
  fd_tell: "ii",
  fd_write: "iiii",
  path_create_directory: "iii",
  path_filestat_get: "iiiii",
  path_filestat_set_times: "iiiiIIi",
  path_link: "iiiiiii",
  path_open: "iiiiiIIii",
  path_readlink: "iiiiii",
  path_remove_directory: "iii",
  path_rename: "iiiiii",
  path_symlink: "iiiii",
  path_unlink_file: "iii",
  poll_oneoff: "iiii",
  proc_exit: "i",
  proc_raise: "i",
  random_get: "ii",
  sched_yield: "",
  sock_accept: "iii",
  sock_recv: "iiiiii",
  sock_send: "iiiii",
  sock_shutdown: "ii",
} as const;

export const NO_RESULT = ["proc_exit"] as const;

export const PAGE_BYTES = 65536n as const;

export const MAX_MODULE_BYTES = 67108864 as const;

export const MAX_MEMORY_BYTES = 4294967296n as const;

export const MAX_ENTRIES = 100000 as const;

export const MAX_FUNCTIONS = 1000000 as const;

export const MAX_PARAMETERS = 1000 as const;

export const SECTION_PLACES = { 1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 6, 7: 7, 8: 8, 9: 9, 10: 11, 11: 12, 12: 10, 13: 5 } as const;

export const VALUE_LETTERS = "????????????????????????????????????????????????????????????????????????????????????????????????????????????????r??????????vFfIi????????????????????????????????????????????????????????????????????????????????????????????????????????????????????????????????" as const;

export const KINDS = ["function", "table", "memory", "global", "tag"] as const;

export const MEMORY_FLAGS = [[2, "memory shared by threads"], [4, "64-bit memory"], [8, "custom page sizes"]] as const;

export const OTHER_FILES = [
  ["7f454c46", "a Linux program"],
  ["4d5a", "a Windows program"],
  ["cffaedfe", "a macOS program"],
  ["2321", "a script"],
  ["286d6f64756c65", "WebAssembly in text form"],
] as const;

export const COMPILE_HINT = "compile it for wasm32-wasi, as docs/JOB.md shows" as const;

export const WITHOUT = [
  [
    "tail call",
    "compile it without them: -mno-tail-call (clang), -C target-feature=-tail-call (Rust)",
  ],
  [
    "relaxed simd",
    "compile it without: -mno-relaxed-simd (clang), -C target-feature=-relaxed-simd (Rust)",
  ],
  [
    "wide arithmetic",
    "compile it without: -mno-wide-arithmetic (clang), -C target-feature=-wide-arithmetic (Rust)",
  ],
  ["exceptions", "compile it without -fwasm-exceptions (clang), and with panic=abort (Rust)"],
  [
    "threads",
    "compile it without -pthread and -matomics (clang), and for wasm32-wasip1, not wasip1-threads (Rust)",
  ],
  ["64-bit", "compile it for wasm32, without 64-bit addresses"],
  ["memor", "link it as one module, without a second memory: -mno-multimemory (clang)"],
  ["garbage", "compile it without garbage collection: from C, C++, Rust, Zig or Go"],
  ["reference", "compile it without garbage collection: from C, C++, Rust, Zig or Go"],
  ["types", "compile it without garbage collection: from C, C++, Rust, Zig or Go"],
] as const;

export const IMPORT_HINTS = {
  env: "link what it calls into the module: undefined symbols become imports of env",
  wasi_unstable: "compile it with a newer compiler: this is the WASI before preview 1",
  wasi: "compile it without threads",
} as const;
